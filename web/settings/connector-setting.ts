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
      writes ? "The connector’s tools may change things now." : "The connector only reads now.",
    );
  return html`<${SettingCard} title="The connector (MCP)" error=${error}>
    <${SettingSwitch} label="Tools that change something" isOn=${settings.connector.writes} onSet=${set} />
    <p class="quiet">Editors and assistants reach this environment by <code>relay mcp</code> or its address with a secret key. Without this they read, validate and explain, and nothing else.</p>
  <//>`;
}
