/** Names the limits of which the environment uses a large part. */
import type { LimitUsage } from "../../src/insight/overview/limit-usage.ts";
import { formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Notice } from "../component/notice.ts";

const REFRESH_MS = 60_000;
/** The share of a limit from which Home names it. */
const NEAR = 0.6;

export function useLimits(place: Place): readonly LimitUsage[] {
  return useLoad<{ limits: LimitUsage[] }>(apiPath(place, "limits"), REFRESH_MS).data?.limits ?? [];
}

export function NearLimits({ place }: { place: Place }): View {
  const near = useLimits(place).filter(({ used, limit }) => used >= NEAR * limit);
  if (near.length === 0) return null;
  return html`<${Notice} kind="warn"><b>This environment has used ${100 * NEAR} % or more of these limits:</b>
    <ul>${near.map(
      ({ name, counts, used, limit }) =>
        html`<li key=${name}>${formatNumber(used)} of ${formatNumber(limit)} (${Math.floor((100 * used) / limit)} %): ${counts}</li>`,
    )}</ul>
    <a href="${pagePath(place, "settings")}?tab=limits">Show the limits</a><//>`;
}
