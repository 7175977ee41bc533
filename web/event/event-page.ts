/** One event: first why it is where it is, then every attempt, then what arrived. */

import { useState } from "preact/hooks";
import type { Event, Relay } from "../ground/answer.ts";
import { html, type View } from "../ground/html.ts";
import type { PageProps } from "../ground/page.ts";
import { apiPath, pagePath } from "../ground/place.ts";
import { useNow } from "../ground/time-words.ts";
import { useLoad } from "../ground/use-load.ts";
import { CopyButton } from "../part/copy-button.ts";
import { Icon } from "../part/icon.ts";
import { ErrorState, Notice, Skeleton } from "../part/notice.ts";
import { PageHead } from "../part/page-head.ts";
import { Sentence } from "../part/sentence.ts";
import { StateMark } from "../part/state-mark.ts";
import { Ago } from "../part/time.ts";
import { tellDone } from "../part/toast.ts";
import { useHeldAt } from "../watch/hold.ts";
import { EventPayload } from "./event-payload.ts";
import { EventReplay } from "./event-replay.ts";
import { EventRun } from "./event-run.ts";
import { PersonName, TRIGGER_WORDS, WAY_WORDS } from "./event-table.ts";
import { explainEvent } from "./reason-words.ts";

/** While it waits or runs, and once it is final. */
const WAITING_REFRESH_MS = 700;
const FINAL_REFRESH_MS = 4_000;
const FINAL = new Set(["done", "failed", "dead"]);
const WAIT_WORDS = "It can be replayed once it is done, failed or dead, while its payload is there.";
const ICONS = { good: "check", waiting: "clock", bad: "attention", neutral: "help" } as const;

export function EventPage({ place, params }: PageProps): View {
  const path = apiPath(place, "events", params.id ?? "");
  const { data, error, reload, put } = useLoad<{ event: Event }>(path, refreshMs);
  const back = { back: "Events", backTo: pagePath(place, "events") };
  if (data === undefined) {
    return html`<${PageHead} title="Event" ...${back} />
      ${error === null ? html`<${Skeleton} />` : html`<${ErrorState} error=${error} onRetry=${reload} />`}`;
  }
  return html`<${Shown} place=${place} event=${data.event} error=${error} put=${put} back=${back} />`;
}

function Shown({
  place,
  event,
  error,
  put,
  back,
}: {
  place: PageProps["place"];
  event: Event;
  error: string | null;
  put: (data: { event: Event }) => void;
  back: { back: string; backTo: string };
}): View {
  const now = useNow(1_000);
  const isHeld = useHeldAt(place) !== null;
  const relay = useLoad<{ relay: Relay }>(apiPath(place, "relays", event.relay.name)).data?.relay;
  const [isReplaying, setReplaying] = useState(false);
  const isFinal = FINAL.has(event.state) && event.expunged === null;
  const reason = explainEvent(event, { held: isHeld, paused: relay?.state === "paused" }, now);
  const title = `${event.relay.name} event`;
  return html`<${PageHead} title=${title} ...${back} aside=${html`<${StateMark} state=${event.state} />`}>
      <button type="button" disabled=${!isFinal} title=${isFinal ? "" : WAIT_WORDS}
        onClick=${() => setReplaying(true)}>
        <${Icon} name="replay" size=${14} />Replay</button>
    <//>
    <div class="reason reason-${reason.tone}" role="status"><${Icon} name=${ICONS[reason.tone]} size=${18} /><p>
      <${Sentence} text=${reason.text} /></p></div>
    ${error !== null && html`<${Notice} kind="warn">${error} What you see is from before.<//>`}
    ${event.warnings.map((warning, at) => html`<${Notice} key=${at} kind="warn"><${Sentence} text=${warning} /><//>`)}
    <dl class="facts">
      <div><dt>Event</dt><dd><code>${event.id}</code>
        <${CopyButton} text=${event.id} label="Copy the event id" words=${null} /></dd></div>
      <div><dt>Relay</dt><dd>
        ${
          relay === undefined
            ? event.relay.name
            : html`<a href=${pagePath(place, "relays", event.relay.name)}>
        ${event.relay.name}</a>`
        }</dd></div>
      <div><dt>Trigger</dt><dd>${TRIGGER_WORDS[event.trigger]}${event.unsigned && ", unsigned"}${event.cameBy !== null && `, ${WAY_WORDS[event.cameBy]}`}</dd></div>
      <div><dt>Person</dt><dd>
        <${PersonName} person=${event.person} />
        </dd></div>
      <div><dt>Arrived</dt><dd><${Ago} at=${event.createdAt} /></dd></div>
      <div><dt>Finished</dt><dd><${Ago} at=${event.finishedAt} none="not yet" /></dd></div>
      ${
        event.replays > 0 &&
        html`<div><dt>Replayed</dt><dd>
        ${event.replays === 1 ? "once" : `${event.replays} times`}</dd></div>`
      }
    </dl>
    <section class="block" aria-label="Attempts"><div class="block-head"><h2>Attempts</h2></div>
      ${
        event.runs.length === 0
          ? html`<p class="none">It has not run.</p>`
          : html`<ol class="runs">${event.runs
              .toReversed()
              .map(
                (run, at) =>
                  html`<${EventRun} key=${run.attempt} run=${run} isOpen=${at === 0} planned=${relay?.definition.actions.length ?? null} />`,
              )}</ol>`
      }
      ${event.runsLeftOut > 0 && html`<p class="none">Its first ${event.runsLeftOut} attempts are not shown.</p>`}
    </section>
    <${EventPayload} place=${place} event=${event} onExpunged=${(event: Event) => put({ event })} />
    ${
      isReplaying &&
      html`<${EventReplay} place=${place} event=${event} relay=${relay} onClose=${() => setReplaying(false)} onReplayed=${(
        queued: Event,
      ) => {
        setReplaying(false);
        put({ event: queued });
        tellDone("Queued for its replay; what it does appears here.");
      }} />`
    }`;
}

function refreshMs(data: { event: Event } | undefined): number {
  return data === undefined || FINAL.has(data.event.state) ? FINAL_REFRESH_MS : WAITING_REFRESH_MS;
}
