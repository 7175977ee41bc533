/** Setting that allows the MCP connector's tools to change something. The tools use a secret key of this environment. */
import { html, type View } from "../base/html.ts";
import type { Place } from "../base/place.ts";
import { SettingCard, SettingSwitch } from "./setting-card.ts";
import { useSettings } from "./use-settings.ts";

export function ConnectorSetting({ place }: { place: Place }): View {
  const { settings, error, change } = useSettings(place);
  if (settings === undefined) return null;
  const set = (writes: boolean) =>
    change(
      { connector: { writes } },
      writes ? "The connector can change things now." : "The connector can only read now.",
    );
  return html`<${SettingCard} title="The connector (MCP)" error=${error}>
    <${SettingSwitch} label="Allow tools that change data" isOn=${settings.connector.writes} onSet=${set} />
    <p class="quiet">Editors and assistants can connect to this environment with <code>relay mcp</code> or at its address with a secret key. If this is off, they can only read, validate and explain.</p>
  <//>`;
}
