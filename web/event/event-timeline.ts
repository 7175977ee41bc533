/** Timeline of an event, newest first: the next attempt, all attempts with one bar for each action, the waits between them, and the arrival. */

import { formatSpan } from "../../src/base/shared/time-span.ts";
import type { Event, Run } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { formatClock, formatWhen } from "../base/time-words.ts";
import { Icon } from "../component/icon.ts";
import { Ago } from "../component/time.ts";
import { EventRun } from "./event-run.ts";

/** Shortest wait that is shown. */
const LEAST_WAIT_MS = 1_000;

export function EventTimeline({
  event,
  planned,
  now,
}: {
  event: Event;
  /** Number of actions in the relay's current definition; null if unknown. */
  planned: number | null;
  now: number;
}): View {
  const { runs, createdAt, nextAttemptAt, runsLeftOut } = event;
  const newest = runs.toReversed();
  return html`<section class="block" aria-label="Attempts"><div class="block-head"><h2>Attempts</h2></div>
    <ol class="runs">
      ${
        event.state === "queued" &&
        nextAttemptAt !== null &&
        html`<li class="run-wait"><${Icon} name="clock" size=${13} />Next attempt ${formatWhen(nextAttemptAt, now)}, at ${formatClock(nextAttemptAt)}</li>`
      }
      ${runs.length === 0 && html`<li class="run-wait">No attempts yet.</li>`}
      ${newest.map((run, at) => [
        html`<${EventRun} key=${run.attempt} run=${run} isOpen=${at === 0} planned=${planned} />`,
        html`<${Wait} key="wait ${run.attempt}" since=${endOf(newest[at + 1]) ?? (runsLeftOut === 0 ? createdAt : null)} until=${run.startedAt} />`,
      ])}
      ${runsLeftOut > 0 && html`<li class="run-wait">The first ${runsLeftOut} attempts are not shown.</li>`}
      <li class="run-wait"><${Icon} name="calls" size=${13} />Arrived <${Ago} at=${createdAt} /></li>
    </ol>
  </section>`;
}

function endOf(run: Run | undefined): string | null {
  return run?.finishedAt ?? null;
}

function Wait({ since, until }: { since: string | null; until: string }): View {
  const ms = since === null ? 0 : Date.parse(until) - Date.parse(since);
  if (ms < LEAST_WAIT_MS) return null;
  return html`<li class="run-wait"><${Icon} name="clock" size=${13} />waited ${formatSpan(ms)}</li>`;
}
