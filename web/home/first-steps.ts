/** What is to do before the first event arrives; each step ticks itself, as soon as the service has seen it. */
import type { OverviewView } from "../../src/overview/overview.ts";
import { html, type View } from "../ground/html.ts";
import { type Place, pagePath } from "../ground/place.ts";
import { Icon } from "../part/icon.ts";

export function FirstSteps({
  place,
  start: { relay, secret, called },
}: {
  place: Place;
  start: NonNullable<OverviewView["start"]>;
}): View {
  const own = relay === null ? pagePath(place, "relays", "new") : pagePath(place, "relays", relay);
  const steps = [
    {
      done: relay !== null,
      title: "Make a relay",
      words:
        "A rule: when something happens — a provider’s signed webhook, a time of day, a changed record — run up to ten actions, each exactly once.",
      to: pagePath(place, "relays", "new"),
      link: "Start from a working example",
    },
    {
      done: secret,
      title: "Give its URL and secret to the sender",
      words:
        "Both stand on the relay’s page. A provider that makes its own secret gives you that one to store instead.",
      to: own,
      link: relay === null ? null : `Open ${relay}`,
    },
    {
      done: called,
      title: "Let the sender call it",
      words:
        "The first call is seen here at once, right or wrong, with why. A test event from the relay’s page does as well.",
      to: called ? pagePath(place, "calls") : own,
      link: called ? "See the calls" : relay === null ? null : "Send a test event",
    },
    {
      done: false,
      title: "See the first event",
      words: "Every call that verifies becomes an event, with what each action did.",
      to: pagePath(place, "events"),
      link: called ? "Why did it become no event?" : null,
    },
  ];
  const next = steps.findIndex(({ done }) => !done);
  return html`<section class="first" aria-label="First steps">
    <h2>${relay === null ? "No relays yet" : "Nothing has happened yet"}</h2>
    <ol class="first-steps">${steps.map(
      (
        { done, title, words, to, link },
        at,
      ) => html`<li key=${title} class=${done ? "first-step done" : at === next ? "first-step next" : "first-step"}>
        <span class="first-mark" aria-hidden="true">${done ? html`<${Icon} name="check" size=${14} />` : at + 1}</span>
        <div><h3>${title}${done && html`<span class="ears"> (done)</span>`}</h3>
          ${!done && html`<p>${words}</p>`}
          ${
            link !== null &&
            (at === next || (at === 3 && called)) &&
            html`<a class=${at === next && at < 2 ? "button primary" : "button"} href=${at === 3 ? pagePath(place, "calls") : to}>${link}</a>`
          }</div>
      </li>`,
    )}</ol>
  </section>`;
}
