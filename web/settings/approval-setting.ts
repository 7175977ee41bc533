/** Setting of production: another person than the one who asks must approve each change of the relays and the catalog. */
import { html, type View } from "../base/html.ts";
import type { Place } from "../base/place.ts";
import { SettingCard, SettingSwitch } from "./setting-card.ts";
import { useSettings } from "./use-settings.ts";

export function ApprovalSetting({ place }: { place: Place }): View {
  const { settings, error, change } = useSettings(place);
  if (settings === undefined || place.environment !== "production") return null;
  const set = (secondPerson: boolean) =>
    change(
      { approvals: { secondPerson } },
      secondPerson
        ? "Changes of production need a second person now."
        : "One owner can change production again.",
    );
  return html`<${SettingCard} title="Changes of production" error=${error}>
    <${SettingSwitch} label="Needs a second person" isOn=${settings.approvals.secondPerson} onSet=${set} />
    <p class="quiet">Relays and the catalog then change only by an approval, and the person who asks cannot approve. Hold still stops everything at once.</p>
  <//>`;
}
