/** The last 24 hours as stacked bars, one an hour; each is a link to the events of its hour and says them in words. */
import type { HourView } from "../../src/overview/day.ts";
import { writeQuery } from "../ground/api.ts";
import { sayNumber } from "../ground/count-words.ts";
import { html, type View } from "../ground/html.ts";
import { type Place, pagePath } from "../ground/place.ts";
import { sayMoment, useNow } from "../ground/time-words.ts";
import { sayCounts, totalOf } from "../relay/relay-bar.ts";

/** From the ground up. */
const PARTS = ["done", "waiting", "failed", "dead"] as const;
const HEIGHT = 100;
/** What is there at all can be seen. */
const LEAST = 2.5;
const HOUR_MS = 3_600_000;
/** Every sixth hour is named. */
const NAMED = 6;

export function HourBars({ place, hours }: { place: Place; hours: readonly HourView[] }): View {
  const now = useNow(60_000);
  const most = Math.max(1, ...hours.map(totalOf));
  return html`<figure class="hours" aria-label="Events by hour, by how they stand now">
    <figcaption class="hours-most" aria-hidden="true">${sayNumber(most)}</figcaption>
    <ol class="hours-bars">${hours.map((hour, at) => {
      const until = new Date(Date.parse(hour.at) + HOUR_MS).toISOString();
      const words = `${sayMoment(hour.at, now)} to ${sayMoment(until, now)}: ${sayCounts(hour)}`;
      const href = pagePath(place, "events") + writeQuery({ since: hour.at, until });
      const named = (hours.length - 1 - at) % NAMED === 0;
      return html`<li key=${hour.at}>
        ${
          totalOf(hour) === 0
            ? html`<span class="hour" title=${words}><${Bar} hour=${hour} most=${most} /></span>`
            : html`<a class="hour" href=${href} title=${words} aria-label=${words}><${Bar} hour=${hour} most=${most} /></a>`
        }
        ${named && html`<span class="hour-name" aria-hidden="true">${at === hours.length - 1 ? "now" : sayMoment(hour.at, Date.parse(hour.at))}</span>`}
      </li>`;
    })}</ol>
  </figure>`;
}

function Bar({ hour, most }: { hour: HourView; most: number }): View {
  let top = HEIGHT;
  return html`<svg viewBox="0 0 10 ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true" focusable="false">
    <rect class="hour-ground" y=${HEIGHT - 1} width="10" height="1" />
    ${PARTS.map((part) => {
      if (hour[part] === 0) return null;
      const height = Math.min(top, Math.max(LEAST, (hour[part] / most) * HEIGHT));
      top -= height;
      return html`<rect key=${part} class="bar-${part}" y=${top} width="10" height=${height} />`;
    })}</svg>`;
}
