/** Overview of a relay: what it does, its problems, its receiver URL and its recent events. */

import type { HealthView } from "../../src/insight/overview/health.ts";
import type { MissingThing } from "../../src/rules/relay/relay-reference.ts";
import type { EventItem, Page, Relay } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { CopyButton } from "../component/copy-button.ts";
import { Notice, Skeleton } from "../component/notice.ts";
import { CommandLine, Sentence } from "../component/sentence.ts";
import { Ago } from "../component/time.ts";
import { notifyDone } from "../component/toast.ts";
import { useSend } from "../component/use-send.ts";
import { EventTable } from "../event/event-table.ts";
import { RelayRequests } from "../request/relay-requests.ts";
import { RelayChecklist } from "./relay-checklist.ts";
import { RelayFunnel } from "./relay-funnel.ts";
import { HealthReason } from "./relay-health.ts";
import { RelayOrigin } from "./relay-origin.ts";
import { RelayRetries } from "./relay-retries.ts";
import { RelaySkipped } from "./relay-skipped.ts";
import { formatAction } from "./relay-words.ts";
import { formatSentTest, type SentTest } from "./sent-test.ts";

const EVENTS_MS = 2_000;
const SHOWN_EVENTS = 8;

export function RelayOverview({
  place,
  relay,
  health,
  missing,
  remembered,
}: {
  place: Place;
  relay: Relay;
  health: HealthView | undefined;
  /** Catalog items that its actions name and that do not exist. */
  missing: readonly MissingThing[];
  /** Notice for a relay whose requests have many stored signatures; null otherwise. */
  remembered: string | null;
}): View {
  const { name } = relay;
  return html`${health !== undefined && html`<${HealthReason} place=${place} name=${name} health=${health} />`}
    ${relay.state === "active" && html`<${RelayRetries} place=${place} name=${name} />`}
    ${relay.trigger === "schedule" && html`<${RelaySkipped} place=${place} name=${name} />`}
    <p class="lead">${sentence(relay.triggerInWords)}:</p>
    <ol class="steps">${relay.definition.actions.map((action, at) => html`<li key=${at}>${formatAction(action)}</li>`)}</ol>
    ${relay.problems
      .filter(
        ({ code }) =>
          code !== health?.code &&
          !(code === "relay_silent" && health?.code === "relay_refusing") &&
          // The message above already gives the cause of dead events.
          !(code === "relay_failing" && health?.code === "relay_failed"),
      )
      .map(
        ({ code, message }) => html`<${Notice} key=${code} kind="bad"><b>${code}
      </b> <${Sentence} text=${message} /> <${CommandLine} texts=${[message]} /><//>`,
      )}
    <div class="columns">
      <div class="column-main">
        ${health !== undefined && html`<${RelayChecklist} place=${place} relay=${relay} health=${health} missing=${missing} />`}
        <${RelayFunnel} place=${place} name=${name} />
        <${RelayEvents} place=${place} name=${name} trigger=${relay.trigger} />
        ${relay.trigger === "receiver" && html`<${RelayRequests} place=${place} name=${name} />`}
      </div>
      <div class="column-side">
        ${
          relay.follows !== undefined &&
          html`<section class="card" aria-label="Follows"><h2>Follows</h2>
            <p><${RelayLink} place=${place} name=${relay.follows} /> verifies the requests of this relay. It has the receiver URL and the secret.</p></section>`
        }
        ${
          relay.followers !== undefined &&
          html`<section class="card" aria-label="Followers"><h2>Followers</h2>
            <p>These relays get each request that this receiver verifies:</p>
            <ul>${relay.followers.map((follower) => html`<li key=${follower}><${RelayLink} place=${place} name=${follower} /></li>`)}</ul></section>`
        }
        ${
          relay.receiverUrl !== undefined &&
          html`<section class="card" aria-label="Receiver URL"><h2>Receiver URL</h2><code class="wrap">
            ${relay.receiverUrl}</code><${CopyButton} text=${relay.receiverUrl} label="Copy receiver URL" />
            ${remembered !== null && html`<p class="quiet"><${Sentence} text=${remembered} /></p>`}</section>`
        }
        ${
          relay.nextTick !== undefined &&
          html`<section class="card" aria-label="Next tick"><h2>Next tick</h2><p><${Sentence} text=${relay.nextTick.message} /></p></section>`
        }
        <section class="card" aria-label="Source"><h2>Source</h2><p><${RelayOrigin} origin=${relay.origin} /></p>
          <p class="quiet">created <${Ago} at=${relay.createdAt} /></p></section>
      </div>
    </div>`;
}

function RelayLink({ place, name }: { place: Place; name: string }): View {
  return html`<a href=${pagePath(place, "relays", name)}>${name}</a>`;
}

function RelayEvents({
  place,
  name,
  trigger,
}: {
  place: Place;
  name: string;
  trigger: Relay["trigger"];
}): View {
  const query = writeQuery({ relay: name });
  // Loads these events even while the user reads, because the list is far down the page and a test event must appear in it.
  const events = useLoad<Page<EventItem>>(
    apiPath(place, "events") + writeQuery({ relay: name, limit: SHOWN_EVENTS }),
    EVENTS_MS,
  );
  const items = events.data?.items;
  return html`<section class="block" aria-label="Events">
    <div class="block-head"><h2>Events</h2><div class="page-actions">
      ${trigger !== "data_change" && place.environment !== "production" && html`<${TestEvent} place=${place} name=${name} />`}
      <a class="button" href="${pagePath(place, "events")}${query}">All events</a></div></div>
    ${
      items === undefined
        ? events.error === null
          ? html`<${Skeleton} rows=${3} />`
          : html`<${Notice} kind="bad"><${Sentence} text=${events.error} /><//>`
        : items.length === 0
          ? html`<p class="none">Nothing has arrived yet.</p>`
          : html`<${EventTable} place=${place} events=${items} withRelay=${false} />`
    }
  </section>`;
}

/** Button that sends a test event. It has every effect of a real one, so production does not offer it. */
function TestEvent({ place, name }: { place: Place; name: string }): View {
  const { isSending, send } = useSend();
  const sendOne = async (): Promise<void> => {
    const done = await send<SentTest>({
      method: "POST",
      path: apiPath(place, "relays", name, "test-event"),
      changes: [apiPath(place, "events")],
      tellsRefusal: true,
    });
    if (done === null) return;
    const { eventId } = done.answer;
    const link =
      eventId === null ? undefined : { to: pagePath(place, "events", eventId), words: "Open event" };
    notifyDone(formatSentTest(done.answer), undefined, link);
  };
  return html`<button data-needs="edit_definitions" type="button" disabled=${isSending} title="A test event has the same effects as a real one"
    onClick=${() => void sendOne()}>${isSending ? "Sending…" : "Send a test event"}</button>`;
}

function sentence(words: string): string {
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}
