/**
 * Resolves alerts whose cause is over and whose events were replayed. A cleared problem resolves its own alerts; this file handles the alerts
 * without a problem. An owner must resolve the others, such as `events_dropped`.
 */
import { HOUR_MS } from "../../base/limit.ts";
import { type AlertCode, listOpenAlerts, type OpenAlert } from "../../platform/audit/alert.ts";
import { resolveAlertsOf } from "../../platform/audit/problem.ts";
import { relayTarget } from "../../rules/relay/relay.ts";
import { findPerson } from "../../shop/people/person.ts";
import { eachEnvironment } from "../../store/each-environment.ts";
import type { FencedStore, Reader } from "../../store/port.ts";
import { findClearedSales, momentOf } from "./unmatched-sale.ts";

/** The most alerts of one round. */
const MAX_ENDED = 50;
/** The most rows that are read. No alert is resolved if there are more. */
const MAX_LOOKED_AT = 10_000;
/** A cap is over after this time without another rejection. */
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

/** Unfinished or failed rows, grouped by relay and reason. */
interface Undone {
  name: string | null;
  reason: string | null;
  /** The highest number of replays among them. */
  replays: number;
  count: number;
}

type IsOver = (work: UndoneWork, alert: OpenAlert, nowMs: number) => boolean | Promise<boolean>;

/** The absolute difference also covers an alert that a wrong clock dated ahead. */
const isCapOver: IsOver = (_work, { lastAt }, nowMs) => Math.abs(nowMs - lastAt) >= CAP_OVER_MS;
const noneWaits: IsOver = (work, alert) =>
  work.hasNone("queued", alert, ({ reason }) => reason === alert.code);

const ENDS: Partial<Record<AlertCode, IsOver>> = {
  relay_failed: async (work, alert) =>
    (await work.hasNone("dead", alert)) &&
    (await work.hasNone("queued", alert, ({ replays }) => replays > 0)) &&
    (await work.hasNone("running", alert, ({ replays }) => replays > 0)),
  sender_domain_required: noneWaits,
  invite_capped: noneWaits,
  sale_nobody: async (work, alert) =>
    work.isCleared(alert) &&
    (await work.hasNone("queued", alert, ({ replays }) => replays > 0)) &&
    (await work.hasNone("running", alert, ({ replays }) => replays > 0)),
  sale_suspended: (work, alert) => work.isActive(alert),
  mail_unknown: (work, alert) => work.hasNone("unknownMail", alert),
  codes_capped: isCapOver,
  writes_capped: isCapOver,
};
const CODES = Object.keys(ENDS) as AlertCode[];

/** Resolves the alerts that are over now. */
export async function resolveOverAlerts(store: FencedStore, nowMs: number): Promise<void> {
  const clear = await findClearedSales(store, MAX_ENDED);
  const resolvable = await store.read((tx) => findOver(tx, nowMs, clear, () => true));
  if (resolvable.length === 0) return;
  // These are checked again in the transaction, because something may have happened meanwhile.
  await eachEnvironment(resolvable, (environmentId, own) =>
    store.write(
      "app",
      async (tx) => {
        const keys = new Set(own.map(keyOf));
        const current = await findOver(tx, nowMs, clear, (alert) => keys.has(keyOf(alert)));
        for (const alert of current) await resolveAlertsOf(tx, { ...alert, nowMs });
      },
      environmentId,
    ),
  );
}

function keyOf({ environmentId, code, target }: OpenAlert): string {
  return `${environmentId} ${code} ${target}`;
}

async function findOver(
  tx: Reader,
  nowMs: number,
  clear: ReadonlySet<string>,
  isSelected: (alert: OpenAlert) => boolean,
): Promise<OpenAlert[]> {
  const work = new UndoneWork(tx, clear);
  const found: OpenAlert[] = [];
  for (const alert of (await listOpenAlerts(tx, CODES, MAX_ENDED)).filter(isSelected)) {
    if ((await ENDS[alert.code as AlertCode]?.(work, alert, nowMs)) === true) found.push(alert);
  }
  return found;
}

/** Reads the unfinished and failed rows, once for each environment. */
class UndoneWork {
  readonly #tx: Reader;
  readonly #clear: ReadonlySet<string>;
  readonly #rows = new Map<string, Undone[]>();

  constructor(tx: Reader, clear: ReadonlySet<string>) {
    this.#tx = tx;
    this.#clear = clear;
  }

  /** Reports whether all failed events were read, and no new failure came since the alert. */
  isCleared(alert: OpenAlert): boolean {
    return this.#clear.has(momentOf(alert));
  }

  /** Reports whether the target relay has no such row that `counts` accepts. */
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

  /** Reports whether the target person is active again or erased. */
  async isActive({ environmentId, target }: OpenAlert): Promise<boolean> {
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
