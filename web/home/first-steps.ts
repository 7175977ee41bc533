/** Steps before the first event arrives. Each step is marked as done when the service sees its result. */
import type { OverviewView } from "../../src/insight/overview/overview.ts";
import type { Page, RelayItem } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Icon } from "../component/icon.ts";

interface Step {
  done: boolean;
  title: string;
  words: string;
  to: string;
  /** Label of the link, or null while the step has none. */
  link: string | null;
}

export function FirstSteps({
  place,
  start,
}: {
  place: Place;
  start: NonNullable<OverviewView["start"]>;
}): View {
  const { relay, secret, called, key } = start;
  const own = relay === null ? pagePath(place, "relays", "new") : pagePath(place, "relays", relay);
  const isLive = place.environment === "production";
  const steps: Step[] = [
    useFirstRelay(place, relay !== null),
    {
      done: secret,
      title: "Give its URL and secret to the sender",
      words:
        "Both stand on the relay’s page, with what else it needs. A provider that makes its own secret gives you that one to store instead.",
      to: own,
      link: relay === null ? null : `Open ${relay}`,
    },
    {
      done: called,
      title: "Let the sender call it",
      words: `The first call is seen here at once, right or wrong, with why.${isLive ? "" : " A test event from the relay’s page does as well."}`,
      to: own,
      link: relay === null ? null : isLive ? `Open ${relay}` : "Send a test event",
    },
    {
      done: false,
      title: "See the first event",
      words: "Every call that verifies becomes an event, with what each action did.",
      to: pagePath(place, "requests"),
      link: called ? "Why did it become no event?" : null,
    },
    {
      done: key,
      title: "Let your app and server in",
      words:
        "With a key they ask what a person has, and follow what happens. A relay that a provider calls works without one.",
      to: pagePath(place, "settings") + writeQuery({ tab: "keys" }),
      link: "Make a key",
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
        <div><h3>${title}${done && html`<span class="off-screen"> (done)</span>`}</h3>
          ${!done && html`<p>${words}</p>`}
          ${
            link !== null &&
            !done &&
            (at === next || at === 4) &&
            html`<a class=${at === next && at < 2 ? "button primary" : "button"} href=${to}>${link}</a>`
          }</div>
      </li>`,
    )}</ol>
  </section>`;
}

/** Returns the step that makes a relay. A relay for production is first made in development, then promoted. */
function useFirstRelay(place: Place, done: boolean): Step {
  const isLive = place.environment === "production";
  const tried: Place = isLive ? { app: place.app, environment: "development" } : place;
  const { data } = useLoad<Page<RelayItem>>(`${apiPath(tried, "relays")}?limit=1`);
  const rule =
    "A rule: when something happens — a provider’s signed webhook, a time of day, a changed record — run up to ten actions, each exactly once.";
  if (!isLive)
    return {
      done,
      title: "Make a relay",
      words: rule,
      to: pagePath(place, "relays", "new"),
      link: "Start from a working example",
    };
  const hasTried = data !== undefined && data.items.length > 0;
  return {
    done,
    title: "Carry a relay here from development",
    words: hasTried
      ? "What was tried there is shown as it would change production, and carried once you approve it."
      : `${rule} Make it in development, where a test event shows what it does, and carry it here.`,
    to: pagePath(tried, "relays", ...(hasTried ? ["to", "production"] : ["new"])),
    link: data === undefined ? null : hasTried ? "Promote to production…" : "Make a relay in development",
  };
}
