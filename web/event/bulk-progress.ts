/**
 * Progress of a bulk replay, which is a job of the server and continues when the user leaves the page. Several pages
 * show it with a stop button, and with its outcome for some time after its end.
 */

import { formatSpan } from "../../src/base/shared/time-span.ts";
import type { BulkFilter } from "../../src/engine/event/bulk-choice.ts";
import type { BulkReplayView } from "../../src/engine/event/bulk-replay.ts";
import type { Page } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { serviceNow } from "../base/service-clock.ts";
import { formatFullTime } from "../base/time-words.ts";
import { useLoad } from "../base/use-load.ts";
import { SafeText } from "../component/safe-text.ts";
import { Ago } from "../component/time.ts";
import { useSend } from "../component/use-send.ts";

const REFRESH_MS = 5_000;
const RUNNING_REFRESH_MS = 1_000;
/** Time for which the outcome stays visible. */
const OUTCOME_MS = 10 * 60_000;

/** Reasons for which several events are not replayed. */
const LEFT_OUT_WORDS: Readonly<Record<string, string>> = {
  payload_expunged: "their payload was removed",
  unsigned_event: "they arrived unsigned and their relay now acts without trustUnsignedEvents",
  relay_deleted: "their relay was deleted",
  trigger_changed: "the trigger of their relay has another type now",
  same_person: "their work was done for the right person",
  action_unknown: "their relay has an action that this version of the service does not support",
  not_replayable: "they already run or wait",
  not_found: "they are older than 30 days",
};

const TRIGGER_WORDS = { receiver: "webhooks", schedule: "ticks", data_change: "record changes" } as const;

/** Returns the newest bulk replay of the environment, which is the running one if there is any. */
export function useBulkReplays(place: Place): BulkReplayView[] {
  const { data } = useLoad<Page<BulkReplayView>>(
    apiPath(place, "bulk-replays") + writeQuery({ limit: 1 }),
    (page) => (page?.items.some(isPending) ? RUNNING_REFRESH_MS : REFRESH_MS),
  );
  return data?.items ?? [];
}

export function isRunning({ state }: BulkReplayView): boolean {
  return state === "running";
}

/** Reports whether an event has no result yet. */
export function isPending(replay: BulkReplayView): boolean {
  return isRunning(replay) || (replay.results?.pending ?? 0) > 0;
}

/** Returns the time of the last result, or null while an event has none. */
function endOf(replay: BulkReplayView): string | null {
  const { finishedAt, results } = replay;
  if (finishedAt === null || isPending(replay)) return null;
  const lastAt = results?.lastAt ?? finishedAt;
  return lastAt > finishedAt ? lastAt : finishedAt;
}

/** Shows a bulk replay that is running or ended recently. `relay`: only if its filter includes this relay's events. */
export function BulkReplayLine({ place, relay }: { place: Place; relay?: string }): View {
  const replay = useBulkReplays(place)[0];
  if (replay === undefined) return null;
  const { filter } = replay;
  const endedAt = endOf(replay);
  if (relay !== undefined && filter.relay !== undefined && filter.relay !== relay) return null;
  if (endedAt !== null && serviceNow() - Date.parse(endedAt) > OUTCOME_MS) return null;
  return html`<section class="bulk-line" aria-label="Bulk replay"><${BulkProgress} place=${place} replay=${replay} /></section>`;
}

/** Shows one bulk replay: a bar and a stop button while it runs, and its outcome afterwards. */
export function BulkProgress({
  place,
  replay,
  onLeave,
}: {
  place: Place;
  replay: BulkReplayView;
  /** Runs when the user follows the link. */
  onLeave?: () => void;
}): View {
  const { send, isSending } = useSend();
  const { id, filter, matched, replayed, perSecond, results } = replay;
  const endedAt = endOf(replay);
  const left = countLeftOut(replay.leftOut);
  const through = replayed + left;
  const stop = () =>
    send({
      method: "POST",
      path: apiPath(place, "bulk-replays", id, "stop"),
      changes: [apiPath(place, "bulk-replays")],
      done: "Stopped. Events that are already queued still run.",
      tellsRefusal: true,
    });
  const remaining = formatSpan((Math.max(0, matched - through) / perSecond) * 1_000);
  return html`<div class="bulk">
    <div class="bulk-head">
      ${
        isRunning(replay)
          ? html`<p role="status"><b>Replaying ${formatNumber(through)} of ${formatNumber(matched)}</b> <${Chosen} filter=${filter} /></p>
            <button data-needs="replay" type="button" disabled=${isSending} onClick=${() => void stop()}>${isSending ? "Stopping…" : "Stop"}</button>`
          : html`<p role="status"><b>${formatOutcome(replay)}</b> <${Chosen} filter=${filter} />${
              endedAt !== null && html` <span class="quiet"><${Ago} at=${endedAt} /></span>`
            }</p>`
      }</div>
    ${
      isRunning(replay) &&
      html`<progress max=${Math.max(1, matched)} value=${through} aria-label="Events replayed"></progress>
      <p class="quiet">${formatNumber(perSecond)} a second at most, about ${remaining} left, started by ${replay.by.replace(/^owner:/, "")}. The replay continues on the server if you leave this page.</p>`
    }
    ${results !== null && html`<p>${renderResults(results)}</p>`}
    ${left > 0 && html`<${LeftOut} leftOut=${replay.leftOut} />`}
    ${
      !isRunning(replay) &&
      html`<p class="quiet">The page of each event shows its result: <a href=${pagePath(place, "events") + queryOf(filter)} onClick=${onLeave}>see the events that are still ${filter.state} now</a>.</p>`
    }
  </div>`;
}

function formatOutcome(replay: BulkReplayView): string {
  const { state, matched, replayed } = replay;
  const how = state === "stopped" ? "Stopped" : isPending(replay) ? "Running" : "Ended";
  return `${how}: ${formatNumber(replayed)} of ${formatNumber(matched)} replayed,`;
}

function renderResults({ succeeded, failed, pending }: NonNullable<BulkReplayView["results"]>): View {
  const waiting = pending === 1 ? "runs or waits for a retry" : "run or wait for a retry";
  return html`<b>${formatNumber(succeeded)} succeeded</b>, <b class=${failed > 0 ? "bulk-failed" : null}>${formatNumber(failed)} failed</b>${pending > 0 && `, ${formatNumber(pending)} ${waiting}`}`;
}

/** Lists the events that must not act again, by reason. */
export function LeftOut({ leftOut }: { leftOut: BulkReplayView["leftOut"] }): View {
  return html`<ul class="bulk-left">${Object.entries(leftOut).map(
    ([code, count]) =>
      html`<li key=${code}>${formatNumber(count)} ${code === "same_person" ? "are not replayed" : "cannot run any more"}: ${LEFT_OUT_WORDS[code] ?? code}.</li>`,
  )}</ul>`;
}

export function countLeftOut(leftOut: BulkReplayView["leftOut"]): number {
  return Object.values(leftOut).reduce((sum, count) => sum + count, 0);
}

/** Describes a filter: "dead events of orders, since 21 Nov 2026, 08:14:05". */
export function Chosen({ filter }: { filter: BulkFilter }): View {
  const { state, relay, trigger, reason, person, since, until } = filter;
  return html`<span>${state} ${trigger === undefined ? "events" : TRIGGER_WORDS[trigger]}
    ${relay !== undefined && html` of <b>${relay}</b>`}${reason !== undefined && reason !== "any" && html` that failed with <code>${reason}</code>`}${person !== undefined && html`, for <${SafeText} text=${person} limit=${80} />`}${
      since !== undefined && `, since ${formatFullTime(since)}`
    }${until !== undefined && `, before ${formatFullTime(until)}`}</span>`;
}

/** Returns the query of the events that still match the filter. */
function queryOf({ state, relay, trigger, reason, person, since, until }: BulkFilter): string {
  return writeQuery({ state, relay, trigger, reason, person, since, until });
}
