/** Settings that allow the MCP connector's tools to change something, and to save relays and the catalog. The tools use a secret key of this environment. */
import { html, type View } from "../base/html.ts";
import type { Place } from "../base/place.ts";
import { SettingCard, SettingSwitch } from "./setting-card.ts";
import { useSettings } from "./use-settings.ts";

export function ConnectorSetting({ place }: { place: Place }): View {
  const { settings, error, change } = useSettings(place);
  if (settings === undefined) return null;
  const { writes, saves } = settings.connector;
  const setWrites = (isOn: boolean) =>
    change(
      { connector: { writes: isOn } },
      isOn ? "The connector can change things now." : "The connector can only read now.",
    );
  const setSaves = (isOn: boolean) =>
    change(
      { connector: { saves: isOn } },
      isOn
        ? "The connector can save relays and the catalog now."
        : "The connector can no longer save relays and the catalog.",
    );
  return html`<${SettingCard} title="The connector (MCP)" error=${error}>
    <${SettingSwitch} label="Allow tools that change data" isOn=${writes} onSet=${setWrites} />
    <p class="quiet">Editors and assistants can connect to this environment with <code>relay mcp</code> or at its address with a secret key. If this is off, they can only read, validate and explain.</p>
    ${writes && place.environment !== "production" && html`<${SettingSwitch} label="Allow tools that save relays and the catalog" isOn=${saves} onSet=${setSaves} />`}
  <//>`;
}
