/** Settings that say which alerts the owners get, and whether Relay mails them. */
import type { OwnerView } from "../../src/platform/account/owner.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { ErrorState, Skeleton } from "../component/notice.ts";
import { SettingCard, SettingSwitch } from "../settings/setting-card.ts";
import { useSettings } from "../settings/use-settings.ts";
import { formatKind } from "./kind-text.ts";

/** Name of the switch for alerts by mail, next to the codes of alerts. */
const MAIL = "mail";

export function AlertSwitches({ place }: { place: Place }): View {
  const { settings, loadError, reload, error, change } = useSettings(place);
  const owners = useLoad<{ owners: OwnerView[] }>("/api/owners").data?.owners ?? [];
  if (settings === undefined)
    return loadError === null
      ? html`<${Skeleton} />`
      : html`<${ErrorState} error=${loadError} onRetry=${reload} />`;
  const { alerts, mail, senderDomain } = settings;
  const isLocal = place.environment === "local";
  const set = (code: string, words: string) => (isOn: boolean) =>
    change({ alerts: { [code]: isOn } }, isOn ? `On: ${words}.` : `Off: ${words}.`);
  const to = (tab: string): string => pagePath(place, "mail") + writeQuery({ tab });
  const leaves = isLocal || (mail.smtp !== null && senderDomain?.verified === true);
  return html`<div class="settings">
    <${SettingCard} title="By mail" error=${error}>
      <${SettingSwitch} label="Mail alerts to the owners" isOn=${alerts[MAIL] ?? true} onSet=${set(MAIL, "alerts by mail")} />
      <p class="quiet">To ${owners.length === 0 ? "every owner" : owners.map(({ email }) => email).join(", ")}: at most one mail in 15 minutes, with all alerts of that time.
        ${isLocal && " In local development the mail stays in the mailbox."}</p>
      <p class="quiet"><a href=${pagePath(place, "alerts") + writeQuery({ tab: "channels" })}>Channels</a> also send alerts to Slack, Discord and other places.</p>
      ${!leaves && html`<p><b>No alert is mailed yet:</b> alert mail needs a <a href=${to("server")}>mail server</a> and a verified <a href=${to("domain")}>sender domain</a> in this environment.</p>`}
    <//>
    <${SettingCard} title="Alert settings">
      ${Object.keys(alerts)
        .filter((code) => code !== MAIL)
        .map((code) => {
          const words = formatKind(code) ?? code;
          const label = html`${words} <code class="code">${code}</code>`;
          return html`<${SettingSwitch} key=${code} label=${label} isOn=${alerts[code] ?? true} onSet=${set(code, words)} />`;
        })}
      <p class="quiet">A cleared box stops new alerts of that kind. Home still shows the problems and the dead events.</p><//>
  </div>`;
}
