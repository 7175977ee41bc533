/**
 * Alerts that end by themselves: their cause is over, and what it left undone was replayed. Problems resolve their own as they are cleared;
 * here are the causes that no problem stands for. What cannot be mended (`events_dropped`) is for a person to resolve.
 */
import { findNameKey } from "../event/list.ts";
import { HOUR_MS } from "../ground/limit.ts";
import { findPerson } from "../people/person.ts";
import { relayTarget } from "../relay/relay.ts";
import type { FencedStore, Reader } from "../store/port.ts";
import { turnLoop } from "../store/walk.ts";
import { type AlertCode, listOpenAlerts, type OpenAlert } from "../watch/alert.ts";
import { resolveAlertsOf } from "../watch/problem.ts";

/** In one look; more wait for the next. */
const MAX_ENDED = 50;
/** Rows looked at for what still waits or is dead; where there are more, nothing is said to be over. */
const MAX_LOOKED_AT = 10_000;
/** Failed events are looked through in steps before that: by their index, and in their rows where they are the relay's. */
const STEP = 5_000;
const MAX_WALKED = 250_000;
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
const capOver: IsOver = (_look, { lastAt }, nowMs) => Math.abs(nowMs - lastAt) >= CAP_OVER_MS;
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
  codes_capped: capOver,
  writes_capped: capOver,
};
const CODES = Object.keys(ENDS) as AlertCode[];

/** Resolves what is over now. */
export async function endAlerts(store: FencedStore, nowMs: number): Promise<void> {
  const clear = await findClear(store);
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

/** As it was told last: who finds nobody again, also after a replay, is told of in the transaction that says so. */
function momentOf(alert: OpenAlert): string {
  return `${keyOf(alert)} ${alert.lastAt}`;
}

/** Alerts of sales of whose relay no failed event is left that found nobody; none where too many failed ones are kept. */
async function findClear(store: FencedStore): Promise<ReadonlySet<string>> {
  const clear = new Set<string>();
  const alerts = await store.read((tx) => listOpenAlerts(tx, ["sale_nobody"], MAX_ENDED));
  for (const [id, told] of Map.groupBy(alerts, ({ environmentId }) => environmentId)) {
    const left = await leaveClear(store, id, told);
    for (const alert of left) clear.add(momentOf(alert));
  }
  return clear;
}

/** By the relays that found nobody, and the others in one. */
const NOBODY = `SELECT CASE WHEN reason = 'person_not_found' THEN name_key END AS "nameKey", count(*) AS looked, min(seq) AS last FROM (
    SELECT seq, name_key, reason FROM event INDEXED BY event_unhappy
    WHERE environment_id = $id AND state IN ('failed', 'dead') AND state = 'failed' AND seq < $before ORDER BY seq DESC LIMIT ${STEP}) AS newest
  GROUP BY 1`;

/** One walk for all alerts of an environment: those of a relay that found nobody are left out on the way. */
async function leaveClear(
  store: FencedStore,
  id: number,
  alerts: readonly OpenAlert[],
): Promise<Iterable<OpenAlert>> {
  const left = new Map<number | null, OpenAlert>();
  for (const alert of alerts) {
    const name = alert.target.slice(alert.target.indexOf(":") + 1);
    left.set(await store.read((tx) => findNameKey(tx, id, name)), alert);
  }
  let before = Number.MAX_SAFE_INTEGER;
  for (let walked = 0; walked < MAX_WALKED && left.size > 0; walked += STEP) {
    const values = { id, before };
    const found = await store.read((tx) =>
      tx.all<{ nameKey: number | null; looked: number; last: number }>(NOBODY, values),
    );
    for (const { nameKey } of found) if (nameKey !== null) left.delete(nameKey);
    if (found.reduce((sum, { looked }) => sum + looked, 0) < STEP) return left.values();
    before = Math.min(...found.map(({ last }) => last));
    await turnLoop();
  }
  return [];
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
