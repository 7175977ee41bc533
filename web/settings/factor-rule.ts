/** The rule of the server that each member needs a second factor. */
import { html, type View } from "../base/html.ts";
import { useLoad } from "../base/use-load.ts";
import { useSend } from "../component/use-send.ts";
import { SettingCard } from "./setting-card.ts";

const PATH = "/api/second-factor";

export function FactorRule(): View {
  const { data } = useLoad<{ required: boolean; given: boolean }>(PATH, 60_000);
  const { send, isSending, error } = useSend();
  if (data === undefined) return null;
  const set = (required: boolean): unknown =>
    send({
      method: "PUT",
      path: PATH,
      body: { required },
      changes: [PATH, "/api/session/factors"],
      done: required ? "Each member needs a second factor now." : "A second factor is optional now.",
    });
  return html`<div class="settings setting-after"><${SettingCard} title="Second factor" error=${error}>
    <label class="switch"><input type="checkbox" checked=${data.required} disabled=${isSending || data.given} onChange=${(
      event: Event,
    ) => {
      const box = event.target as HTMLInputElement;
      const wanted = box.checked;
      // The box shows the rule of the server until the server takes the change.
      box.checked = data.required;
      set(wanted);
    }} /><span>Each member needs a second factor</span></label>
    <p class="quiet">${
      data.given
        ? html`The server was started with <code>--second-factor</code>, which decides.`
        : "A member without one can only add one after the sign-in."
    }</p>
  <//></div>`;
}
