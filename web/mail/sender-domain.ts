/** Settings of the sender domain: the domain, the DNS record that proves its ownership, and a button that checks the record. */
import { useState } from "preact/hooks";
import type { SettingsView } from "../../src/rules/settings/settings.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { CopyButton } from "../component/copy-button.ts";
import { Dialog } from "../component/dialog.ts";
import { LoadingState, Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { StateMark } from "../component/state-mark.ts";
import { Ago } from "../component/time.ts";
import { useSend } from "../component/use-send.ts";
import { SettingCard } from "../settings/setting-card.ts";
import { useSettings } from "../settings/use-settings.ts";

type Domain = NonNullable<SettingsView["senderDomain"]>;
interface Shown {
  senderDomain: Domain | null;
}

export function SenderDomain({ place }: { place: Place }): View {
  const path = apiPath(place, "sender-domain");
  const { data, error, reload } = useLoad<Shown>(path, 30_000);
  if (data === undefined) return html`<${LoadingState} error=${error} rows=${3} onRetry=${reload} />`;
  const domain = data.senderDomain;
  return html`<div class="settings">
    ${
      place.environment === "local" &&
      html`<${Notice} kind="info">In local development mail stays in the mailbox and needs no domain.<//>`
    }
    ${domain !== null && html`<${Record} place=${place} domain=${domain} />`}
    <${Form} key=${domain?.domain ?? ""} place=${place} domain=${domain} /></div>`;
}

/** Returns the API paths that are outdated after the domain changed or was verified. */
function pathsOf(place: Place): string[] {
  return ["sender-domain", "settings", "overview", "alerts"].map((part) => apiPath(place, part));
}

function Record({ place, domain }: { place: Place; domain: Domain }): View {
  const { send, isSending, error } = useSend();
  const [found, setFound] = useState<string | null>(null);
  const { settings } = useSettings(place);
  const isWithoutServer = settings?.mail.smtp === null && place.environment !== "local";
  const { record, verified } = domain;
  const check = async (): Promise<void> => {
    setFound(null);
    const path = apiPath(place, "sender-domain", "verify");
    const sent = await send<{ message: string }>({ method: "POST", path, changes: pathsOf(place) });
    if (sent !== null) setFound(sent.answer.message);
  };
  return html`<${SettingCard} title=${domain.domain} error=${error}>
    <p>${verified ? html`<${StateMark} state="done" word="Verified" /> <${Ago} at=${domain.verifiedAt} />: Relay sends mail from this domain.` : html`<${StateMark} state="queued" word="Not verified yet" />: Relay sends no mail until it finds the DNS record below.`}</p>
    <dl class="dns">
      <${Part} name="Type" value=${record.type} /><${Part} name="Name" value=${record.name} /><${Part} name="Value" value=${record.value} /></dl>
    <div class="form-actions"><button data-needs="edit_settings" type="button" class=${verified ? "" : "primary"} disabled=${isSending} onClick=${() => void check()}>
      ${isSending ? "Checking…" : "Check again"}</button>
      <span class="quiet">${domain.checkedAt === null ? "Not checked yet." : html`Last checked <${Ago} at=${domain.checkedAt} />.`}</span></div>
    <div role="status">${found !== null && html`<${Notice} kind=${verified ? "good" : "warn"}><${Sentence} text=${found} /><//>`}</div>
    ${verified && isWithoutServer && html`<p><b>Next:</b> <a href=${pagePath(place, "mail") + writeQuery({ tab: "server" })}>set the mail server</a> that sends it.</p>`}
    ${!verified && html`<p class="quiet">Create this record at your DNS provider, then check again. It can take an hour until it is visible.</p>`}
  <//>`;
}

function Part({ name, value }: { name: string; value: string }): View {
  return html`<div><dt>${name}</dt><dd class="copy-row"><code>${value}</code><${CopyButton} text=${value} label="Copy the record’s ${name.toLowerCase()}" /></dd></div>`;
}

function Form({ place, domain }: { place: Place; domain: Domain | null }): View {
  const { send, isSending, error } = useSend();
  const [isRemoving, setRemoving] = useState(false);
  const path = apiPath(place, "sender-domain");
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const data = new FormData(event.target as HTMLFormElement);
    const text = (name: string): string => String(data.get(name) ?? "").trim();
    const body = { domain: text("domain"), eventWord: text("eventWord"), accountWord: text("accountWord") };
    await send({
      method: "PUT",
      path,
      body,
      changes: pathsOf(place),
      done: `Domain saved. Relay sends mail from ${body.domain} when it is verified.`,
    });
  };
  const remove = async (): Promise<void> => {
    const done = "Domain removed. Relay sends no mail.";
    if ((await send({ method: "DELETE", path, changes: pathsOf(place), done })) !== null) setRemoving(false);
  };
  return html`<${SettingCard} title=${domain === null ? "Send mail from your domain" : "Change the domain"} error=${isRemoving ? null : error}>
    <form class="stack" onSubmit=${save}>
      <label class="field setting-narrow"><span>Domain</span><input name="domain" required autocomplete="off" spellcheck=${false} placeholder="example.com" defaultValue=${domain?.domain ?? ""} /></label>
      <div class="setting-line">
        <label class="field setting-narrow"><span>Event mail: part before the @</span><input name="eventWord" required autocomplete="off" defaultValue=${domain?.eventWord ?? "event"} /></label>
        <label class="field setting-narrow"><span>Account mail: part before the @</span><input name="accountWord" required autocomplete="off" defaultValue=${domain?.accountWord ?? "account"} /></label></div>
      <div class="form-actions"><button data-needs="edit_settings" class=${domain === null ? "primary" : ""} disabled=${isSending}>${isSending ? "Saving…" : domain === null ? "Set domain" : "Save"}</button>
        ${domain !== null && html`<button data-needs="edit_settings" type="button" class="quiet-danger" onClick=${() => setRemoving(true)}>Remove…</button>`}</div></form>
    <p class="quiet">${domain === null ? "You get a DNS record that proves that you own the domain. Relay sends mail when it finds the record." : "A new domain has its own record and must be verified again."}</p>
    ${
      isRemoving &&
      html`<${Dialog} title="Remove ${domain?.domain}?" onClose=${() => setRemoving(false)}>
        <p>Relay stops sending mail at once: <code>email_person</code> fails, and alerts appear only in the dashboard.</p>
        ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
        <div class="dialog-actions"><button type="button" onClick=${() => setRemoving(false)}>Cancel</button>
          <button type="button" class="danger" disabled=${isSending} onClick=${() => void remove()}>Remove domain</button></div><//>`
    }<//>`;
}
