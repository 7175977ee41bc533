/** Dialog that adds or changes an alert channel. Its fields come from the service's table of kinds. A secret is never shown again. */
import { useState } from "preact/hooks";
import type { ChannelKindView, ChannelView } from "../../src/platform/channel/channel.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Dialog } from "../component/dialog.ts";
import { Notice } from "../component/notice.ts";
import { SecretOnce } from "../component/secret-once.ts";
import { Sentence } from "../component/sentence.ts";
import { useSend } from "../component/use-send.ts";
import { formatKind } from "./kind-text.ts";

interface Made {
  signingSecret?: string | null;
}

/** The alert that channels do not carry, because the resolved message says the same. */
const RECOVERED = "relay_recovered";

export function ChannelDialog({
  place,
  kinds,
  channel,
  onClose,
}: {
  place: Place;
  kinds: readonly ChannelKindView[];
  /** The channel to change; null: a new one. */
  channel: ChannelView | null;
  onClose: () => void;
}): View {
  const { send, isSending, error } = useSend();
  const { data } = useLoad<{ settings: { alerts: Record<string, boolean> } }>(apiPath(place, "settings"));
  const [kindName, setKindName] = useState(channel?.kind ?? kinds[0]?.kind ?? "");
  const [isAll, setAll] = useState(channel === null || channel.codes === null);
  const [secret, setSecret] = useState<string | null>(null);
  const kind = kinds.find((one) => one.kind === kindName);
  const codes = Object.keys(data?.settings.alerts ?? {}).filter(
    (code) => code !== "mail" && code !== RECOVERED,
  );
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.target as HTMLFormElement);
    const text = (name: string): string => String(form.get(name) ?? "").trim();
    const given = (kind?.fields ?? []).flatMap(({ name, isSecret }) => {
      const value = text(`field ${name}`);
      // An empty secret field of a change keeps the secret.
      return channel !== null && isSecret && value === "" ? [] : [[name, value]];
    });
    const body = {
      ...(channel === null ? { kind: kindName } : {}),
      ...(text("name") === "" ? {} : { name: text("name") }),
      codes: isAll ? null : form.getAll("code").map(String),
      fields: Object.fromEntries(given),
    };
    const paths = apiPath(place, "alert-channels");
    const sent = await send<Made>({
      method: channel === null ? "POST" : "PUT",
      path: channel === null ? paths : apiPath(place, "alert-channels", channel.id),
      body,
      changes: [paths],
      done: channel === null ? "Channel added. Send a test to check it." : "Channel changed.",
    });
    if (sent === null) return;
    const made = sent.answer.signingSecret ?? null;
    if (made === null) onClose();
    else setSecret(made);
  };
  if (secret !== null)
    return html`<${Dialog} title="The signing secret" onClose=${onClose} mustAnswer>
      <${SecretOnce} secrets=${[{ label: "Signing secret", hint: "Your server verifies the signature of each message with it, as for call_url.", value: secret }]} />
      <div class="dialog-actions"><button type="button" class="primary" onClick=${onClose}>I stored the secret</button></div><//>`;
  const title = channel === null ? "Add an alert channel" : `Change ${channel.name}`;
  return html`<${Dialog} title=${title} onClose=${onClose} mustAnswer=${isSending}><form class="stack" onSubmit=${save}>
    ${
      channel === null &&
      html`<label class="field"><span>Service</span><select value=${kindName} onChange=${(event: Event) => setKindName((event.target as HTMLSelectElement).value)}>
        ${kinds.map((one) => html`<option key=${one.kind} value=${one.kind} selected=${one.kind === kindName}>${one.title}</option>`)}</select></label>`
    }
    <label class="field"><span>Name</span><input name="name" autocomplete="off" maxlength="60" placeholder=${kind?.title ?? ""} defaultValue=${channel?.name ?? ""} /></label>
    ${(kind?.fields ?? []).map(
      ({
        name,
        title,
        help,
        example,
        isSecret,
        isRequired,
      }) => html`<label class="field" key="${kindName} ${name}"><span>${title}${isRequired ? "" : " (optional)"}</span>
        <input name="field ${name}" type=${isSecret ? "password" : "text"} required=${isRequired && (channel === null || !isSecret)} autocomplete="off" spellcheck=${false} placeholder=${channel !== null && isSecret && channel.fingerprints[name] !== undefined ? "unchanged" : isSecret ? "" : example} defaultValue=${isSecret ? "" : (channel?.fields[name] ?? "")} />
        <small>${help}</small></label>`,
    )}
    <fieldset class="radios"><legend>Alerts</legend>
      <label><input type="radio" name="which" checked=${isAll} onChange=${() => setAll(true)} />All alerts</label>
      <label><input type="radio" name="which" checked=${!isAll} onChange=${() => setAll(false)} />Only these kinds</label></fieldset>
    ${
      !isAll &&
      html`<div class="channel-codes" role="group" aria-label="Kinds of alerts">${codes.map(
        (code) =>
          html`<label class="switch" key=${code}><input type="checkbox" name="code" value=${code} defaultChecked=${channel?.codes?.includes(code) ?? false} /><span>${formatKind(code) ?? code}</span></label>`,
      )}</div>`
    }
    ${kind?.signs === true && channel === null && html`<p class="quiet">Relay makes a secret that signs each message, and shows it once.</p>`}
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" disabled=${isSending} onClick=${onClose}>Cancel</button>
      <button class="primary" disabled=${isSending}>${isSending ? "Saving…" : channel === null ? "Add channel" : "Save"}</button></div>
  </form><//>`;
}
