/** Whether the tools that editors and assistants are offered may change anything, with a secret key of this environment. */
import type { SettingsView } from "../../src/setting/setting.ts";
import { html, type View } from "../ground/html.ts";
import { apiPath, type Place } from "../ground/place.ts";
import { useLoad } from "../ground/use-load.ts";
import { Notice } from "../part/notice.ts";
import { Sentence } from "../part/sentence.ts";
import { useSend } from "../part/use-send.ts";

export function ConnectorSetting({ place }: { place: Place }): View {
  const path = apiPath(place, "settings");
  const { data, reload, put } = useLoad<{ settings: SettingsView }>(path);
  const { isSending, error, send } = useSend();
  if (data === undefined) return null;
  const { version, connector } = data.settings;
  const set = async (writes: boolean): Promise<void> => {
    const sent = await send<{ settings: SettingsView }>({
      method: "PUT",
      path,
      body: { version, connector: { writes } },
      done: writes ? "The connector's tools may change things now." : "The connector only reads now.",
    });
    if (sent === null) reload();
    else put(sent.answer);
  };
  return html`<section class="card signin-setting"><h2>The connector (MCP)</h2>
    <div class="radios"><label><input type="checkbox" checked=${connector.writes} disabled=${isSending}
      onChange=${(event: Event) => void set((event.target as HTMLInputElement).checked)} />Tools that change something</label></div>
    <p class="quiet">Editors and assistants reach this environment by <code>relay mcp</code> or its address with a secret key. Without this they read, validate and explain, and nothing else.</p>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
  </section>`;
}
