/** Settings of outgoing mail: the switch, the mail server (its password is never shown again), the sender's name, a test and the limits. */
import { useState } from "preact/hooks";
import type { SettingsView } from "../../src/rules/settings/settings.ts";
import { writeQuery } from "../base/api.ts";
import { formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import { ErrorState, Notice, Skeleton } from "../component/notice.ts";
import { Ago } from "../component/time.ts";
import { SettingCard, SettingSwitch } from "../settings/setting-card.ts";
import { useSettings } from "../settings/use-settings.ts";
import { TestMail } from "./test-mail.ts";

type Smtp = NonNullable<SettingsView["mail"]["smtp"]>;

const PORTS: Readonly<Record<Smtp["security"], number>> = { starttls: 587, tls: 465, none: 25 };

export function MailServer({ place }: { place: Place }): View {
  const { settings, loadError, reload } = useSettings(place);
  if (settings === undefined)
    return loadError === null
      ? html`<${Skeleton} />`
      : html`<${ErrorState} error=${loadError} onRetry=${reload} />`;
  const { limits } = settings;
  return html`<div class="settings">
    ${place.environment === "local" && html`<${Notice} kind="info">In local development Relay sends no mail. All mail stays in the mailbox here.<//>`}
    <${Sends} place=${place} /><${Server} key=${settings.mail.smtp?.host ?? ""} place=${place} /><${Names} place=${place} />
    <${SettingCard} title="Test"><p>Send a test mail to yourself with these settings.</p><${TestMail} place=${place} tellsHere /><//>
    <${SettingCard} title="Limits"><p>At most ${formatNumber(limits.emailsPerHour ?? 0)} mails from relays per hour for the whole app, and ${formatNumber(limits.eventEmailsPerPersonPerDay ?? 0)} event mails per person and day. Relay retries mail over these limits later. <a href=${pagePath(place, "settings") + writeQuery({ tab: "limits" })}>All limits</a></p><//>
  </div>`;
}

function Sends({ place }: { place: Place }): View {
  const { settings, error, change } = useSettings(place);
  const set = (sends: boolean) =>
    change({ mail: { sends } }, sends ? "Mail from relays is on." : "Mail from relays is off.");
  return html`<${SettingCard} title="Sending" error=${error}>
    <${SettingSwitch} label="Relays send mail" isOn=${settings?.mail.sends ?? true} onSet=${set} />
    <p class="quiet">If this is off, <code>email_person</code> fails with <code>sends_off</code>, and Relay retries the events until you turn it on.</p><//>`;
}

function Server({ place }: { place: Place }): View {
  const { settings, isSending, error, change } = useSettings(place);
  const smtp = settings?.mail.smtp ?? null;
  const domain = settings?.senderDomain ?? null;
  const [security, setSecurity] = useState<Smtp["security"]>(smtp?.security ?? "starttls");
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const data = new FormData(form);
    const text = (name: string): string => String(data.get(name) ?? "").trim();
    const password = String(data.get("password") ?? "");
    const port = text("port") === "" ? {} : { port: Number(text("port")) };
    const secret = password === "" ? {} : { password };
    const server = { host: text("host"), ...port, security, username: text("username"), ...secret };
    const done = "Mail server saved. Send a test mail to check it.";
    const field = form.querySelector<HTMLInputElement>("[name=password]");
    if ((await change({ mail: { smtp: server } }, done)) && field !== null) field.value = "";
  };
  return html`<${SettingCard} title="Mail server (SMTP)" error=${error}>
    ${smtp === null && html`<p><b>No mail server is set:</b> Relay sends no mail, and alerts appear only in the dashboard.</p>`}
    ${smtp !== null && domain?.verified !== true && place.environment !== "local" && html`<p><b>Next:</b> Relay sends no mail until the <a href=${pagePath(place, "mail") + writeQuery({ tab: "domain" })}>sender domain</a> is ${domain === null ? "set and " : ""}verified.</p>`}
    <form class="stack" onSubmit=${save}>
      <div class="setting-line">
        <label class="field"><span>Host</span><input name="host" required autocomplete="off" spellcheck=${false} placeholder="smtp.example.com" defaultValue=${smtp?.host ?? ""} /></label>
        <label class="field port"><span>Port</span><input name="port" inputmode="numeric" pattern="[0-9]{1,5}" autocomplete="off" placeholder=${String(PORTS[security])} defaultValue=${smtp === null ? "" : String(smtp.port)} /></label></div>
      <label class="field setting-narrow"><span>Security</span><select value=${security} onChange=${(event: Event) => setSecurity((event.target as HTMLSelectElement).value as Smtp["security"])}>
        <option value="starttls" selected=${security === "starttls"}>STARTTLS, usually port 587</option>
        <option value="tls" selected=${security === "tls"}>TLS from the first byte, usually port 465</option>
        <option value="none" selected=${security === "none"}>None: a server on this machine</option></select></label>
      <div class="setting-line">
        <label class="field"><span>User name</span><input name="username" autocomplete="off" spellcheck=${false} defaultValue=${smtp?.username ?? ""} /></label>
        <label class="field"><span>Password</span><input name="password" type="password" autocomplete="off" placeholder=${smtp?.passwordSetAt ? "unchanged" : ""} /></label></div>
      ${smtp?.passwordSetAt && html`<p class="quiet">Password set <${Ago} at=${smtp.passwordSetAt} />. It is never shown. If you change the host or user name, enter it again.</p>`}
      <div class="form-actions"><button data-needs="edit_settings" class=${smtp === null ? "primary" : ""} disabled=${isSending}>${isSending ? "Saving…" : "Save mail server"}</button>
        ${smtp !== null && html`<button data-needs="edit_settings" type="button" class="quiet-danger" disabled=${isSending} onClick=${() => void change({ mail: { smtp: null } }, "Mail server removed. Relay sends no mail.")}>Remove</button>`}</div>
    </form><//>`;
}

function Names({ place }: { place: Place }): View {
  const { settings, isSending, error, change } = useSettings(place);
  const mail = settings?.mail;
  const save = (event: SubmitEvent): void => {
    event.preventDefault();
    const data = new FormData(event.target as HTMLFormElement);
    const text = (name: string): string => String(data.get(name) ?? "").trim();
    void change({ mail: { fromName: text("fromName"), replyTo: text("replyTo") } }, "Sender name saved.");
  };
  return html`<${SettingCard} title="Sender and replies" error=${error}>
    <form class="setting-line" onSubmit=${save}>
      <label class="field"><span>Sender name</span><input name="fromName" autocomplete="off" maxlength="100" placeholder="Ada’s Shop" defaultValue=${mail?.fromName ?? ""} /></label>
      <label class="field"><span>Reply-to address</span><input name="replyTo" type="email" autocomplete="off" placeholder="the sender" defaultValue=${mail?.replyTo ?? ""} /></label>
      <button data-needs="edit_settings" disabled=${isSending}>${isSending ? "Saving…" : "Save"}</button></form>
    <p class="quiet">The From address uses the <a href=${pagePath(place, "mail") + writeQuery({ tab: "domain" })}>sender domain</a>.</p><//>`;
}
