/** Setting of the S3 endpoint to which the server copies each new backup. Its secrets are never shown again. */
import type { BackupsView } from "../../src/interfaces/api/server.ts";
import { formatBytes } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { Ago } from "../component/time.ts";
import { useSend } from "../component/use-send.ts";
import { SettingCard } from "./setting-card.ts";

interface Props {
  copies: BackupsView["copies"];
  onChange: (answer: { backups: BackupsView }) => void;
}

const PATH = "/api/backups/copies";
const CHANGES = ["/api/backups", "/api/overview", "/api/audit"];
const USUAL_KEEP = 30;

export function BackupCopy({ copies, onChange }: Props): View {
  const { target } = copies;
  const { send, isSending, error, clear } = useSend();
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const { keep, ...texts } = Object.fromEntries(new FormData(form));
    const sent = await send<{ backups: BackupsView }>({
      method: "PUT",
      path: PATH,
      body: { ...texts, keep: Number(keep) },
      changes: CHANGES,
      done: "The endpoint was saved. Test the connection.",
    });
    if (sent === null) return;
    for (const field of form.querySelectorAll<HTMLInputElement>("[type=password]")) field.value = "";
    onChange(sent.answer);
  };
  const test = () =>
    send({
      method: "POST",
      path: `${PATH}/test`,
      done: "The connection works: Relay wrote, read and deleted an object.",
    });
  const remove = async (): Promise<void> => {
    const done = "The endpoint was removed. The copies in the bucket stay.";
    const sent = await send<{ backups: BackupsView }>({
      method: "DELETE",
      path: PATH,
      changes: CHANGES,
      done,
    });
    if (sent !== null) onChange(sent.answer);
  };
  const kept = target === null ? "" : "unchanged";
  return html`<${SettingCard} title="Copies at an S3 endpoint" error=${error}>
    <p class="quiet">The server encrypts each new backup with the passphrase, and copies it to the bucket.</p>
    ${target !== null && html`<${State} copies=${copies} />`}
    <form class="stack" key=${target?.endpoint ?? ""} onSubmit=${save} onInput=${clear}>
      <label class="field"><span>Endpoint</span><input name="endpoint" type="url" required autocomplete="off" spellcheck=${false} placeholder="https://s3.eu-central-1.amazonaws.com" defaultValue=${target?.endpoint ?? ""} /></label>
      <div class="setting-line">
        <label class="field"><span>Bucket</span><input name="bucket" required autocomplete="off" spellcheck=${false} placeholder="my-backups" defaultValue=${target?.bucket ?? ""} /></label>
        <label class="field"><span>Region</span><input name="region" autocomplete="off" spellcheck=${false} placeholder="us-east-1" defaultValue=${target?.region ?? ""} /></label>
      </div>
      <label class="field setting-narrow"><span>Folder</span><input name="prefix" autocomplete="off" spellcheck=${false} placeholder="relay" defaultValue=${target?.prefix ?? ""} /></label>
      <div class="setting-line">
        <label class="field"><span>Access key ID</span><input name="accessKeyId" required autocomplete="off" spellcheck=${false} defaultValue=${target?.accessKeyId ?? ""} /></label>
        <label class="field"><span>Secret access key</span><input name="secretAccessKey" type="password" required=${target === null} autocomplete="off" placeholder=${kept} /></label></div>
      <label class="field"><span>Passphrase</span><input name="passphrase" type="password" required=${target === null} minlength="12" autocomplete="new-password" placeholder=${kept} />
        <small class="quiet">Store the passphrase in another place, as you do with <code>master.key</code>. A restore on another machine needs both. Relay never shows it again.</small></label>
      <label class="field setting-narrow"><span>Copies to keep</span><input name="keep" type="number" min="1" max="1000" required defaultValue=${String(target?.keep ?? USUAL_KEEP)} />
        <small class="quiet">The server deletes older copies in this folder of the bucket.</small></label>
      <div class="form-actions"><button disabled=${isSending}>${isSending ? "Working…" : "Save endpoint"}</button>
        ${
          target !== null &&
          html`<button type="button" disabled=${isSending} onClick=${() => void test()}>Test the connection</button>
            <button type="button" class="quiet-danger" disabled=${isSending} onClick=${() => void remove()}>Remove</button>`
        }</div>
    </form><//>`;
}

function State({ copies: { running, last, failed } }: Pick<Props, "copies">): View {
  return html`
    <p role="status">${
      last === null
        ? "No backup was copied yet."
        : html`Last copy: <b><${Ago} at=${last.at} /></b>, ${formatBytes(last.bytes)}.`
    }${running !== null && html` Copying <span class="mono"><${SafeText} text=${running.name} limit=${80} /></span>, started <${Ago} at=${running.startedAt} />…`}</p>
    ${failed !== null && html`<${Notice} kind="bad">The last copy failed <${Ago} at=${failed.at} />: <${Sentence} text=${failed.message} /> The server retries within 15 minutes.<//>`}`;
}
