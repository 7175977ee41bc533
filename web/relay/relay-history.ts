/** The versions of a relay's definition. */
import type { Relay, SavedRelay } from "../ground/answer.ts";
import { html, type View } from "../ground/html.ts";
import type { Place } from "../ground/place.ts";
import { Ago } from "../part/time.ts";
import { RelayOrigin } from "./relay-origin.ts";

interface Props {
  place: Place;
  relay: Relay;
  onSaved: (saved: SavedRelay) => void;
}

export function RelayHistory({ relay }: Props): View {
  return html`<section class="block" aria-label="History"><div class="block-head"><h2>Version ${relay.version}</h2>
    <span class="quiet"><${RelayOrigin} origin=${relay.origin} /></span></div>
    <p class="quiet">The relay was made <${Ago} at=${relay.createdAt} />.</p></section>`;
}
