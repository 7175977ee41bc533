/** Details of an event for its page and its panel: first the reason for its state and the fix, then the attempts and the payload. */
import type { EventCauseView } from "../../src/insight/overview/failure-cause.ts";
import type { Permission } from "../../src/platform/account/permission.ts";
import { useHeldAt } from "../alert/hold.ts";
import type { Event, Relay } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useNow } from "../base/time-words.ts";
import { useLoad } from "../base/use-load.ts";
import { AskOwner } from "../component/ask-owner.ts";
import { CopyButton } from "../component/copy-button.ts";
import { CreateItem } from "../component/create-item.ts";
import { NowRow } from "../component/explanation.ts";
import { FixWay } from "../component/fix-link.ts";
import { Icon } from "../component/icon.ts";
import { Notice, StaleNotice } from "../component/notice.ts";
import { ChangeRow, UndoChange } from "../component/recent-change.ts";
import { CommandLine, Sentence } from "../component/sentence.ts";
import { Ago } from "../component/time.ts";
import { useSend } from "../component/use-send.ts";
import { EventPayload } from "./event-payload.ts";
import { PersonName, TRIGGER_WORDS, WAY_WORDS } from "./event-table.ts";
import { EventTimeline } from "./event-timeline.ts";
import { explainEvent } from "./reason-words.ts";

/** Refresh intervals before and after the event reaches a final state. */
const WAITING_REFRESH_MS = 700;
const FINAL_REFRESH_MS = 4_000;
const CAUSE_REFRESH_MS = 10_000;
const FINAL = new Set(["done", "failed", "dead"]);
const ICONS = { good: "check", waiting: "clock", bad: "attention", neutral: "help" } as const;

/** Loads an event and refreshes it. */
export function useEvent(place: Place, id: string) {
  const loaded = useLoad<{ event: Event }>(apiPath(place, "events", id), refreshMs);
  return { ...loaded, event: loaded.data?.event };
}

function refreshMs(data: { event: Event } | undefined): number {
  return data === undefined || FINAL.has(data.event.state) ? FINAL_REFRESH_MS : WAITING_REFRESH_MS;
}

/** Returns why the event cannot be replayed, or null. */
export function whyNotReplayed(event: Event): string | null {
  if (FINAL.has(event.state) && event.expunged === null) return null;
  return "You can replay an event when it is Done, Failed or Dead and its payload still exists.";
}

export function EventView({
  place,
  event,
  error,
  onEvent,
  onReplay,
}: {
  place: Place;
  event: Event;
  /** Error of the last refresh. */
  error: string | null;
  onEvent: (event: Event) => void;
  onReplay: () => void;
}): View {
  const now = useNow(1_000);
  const isHeld = useHeldAt(place) !== null;
  // undefined if the relay was deleted or is loading.
  const relay = useLoad<{ relay: Relay }>(apiPath(place, "relays", event.relay.name)).data?.relay;
  const isPaused = relay?.state === "paused";
  const reason = explainEvent(event, { held: isHeld, paused: isPaused }, now);
  const cause = useCause(place, event);
  return html`<div class="reason reason-${reason.tone}" role="status"><${Icon} name=${ICONS[reason.tone]} size=${18} /><div><p>
      <${Sentence} text=${reason.text} /></p>
      ${(reason.why !== null || cause !== null) && html`<${Why} why=${reason.why} cause=${cause} />`}
      <${WaysOut} place=${place} event=${event} said=${reason.why} cause=${cause} isHeld=${isHeld} isPaused=${isPaused} onEvent=${onEvent} onReplay=${onReplay} /></div></div>
    ${error !== null && html`<${StaleNotice} error=${error} />`}
    ${event.warnings.map((warning, at) => html`<${Notice} key=${at} kind="warn"><${Sentence} text=${warning} />${relay !== undefined && html` <a href="${pagePath(place, "relays", event.relay.name)}?tab=definition">Open definition</a>`}<//>`)}
    <${Facts} place=${place} event=${event} relay=${relay} />
    <${EventTimeline} event=${event} planned=${relay?.definition.actions.length ?? null} now=${now} />
    <${EventPayload} place=${place} event=${event} url=${relay?.receiverUrl} onExpunged=${onEvent} />`;
}

/** Shows why an event failed or was skipped, and whether that cause still exists. */
function Why({ why, cause }: { why: string | null; cause: EventCauseView | null }): View {
  return html`<dl class="explanation">
    ${cause?.change != null && html`<${ChangeRow} change=${cause.change} />`}
    ${why !== null && html`<div><dt>Why</dt><dd><${Sentence} text=${why} /></dd></div>`}
    ${cause !== null && html`<${NowRow} cause=${cause} />`}
  </dl>`;
}

/** Links and buttons that fix the cause of a wait or a failure. The replay comes last, because it fails the same way before the fix. */
function WaysOut({
  place,
  event,
  said,
  cause,
  isHeld,
  isPaused,
  onEvent,
  onReplay,
}: {
  place: Place;
  event: Event;
  /** Message of its failure. */
  said: string | null;
  cause: EventCauseView | null;
  isHeld: boolean;
  isPaused: boolean;
  onEvent: (event: Event) => void;
  onReplay: () => void;
}): View {
  const { id, state, runs, relay, person, nextAttemptAt } = event;
  const failed = runs.at(-1)?.results.findLast(({ outcome }) => outcome === "failed");
  const waits = state === "queued";
  const isOver = cause?.stands === "no";
  // A server of an earlier version sends no change.
  const change = cause?.change ?? null;
  const [code, stop] = [failed?.code ?? event.reason, whyNotReplayed(event)];
  const asks: Permission =
    waits && isHeld ? "edit_settings" : waits && isPaused ? "edit_definitions" : "replay";
  return html`<div class="reason-ways">
    ${state !== "done" && html`<${AskOwner} needs=${asks} />`}
    ${state !== "done" && !isOver && code !== null && html`<${FixWay} place=${place} code=${code} status=${failed?.answer?.status} person=${person?.id} relay=${relay.name} />`}
    ${waits && isHeld && html`<a data-needs="edit_settings" class="button" href=${pagePath(place, "settings")}>Release the hold…</a>`}
    ${waits && isPaused && html`<a data-needs="edit_definitions" class="button" href=${pagePath(place, "relays", relay.name)}>Open ${relay.name} to resume it</a>`}
    ${waits && nextAttemptAt !== null && !isHeld && !isPaused && html`<${TryNow} place=${place} id=${id} onEvent=${onEvent} />`}
    ${change !== null && html`<${UndoChange} place=${place} change=${change} relay=${relay.name} back=${id} />`}
    ${cause !== null && cause.missing !== null && html`<${CreateItem} place=${place} thing=${cause.missing} relay=${relay.name} back=${id} changed=${change !== null} />`}
    <button data-needs="replay" type="button" class=${isOver ? "primary" : ""} aria-disabled=${String(stop !== null)} title=${stop ?? "r"} onClick=${onReplay}>
      <${Icon} name="replay" size=${14} />Replay</button>
    <${CommandLine} texts=${[change?.todo ?? null, said, cause?.message ?? null, ...event.warnings]} />
  </div>`;
}

/** Button for a retry before the planned time, after the user fixed the cause. */
function TryNow({ place, id, onEvent }: { place: Place; id: string; onEvent: (event: Event) => void }): View {
  const { isSending, send } = useSend();
  const tryIt = async (): Promise<void> => {
    const sent = await send<{ event: Event }>({
      method: "POST",
      path: apiPath(place, "events", id, "retry"),
      changes: [apiPath(place, "events")],
      done: "Retrying now. The result appears here.",
      tellsRefusal: true,
    });
    if (sent !== null) onEvent(sent.answer.event);
  };
  return html`<button data-needs="replay" type="button" disabled=${isSending} title="A retry counts as one of the seven attempts" onClick=${() => void tryIt()}>
    <${Icon} name="play" size=${14} />${isSending ? "Retrying…" : "Retry now"}</button>`;
}

/** Loads whether the cause of a failure still exists. null: there is no failure, or the answer is still loading. */
function useCause(place: Place, { id, state }: Event): EventCauseView | null {
  const isUnhappy = state === "failed" || state === "dead";
  const path = isUnhappy ? apiPath(place, "events", id, "cause") : null;
  return useLoad<{ cause: EventCauseView | null }>(path, CAUSE_REFRESH_MS).data?.cause ?? null;
}

function Facts({ place, event, relay }: { place: Place; event: Event; relay: Relay | undefined }): View {
  const { person } = event;
  return html`<dl class="facts">
    <div><dt>Event</dt><dd><code>${event.id}</code>
      <${CopyButton} text=${event.id} label="Copy the event id" words=${null} /></dd></div>
    <div><dt>Relay</dt><dd>${
      relay === undefined
        ? event.relay.name
        : html`<a href=${pagePath(place, "relays", event.relay.name)}>${event.relay.name}</a>`
    }</dd></div>
    <div><dt>Source</dt><dd>${
      event.trigger === "receiver"
        ? html`<a href="${pagePath(place, "requests")}?relay=${encodeURIComponent(event.relay.name)}">${TRIGGER_WORDS[event.trigger]}</a>`
        : TRIGGER_WORDS[event.trigger]
    }${event.unsigned && ", unsigned"}${event.cameBy !== null && `, ${WAY_WORDS[event.cameBy]}`}</dd></div>
    <div><dt>Person</dt><dd>${
      person === null
        ? html`<${PersonName} person=${person} />`
        : html`<a href=${pagePath(place, "people", person.id)}><${PersonName} person=${person} /></a>`
    }</dd></div>
    <div><dt>Arrived</dt><dd><${Ago} at=${event.createdAt} /></dd></div>
    <div><dt>Finished</dt><dd><${Ago} at=${event.finishedAt} none="not yet" /></dd></div>
    ${event.replays > 0 && html`<div><dt>Replayed</dt><dd>${event.replays === 1 ? "once" : `${event.replays} times`}</dd></div>`}
  </dl>`;
}
