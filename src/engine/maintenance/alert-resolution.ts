/**
 * Alerts that end by themselves: their cause is over, and what it left undone was replayed. Problems resolve their own as they are cleared;
 * here are the causes that no problem stands for. What cannot be mended (`events_dropped`) is for a person to resolve.
 */
import { HOUR_MS } from "../../base/limit.ts";
import { type AlertCode, listOpenAlerts, type OpenAlert } from "../../platform/audit/alert.ts";
import { resolveAlertsOf } from "../../platform/audit/problem.ts";
import { relayTarget } from "../../rules/relay/relay.ts";
import { findPerson } from "../../shop/people/person.ts";
import type { FencedStore, Reader } from "../../store/port.ts";
import { findClearedSales, momentOf } from "./unmatched-sale.ts";

/** In one look; more wait for the next. */
const MAX_ENDED = 50;
/** Rows looked at for what still waits or is dead; where there are more, nothing is said to be over. */
const MAX_LOOKED_AT = 10_000;
/** A cap's window is over after so long without a further refusal. */
const CAP_OVER_MS = 2 * HOUR_MS;

const ROWS = {
  dead: "event INDEXED BY event_unhappy WHERE environment_id = $id AND state IN ('failed', 'dead') AND state = 'dead'",
  queued:
    "event INDEXED BY event_unfinished WHERE environment_id = $id AND state IN ('queued', 'running') AND state = 'queued'",
  running:
    "event INDEXED BY event_unfinished WHERE environment_id = $id AND state IN ('queued', 'running') AND state = 'running'",
  unknownMail: "email INDEXED BY email_unknown WHERE environment_id = $id AND state = 'unknown'",
} as const;
type Rows = keyof typeof ROWS;

/** Those of one relay and reason that wait, failed, are dead, or are not known to have left. */
interface Undone {
  name: string | null;
  reason: string | null;
  /** The most that one of them has. */
  replays: number;
  count: number;
}

type IsOver = (look: Look, alert: OpenAlert, nowMs: number) => boolean | Promise<boolean>;

/** Also where the clock stood far ahead then. */
const isCapOver: IsOver = (_look, { lastAt }, nowMs) => Math.abs(nowMs - lastAt) >= CAP_OVER_MS;
const noneWaits: IsOver = (look, alert) =>
  look.hasNone("queued", alert, ({ reason }) => reason === alert.code);

const ENDS: Partial<Record<AlertCode, IsOver>> = {
  relay_failed: async (look, alert) =>
    (await look.hasNone("dead", alert)) &&
    (await look.hasNone("queued", alert, ({ replays }) => replays > 0)) &&
    (await look.hasNone("running", alert, ({ replays }) => replays > 0)),
  sender_domain_required: noneWaits,
  invite_capped: noneWaits,
  sale_nobody: async (look, alert) =>
    look.isClear(alert) &&
    (await look.hasNone("queued", alert, ({ replays }) => replays > 0)) &&
    (await look.hasNone("running", alert, ({ replays }) => replays > 0)),
  sale_suspended: (look, alert) => look.mayAct(alert),
  mail_unknown: (look, alert) => look.hasNone("unknownMail", alert),
  codes_capped: isCapOver,
  writes_capped: isCapOver,
};
const CODES = Object.keys(ENDS) as AlertCode[];

/** Resolves what is over now. */
export async function resolveOverAlerts(store: FencedStore, nowMs: number): Promise<void> {
  const clear = await findClearedSales(store, MAX_ENDED);
  const over = await store.read((tx) => findOver(tx, nowMs, clear, () => true));
  if (over.length === 0) return;
  const keys = new Set(over.map(keyOf));
  // These are looked at once more, with what happened meanwhile.
  await store.write("app", async (tx) => {
    const still = await findOver(tx, nowMs, clear, (alert) => keys.has(keyOf(alert)));
    for (const alert of still) await resolveAlertsOf(tx, { ...alert, nowMs });
  });
}

function keyOf({ environmentId, code, target }: OpenAlert): string {
  return `${environmentId} ${code} ${target}`;
}

async function findOver(
  tx: Reader,
  nowMs: number,
  clear: ReadonlySet<string>,
  isMeant: (alert: OpenAlert) => boolean,
): Promise<OpenAlert[]> {
  const look = new Look(tx, clear);
  const found: OpenAlert[] = [];
  for (const alert of (await listOpenAlerts(tx, CODES, MAX_ENDED)).filter(isMeant)) {
    if ((await ENDS[alert.code as AlertCode]?.(look, alert, nowMs)) === true) found.push(alert);
  }
  return found;
}

/** One look at what is undone, read once an environment. */
class Look {
  readonly #tx: Reader;
  readonly #clear: ReadonlySet<string>;
  readonly #rows = new Map<string, Undone[]>();

  constructor(tx: Reader, clear: ReadonlySet<string>) {
    this.#tx = tx;
    this.#clear = clear;
  }

  /** Whether all failed events were looked through, and none of what the alert tells came since. */
  isClear(alert: OpenAlert): boolean {
    return this.#clear.has(momentOf(alert));
  }

  /** Whether none of them is the target relay's and as `counts` says. */
  async hasNone(
    rows: Rows,
    { environmentId, target }: OpenAlert,
    counts: (one: Undone) => boolean = () => true,
  ): Promise<boolean> {
    const key = `${rows} ${environmentId}`;
    const known = this.#rows.get(key) ?? (await this.#read(rows, environmentId));
    this.#rows.set(key, known);
    return (
      known.reduce((sum, { count }) => sum + count, 0) < MAX_LOOKED_AT &&
      !known.some((one) => relayTarget(one.name ?? "") === target && counts(one))
    );
  }

  /** Whether the target person is active again, or erased. */
  async mayAct({ environmentId, target }: OpenAlert): Promise<boolean> {
    const id = target.slice("person:".length);
    return (await findPerson(this.#tx, environmentId, id))?.status !== "suspended";
  }

  #read(rows: Rows, environmentId: number): Promise<Undone[]> {
    const isMail = rows === "unknownMail";
    const each = isMail
      ? "relay_name AS called, NULL AS reason, 0 AS replays"
      : "name_key AS called, reason, replays";
    const name = isMail ? "called" : "(SELECT name FROM relay_name WHERE key = called)";
    const sql = `SELECT ${name} AS name, reason, max(replays) AS replays, count(*) AS count FROM (
        SELECT ${each} FROM ${ROWS[rows]} ORDER BY seq DESC LIMIT ${MAX_LOOKED_AT}) AS newest
      GROUP BY called, reason`;
    return this.#tx.all<Undone>(sql, { id: environmentId });
  }
}
