/** The relays, those in trouble first. */
import type { OverviewView } from "../../src/overview/overview.ts";
import { sayNumber } from "../ground/count-words.ts";
import { html, type View } from "../ground/html.ts";
import { type Place, pagePath } from "../ground/place.ts";
import { StateMark } from "../part/state-mark.ts";
import { RelayBar, totalOf } from "../relay/relay-bar.ts";
import { sayKind } from "../watch/kind-words.ts";

type Relay = OverviewView["relays"][number];

export function RelaysByTrouble({
  place,
  data: { relays, relayCount },
}: {
  place: Place;
  data: OverviewView;
}): View {
  if (relays.length === 0) return null;
  const most = Math.max(0, ...relays.map(({ last24h }) => totalOf(last24h)));
  return html`<section class="block" aria-label="Relays"><div class="block-head"><h2>Relays</h2>
      ${relayCount > relays.length && html`<a href=${pagePath(place, "relays")}>All ${sayNumber(relayCount)}</a>`}</div>
    <table class="list home-relays"><thead><tr><th scope="col">Relay</th><th scope="col">Health</th><th scope="col">Last 24 hours</th></tr></thead>
      <tbody>${relays.map(
        (relay) => html`<tr key=${relay.name}>
          <td class="cell-main"><a data-row href=${pagePath(place, "relays", relay.name)}>${relay.name}</a></td>
          <td><${Health} relay=${relay} /></td>
          <td><${RelayBar} counts=${relay.last24h} most=${most} /></td></tr>`,
      )}</tbody></table></section>`;
}

function Health({ relay: { state, needs, last24h } }: { relay: Relay }): View {
  const [need] = needs;
  const total = totalOf(last24h);
  if (need === "relay_failed" && total > 0) {
    const share = Math.round((last24h.dead / total) * 100);
    return html`<${StateMark} state="dead" word=${last24h.dead > 0 ? `Failing, ${Math.max(1, share)} % dead` : "Dead events"} />`;
  }
  if (need !== undefined) return html`<${StateMark} state="failed" word=${sayKind(need) ?? need} />`;
  if (state === "paused") return html`<${StateMark} state="paused" />`;
  if (total === 0) return html`<${StateMark} state="skipped" word="Quiet" />`;
  return html`<${StateMark} state="ok" />`;
}
