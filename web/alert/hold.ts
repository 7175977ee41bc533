/** Banner for an environment on hold. Every page shows it, because a hold is the first reason why no relay runs. */
import type { SettingsView } from "../../src/rules/settings/settings.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { AskOwner } from "../component/ask-owner.ts";
import { Notice } from "../component/notice.ts";
import { Moment } from "../component/time.ts";

const REFRESH_MS = 15_000;

/** Returns when the hold began, or null without a hold and while loading. */
export function useHeldAt(place: Place): string | null {
  const path = apiPath(place, "settings");
  return useLoad<{ settings: SettingsView }>(path, REFRESH_MS).data?.settings.heldAt ?? null;
}

export function HoldBanner({ place }: { place: Place }): View {
  const heldAt = useHeldAt(place);
  if (heldAt === null) return null;
  return html`<${Notice} kind="warn">This environment has been on hold since <${Moment} at=${heldAt} />: Relay stores new events but runs none. Schedules create no events. Release the hold to run the stored events. <a data-needs="edit_settings" href=${pagePath(place, "settings")}>Release it in Settings</a><${AskOwner} needs="edit_settings" to="release it" /><//>`;
}
