/** List of relays, those with failures first. */
import type { OverviewView } from "../../src/insight/overview/overview.ts";
import { formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import { formatTimesIn, useNow } from "../base/time-words.ts";
import { RelayBar, totalOf } from "../relay/relay-bar.ts";
import { HealthMark } from "../relay/relay-health.ts";

export function RelaysByTrouble({
  place,
  data: { relays, relayCount },
}: {
  place: Place;
  data: OverviewView;
}): View {
  const now = useNow(60_000);
  if (relays.length === 0) return null;
  const most = Math.max(0, ...relays.map(({ last24h }) => totalOf(last24h)));
  return html`<section class="block" aria-label="Relays"><div class="block-head"><h2>Relays</h2>
      ${relayCount > relays.length && html`<a href=${pagePath(place, "relays")}>All ${formatNumber(relayCount)}</a>`}</div>
    <table class="list home-relays"><thead><tr><th scope="col">Relay</th><th scope="col">Health</th><th scope="col">Last 24 hours</th></tr></thead>
      <tbody>${relays.map(
        (relay) => html`<tr key=${relay.name}>
          <td class="cell-main"><a data-row href=${pagePath(place, "relays", relay.name)}>${relay.name}</a></td>
          <td><span title=${formatTimesIn(relay.health.message, now)}><${HealthMark} health=${relay.health} /></span></td>
          <td><${RelayBar} counts=${relay.last24h} most=${most} /></td></tr>`,
      )}</tbody></table></section>`;
}
