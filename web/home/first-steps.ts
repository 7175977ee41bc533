/** Steps before the first event arrives. Each step is marked as done when the service sees its result. */
import type { OverviewView } from "../../src/insight/overview/overview.ts";
import type { Permission } from "../../src/platform/account/permission.ts";
import type { Page, RelayItem } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { AskOwner } from "../component/ask-owner.ts";
import { Icon } from "../component/icon.ts";

interface Step {
  done: boolean;
  title: string;
  words: string;
  to: string;
  /** Label of the link, or null while the step has none. */
  link: string | null;
  /** The permission of the step. Absent: everyone can do it. */
  needs?: Permission;
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
      title: "Give the URL and secret to the sender",
      words:
        "The page of the relay shows both. If the provider creates the secret, store that secret in the relay instead.",
      to: own,
      link: relay === null ? null : `Open ${relay}`,
    },
    {
      done: called,
      title: "Receive the first request",
      words: `The first request appears here at once, with the cause if Relay rejects it.${isLive ? "" : " You can also send a test event from the page of the relay."}`,
      to: own,
      link: relay === null ? null : isLive ? `Open ${relay}` : "Send a test event",
      ...(isLive ? {} : { needs: "edit_definitions" }),
    },
    {
      done: false,
      title: "Open the first event",
      words: "Each verified request becomes an event with the result of each action.",
      to: pagePath(place, "requests"),
      link: called ? "Show the cause" : null,
    },
    {
      done: key,
      title: "Connect your app and server",
      words: "With a key, your app and server can ask what a person has. Relays work without a key.",
      to: pagePath(place, "settings") + writeQuery({ tab: "keys" }),
      link: "Create a key",
      needs: "manage_keys",
    },
  ];
  const next = steps.findIndex(({ done }) => !done);
  return html`<section class="first" aria-label="First steps">
    <h2>${relay === null ? "No relays yet" : "Nothing has happened yet"}</h2>
    <ol class="first-steps">${steps.map(
      (
        { done, title, words, to, link, needs },
        at,
      ) => html`<li key=${title} class=${done ? "first-step done" : at === next ? "first-step next" : "first-step"}>
        <span class="first-mark" aria-hidden="true">${done ? html`<${Icon} name="check" size=${14} />` : at + 1}</span>
        <div><h3>${title}${done && html`<span class="off-screen"> (done)</span>`}</h3>
          ${!done && html`<p>${words}</p>`}
          ${
            link !== null &&
            !done &&
            (at === next || at === 4) &&
            html`<a data-needs=${needs} class=${at === next && at < 2 ? "button primary" : "button"} href=${to}>${link}</a>${needs !== undefined && html`<${AskOwner} needs=${needs} to="do this" />`}`
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
      title: "Create a relay",
      words: rule,
      to: pagePath(place, "relays", "new"),
      link: "Start from an example",
      needs: "edit_definitions",
    };
  const hasTried = data !== undefined && data.items.length > 0;
  return {
    done,
    title: "Promote a relay from development",
    words: hasTried
      ? "Relay shows what would change in production, and changes it after you approve."
      : `${rule} Create the relay in development, test it with a test event, and promote it.`,
    to: pagePath(tried, "relays", ...(hasTried ? ["to", "production"] : ["new"])),
    link: data === undefined ? null : hasTried ? "Promote to production…" : "Create a relay in development",
    ...(hasTried ? { needs: "request_changes" } : {}),
  };
}
