/**
 * Computes what a store must contain after the crash loop from the ids of its events only, and lists every difference. It reads the database file
 * directly and never asks the service.
 */
import type { Database } from "bun:sqlite";
import { EVENT_ID } from "../kit/event-sql.ts";
import { CRASH_PRODUCTS, type CrashEvent, type CrashRelay, readCrashEvent } from "./crash-relay.ts";

type Counts = Map<string, number>;

/** Largest number of unknown emails that one alert names. */
const NAMED_MAILS = 20;

interface StoredEvent {
  id: string;
  state: string;
  reason: string | null;
}

/** Returns one sentence for each violation; empty if the service met every guarantee. */
export function compareStore(
  database: Database,
  acknowledged: ReadonlyMap<string, CrashEvent>,
  delivered: ReadonlyMap<string, number>,
  taken: ReadonlyMap<string, number>,
): string[] {
  const stored = database.query<StoredEvent, []>("SELECT json_extract(payload, '$.mapped.event_id') AS id, state, reason FROM event").all();
  const ids = new Set(stored.map(({ id }) => id));
  const model = new Model([...ids].map(readCrashEvent));
  return [
    ...(ids.size === stored.length ? [] : ["an event is stored twice"]),
    ...[...acknowledged.keys()].filter((id) => !ids.has(id)).map((id) => `${id} was acknowledged and is lost`),
    ...stored.flatMap((event) => judgeState(event, model)),
    ...model
      .of("sends", "lapses")
      .filter(({ id }) => !delivered.has(id))
      .map(({ id }) => `the notice of ${id} never arrived`),
    ...judgeMails(database, model, taken),
    ...COMPARED.flatMap(([what, sql, expect]) => differ(what, expect(model), read(database, sql))),
  ];
}

/** A refund whose payment never arrived waits for it or fails permanently. Every other event is done. */
function judgeState({ id, state, reason }: StoredEvent, model: Model): string[] {
  const { relay, payment } = readCrashEvent(id);
  const early = relay === "refunds" && !model.payments("sales").has(payment);
  const right = early ? reason === "purchase_missing" && state !== "done" : state === "done";
  return right ? [] : [`${id} of ${relay} is ${state} (${reason})`];
}

/**
 * The mail server accepted each event's email once and its state is sent, or its state is unknown. An unknown email was accepted at most once, and an
 * alert counts it and names it (the newest twenty by id).
 */
function judgeMails(database: Database, model: Model, taken: ReadonlyMap<string, number>): string[] {
  const rows = database
    .query<{ id: string; subject: string; state: string }, []>("SELECT id, subject, state FROM email WHERE kind = 'event' ORDER BY seq")
    .all();
  const owed = new Set(model.of("mails").map(({ id }) => id));
  const sent = new Set(rows.filter(({ state }) => state === "sent").map(({ subject }) => subject));
  const unknown = rows.filter(({ state }) => state === "unknown");
  const alerts = database
    .query<{ count: number; message: string }, []>("SELECT count, message FROM alert WHERE code = 'mail_unknown' ORDER BY at")
    .all();
  const counted = alerts.reduce((sum, { count }) => sum + count, 0);
  const told = alerts.map(({ message }) => message).join(" ");
  return [
    ...[...taken].filter(([, count]) => count > 1).map(([id, count]) => `the mail of ${id} was taken ${count} times`),
    ...[...taken.keys()].filter((id) => !owed.has(id)).map((id) => `a mail of ${id} was taken that nobody owes`),
    ...[...sent].filter((id) => !taken.has(id)).map((id) => `the mail of ${id} is told as sent and never came`),
    ...(counted === unknown.length ? [] : [`${unknown.length} mails are unknown, and alerts count ${counted}`]),
    ...unknown
      .slice(-NAMED_MAILS)
      .filter(({ id }) => !told.includes(id))
      .map(({ id }) => `the unknown mail ${id} is named by no alert`),
  ];
}

class Model {
  readonly #events: readonly CrashEvent[];

  constructor(events: readonly CrashEvent[]) {
    this.#events = events;
  }

  of(...relays: CrashRelay[]): CrashEvent[] {
    return this.#events.filter(({ relay }) => relays.includes(relay));
  }

  /** Returns every payment that a relay received, with its payer. */
  payments(relay: CrashRelay): Map<string, string> {
    return new Map(this.of(relay).map(({ payment, email }) => [payment, email]));
  }

  /** Payments that were both made and refunded. */
  refunded(): Map<string, string> {
    const sold = this.payments("sales");
    return new Map([...this.payments("refunds")].filter(([payment]) => sold.has(payment)));
  }

  balances(): Counts {
    const { pack } = CRASH_PRODUCTS;
    return tally([
      ...this.of("gives").map(({ email }): [string, number] => [email, 3]),
      ...[...this.payments("sales").values()].map((email): [string, number] => [email, pack.credits]),
      ...[...this.refunded().values()].map((email): [string, number] => [email, -pack.credits]),
      ...[...this.payments("lapses").values()].map((email): [string, number] => [email, 0]),
    ]);
  }

  receipts(): Counts {
    const under = (kind: string, prefix: string, payments: ReadonlyMap<string, string>) =>
      [...payments].map(([payment, email]) => `${kind} ${prefix}${payment} ${email}`);
    return once([
      ...under("purchase", "", this.payments("sales")),
      ...under("refund", "", this.refunded()),
      ...under("purchase", "gold-", this.payments("plans")),
      ...under("purchase", "silver-", this.payments("lapses")),
      ...under("purchase", "box-", this.payments("lapses")),
      ...under("refund", "box-", this.payments("lapses")),
    ]);
  }

  liveGrants(): Counts {
    const refunded = this.refunded();
    return tally([
      ...this.of("gives").map(({ email }): [string, number] => [`access:pro from relay ${email}`, 1]),
      ...[...this.payments("sales")]
        .filter(([payment]) => !refunded.has(payment))
        .map(([, email]): [string, number] => [`pack from purchase ${email}`, 1]),
      ...this.#emails("plans").map((email): [string, number] => [`gold from plan ${email}`, 1]),
    ]);
  }

  people(): Counts {
    return once(this.#emails("gives", "sales", "refunds", "plans", "lapses", "mails").map((email) => `${email} invited`));
  }

  activePlans(): Counts {
    return once(this.#emails("plans").map((email) => `gold ${email}`));
  }

  #emails(...relays: CrashRelay[]): string[] {
    return [...new Set(this.of(...relays).map(({ email }) => email))];
  }
}

const OF_PERSON = (table: string): string => `JOIN person ON person.id = ${table}.person_id`;

/** Each comparison: its name, the SQL of the actual rows, and the expected rows. */
const COMPARED: readonly (readonly [string, string, (model: Model) => Counts])[] = [
  [
    "record",
    "SELECT json_extract(data, '$.order') || ' ' || json_extract(data, '$.step') AS key, 1 AS value FROM record",
    (model) =>
      once([
        ...model.of("writes").flatMap(({ id }) => [`${id} one`, `${id} two`]),
        ...model.of("sends").flatMap(({ id }) => [`${id} before`, `${id} after`]),
      ]),
  ],
  [
    "credit line",
    "SELECT reason AS key, 1 AS value FROM credit WHERE source = 'relay'",
    (model) => once(model.of("gives").map(({ id }) => `relay: event ${id}`)),
  ],
  ["balance", `SELECT person.email AS key, amount AS value FROM credit ${OF_PERSON("credit")}`, (model) => model.balances()],
  [
    "last line's balance",
    `SELECT person.email AS key, credit.balance AS value FROM credit ${OF_PERSON("credit")}
     WHERE credit.seq = (SELECT max(seq) FROM credit AS later WHERE later.person_id = credit.person_id)`,
    (model) => model.balances(),
  ],
  [
    "receipt",
    `SELECT kind || ' ' || ref || ' ' || person.email AS key, 1 AS value FROM purchase ${OF_PERSON("purchase")}`,
    (model) => model.receipts(),
  ],
  [
    "live grant",
    `SELECT entitlement || ' from ' || source || ' ' || person.email AS key, 1 AS value FROM access_grant
     ${OF_PERSON("access_grant")} WHERE revoked_at IS NULL`,
    (model) => model.liveGrants(),
  ],
  [
    "grant of an event",
    `SELECT json_extract(event.payload, '$.mapped.event_id') || ' ' || entitlement AS key, 1 AS value FROM access_grant
     JOIN event ON ${EVENT_ID} = access_grant.event_id WHERE access_grant.source = 'relay'`,
    (model) => once([...model.of("gives").map(({ id }) => `${id} access:pro`), ...model.of("lapses").map(({ id }) => `${id} access:trial`)]),
  ],
  [
    "active subscription",
    `SELECT plan || ' ' || person.email AS key, 1 AS value FROM subscription ${OF_PERSON("subscription")}
     WHERE subscription.status = 'active'`,
    (model) => model.activePlans(),
  ],
  [
    "grant of a subscription that ended, or of none",
    `SELECT access_grant.id AS key, 1 AS value FROM access_grant
     LEFT JOIN subscription ON subscription.id = source_ref AND subscription.status = 'active'
     WHERE source = 'plan' AND revoked_at IS NULL AND subscription.id IS NULL`,
    () => new Map(),
  ],
  ["person", "SELECT email || ' ' || status AS key, 1 AS value FROM person", (model) => model.people()],
  [
    "mail that left, or may have",
    "SELECT subject AS key, 1 AS value FROM email WHERE state IN ('sent', 'unknown') AND kind = 'event'",
    (model) => once(model.of("mails").map(({ id }) => id)),
  ],
  [
    "mail without an end",
    `SELECT subject AS key, 1 AS value FROM email
     WHERE state NOT IN ('sent', 'unknown') AND NOT (kind = 'alert' AND state = 'mailbox')`,
    () => new Map(),
  ],
];

function once(keys: readonly string[]): Counts {
  return new Map(keys.map((key) => [key, 1]));
}

function tally(entries: readonly (readonly [string, number])[]): Counts {
  const counts: Counts = new Map();
  for (const [key, value] of entries) counts.set(key, (counts.get(key) ?? 0) + value);
  return counts;
}

function read(database: Database, sql: string): Counts {
  const rows = database.query<{ key: string; value: number }, []>(sql).all();
  return tally(rows.map(({ key, value }) => [key, value] as const));
}

function differ(what: string, expected: Counts, found: Counts): string[] {
  const names = new Set([...expected.keys(), ...found.keys()]);
  return [...names].flatMap((name) => {
    const [wanted, is] = [expected.get(name) ?? 0, found.get(name) ?? 0];
    return wanted === is ? [] : [`${what} ${name}: ${is} instead of ${wanted}`];
  });
}
