/** Whether the environment is on hold, told on every page: it is the first answer to why nothing runs. */
import type { SettingsView } from "../../src/rules/settings/settings.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Notice } from "../component/notice.ts";
import { Moment } from "../component/time.ts";

const REFRESH_MS = 15_000;

/** When the hold began, or null; also null until it is known. */
export function useHeldAt(place: Place): string | null {
  const path = apiPath(place, "settings");
  return useLoad<{ settings: SettingsView }>(path, REFRESH_MS).data?.settings.heldAt ?? null;
}

export function HoldBanner({ place }: { place: Place }): View {
  const heldAt = useHeldAt(place);
  if (heldAt === null) return null;
  return html`<${Notice} kind="warn">This environment has been on hold since <${Moment} at=${heldAt} />: events are recorded and wait. Schedules record nothing. No relay runs until the hold is released. <a href=${pagePath(place, "settings")}>Release it in the settings</a><//>`;
}
