/**
 * Makes one attention item for each relay with dead events: how many, why the newest one died and what to do. An owner acknowledges dead events
 * by resolving the alert about them.
 */
import { toIso } from "../../base/clock.ts";
import { endSentence, formatCount } from "../../base/text.ts";
import { WAITING_CODES } from "../../engine/event/alert.ts";
import { type AlertView, listResolvedTimes } from "../../platform/audit/alert.ts";
import { relayTarget } from "../../rules/relay/relay.ts";
import type { TroubleRows } from "../../rules/relay/trouble-rows.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import { type AttentionItem, makeItem } from "./attention-item.ts";
import { type DeadOfRelay, type DeadView, describeDead, MAX_SHOWN } from "./dead-events.ts";

/** The code of the alert that an event died. */
export const RELAY_FAILED = "relay_failed";
/** The most relays whose dead events are described. */
const MAX_DESCRIBED = 20;

/** Drops the dead events of a relay whose alert an owner resolved after the newest one died. */
export async function dropAcknowledged(
  tx: Reader,
  environmentId: number,
  relays: readonly DeadOfRelay[],
  open: readonly AlertView[],
): Promise<DeadOfRelay[]> {
  const resolvedAt = await listResolvedTimes(tx, environmentId, RELAY_FAILED);
  const left: DeadOfRelay[] = [];
  for (const dead of relays) {
    const target = relayTarget(dead.relay);
    const at = resolvedAt.get(target);
    const isOpen = open.some((alert) => alert.code === RELAY_FAILED && alert.target === target);
    if (at === undefined || isOpen || (await findDiedAt(tx, dead.newestSeq)) > at) left.push(dead);
  }
  return left;
}

/** Makes the items. With `describes`, they say why the newest event died, which is slow. `isFailing` reports whether the relay fails now. */
export async function makeDeadItems(
  store: Store,
  rows: TroubleRows,
  dead: readonly DeadOfRelay[],
  open: readonly AlertView[],
  { describes, isFailing }: { describes: boolean; isFailing(target: string): boolean },
): Promise<AttentionItem[]> {
  const items: AttentionItem[] = [];
  for (const [index, one] of dead.entries()) {
    const target = relayTarget(one.relay);
    const view =
      describes && index < MAX_DESCRIBED
        ? await store.read((tx) => describeDead(tx, rows, one, isFailing(target)))
        : null;
    const alert = open.find((other) => other.code === RELAY_FAILED && other.target === target) ?? null;
    items.push(await store.read((tx) => makeDeadItem(tx, one, view, alert)));
    await yieldToEventLoop();
  }
  return items;
}

async function makeDeadItem(
  tx: Reader,
  { relay, count, firstSeq }: DeadOfRelay,
  dead: DeadView | null,
  alert: AlertView | null,
): Promise<AttentionItem> {
  const since = dead?.firstDeadAt ?? toIso(await findDiedAt(tx, firstSeq));
  const countText = count > MAX_SHOWN ? `${formatCount(MAX_SHOWN)}+` : formatCount(count);
  const why = dead === null ? "" : `: ${dead.failure.message}`;
  return makeItem({
    code: RELAY_FAILED,
    target: relayTarget(relay),
    since,
    message: endSentence(`${countText} ${count === 1 ? "event is" : "events are"} dead since ${since}${why}`),
    todo: formatReplay(dead, count),
    alert: alert?.id ?? null,
    dead,
    newest: dead === null ? null : newestOf(dead),
  });
}

function formatReplay(dead: DeadView | null, count: number): string {
  if (dead?.expunged === true && count === 1) return "Resolve the alert: the event cannot run again.";
  if (dead?.failure.code === "missed")
    return "Replay the events that you still want, one by one from their list or all of them, or resolve the alert.";
  return dead?.cause.stands === "no"
    ? "Replay the events. Relay does nothing twice."
    : "Fix the cause, then replay the events. Relay does nothing twice.";
}

function newestOf({ newestEvent, person, failure: { code, status } }: DeadView): AttentionItem["newest"] {
  return { event: newestEvent, person, reason: code, status };
}

async function findDiedAt(tx: Reader, seq: number): Promise<number> {
  const sql = "SELECT coalesce(finished_at, created_at) AS at FROM event WHERE seq = ?1";
  return (await tx.get<{ at: number }>(sql, seq))?.at ?? 0;
}

/** Reports whether the relay's newest dead event died of what the alert reports. The item of the dead events then covers it. */
export async function isCauseOfDeath(
  tx: Reader,
  dead: readonly DeadOfRelay[],
  { code, target }: Pick<AlertView, "code" | "target">,
): Promise<boolean> {
  const own = dead.find(({ relay }) => relayTarget(relay) === target);
  if (own === undefined || !WAITING_CODES.some((one) => one === code)) return false;
  const sql = "SELECT reason FROM event WHERE seq = ?1";
  return (await tx.get<{ reason: string | null }>(sql, own.newestSeq))?.reason === code;
}
