/**
 * Records for signed-in people, by the rules of record-right.ts. Records that a person may not read do not exist for them. The writer of a
 * record is not shown, because it may name an owner or a key.
 * It also limits writes per minute in memory: by person, by address (an IPv6 /64) and by app, and the events that such writes cause. A write
 * is counted before it is checked, so that rejected writes count too.
 */
import type { Clock } from "../../base/clock.ts";
import type { Json } from "../../base/json.ts";
import { CAP_WINDOW_MS, type RaisableLimits, SIGNIN_WINDOW_MS } from "../../base/limit.ts";
import { drawPlaces, takeAll } from "../../base/limit-window.ts";
import { Limiter, type Places } from "../../base/limiter.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { raiseAlert } from "../../platform/audit/alert.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import { findPerson } from "../people/person.ts";
import { type CollectionRow, requireCollection } from "../records/collection.ts";
import {
  deleteRecord,
  findRecord,
  type NewRecord,
  type RecordRow,
  type RecordView,
  updateRecord,
  viewRecord,
  writeRecordIn,
} from "../records/record.ts";
import { countWatchers, withinStorage } from "../records/record-budget.ts";
import { addressByPerson, listRecordsFor, mayRead, mayWrite } from "../records/record-right.ts";

type PersonRecordView = Omit<RecordView, "by" | "odd">;

/** A person and a collection. */
export interface PersonAt {
  environmentId: number;
  personId: string;
  collection: string;
}

/** Lists what the person may read of the collection, newest first. Throws `not_found` (no such collection). */
export async function listPersonRecords(
  tx: Reader,
  at: PersonAt,
  request: PageRequest,
): Promise<Page<PersonRecordView>> {
  const collection = await requireCollection(tx, at.environmentId, at.collection);
  const page = await listRecordsFor(tx, at.environmentId, collection, at.personId, request);
  return { items: page.items.map(withoutWriter), next: page.next };
}

/** Reads a record. Throws `not_found`, also for a record that the person may not read. */
export async function readPersonRecord(
  tx: Reader,
  at: PersonAt,
  recordId: string,
): Promise<PersonRecordView> {
  return show((await requireReadable(tx, at, recordId)).row);
}

/**
 * Writes a new record that the person owns. Throws `not_found`, `forbidden` (only the app writes here), `data_invalid` and `invalid_input`
 * (unknown recipient).
 */
export async function createPersonRecord(
  tx: Writer,
  at: PersonAt,
  record: { data: Json; to: string | null },
  nowMs: number,
): Promise<PersonRecordView> {
  const collection = await requireCollection(tx, at.environmentId, at.collection);
  const address = addressByPerson(collection.kind, at.personId, record.to);
  if (record.to !== null) await requireReachable(tx, at.environmentId, record.to);
  const { environmentId } = at;
  const write = { environmentId, data: record.data, by: `person:${at.personId}`, nowMs, ...address };
  return show(await writeRecordIn(tx, collection, write));
}

/** Replaces the data of the person's own record; its address stays. Throws `not_found`, `forbidden` and `data_invalid`. */
export async function updatePersonRecord(
  tx: Writer,
  at: PersonAt,
  recordId: string,
  data: Json,
  nowMs: number,
): Promise<PersonRecordView> {
  await requireWritable(tx, at, recordId);
  const { environmentId, collection } = at;
  const by = `person:${at.personId}`;
  return show((await updateRecord(tx, { environmentId, collection, recordId, data, by, nowMs })).after);
}

/** Deletes the person's own record. Throws `not_found` and `forbidden`. */
export async function deletePersonRecord(tx: Writer, at: PersonAt, recordId: string): Promise<void> {
  await requireWritable(tx, at, recordId);
  await deleteRecord(tx, { environmentId: at.environmentId, collection: at.collection, recordId });
}

async function requireReadable(
  tx: Reader,
  at: PersonAt,
  recordId: string,
): Promise<{ collection: CollectionRow; row: RecordRow }> {
  const collection = await requireCollection(tx, at.environmentId, at.collection);
  const row = await findRecord(tx, at.environmentId, collection.name, recordId);
  if (row !== null && mayRead(collection.kind, row, at.personId)) return { collection, row };
  throw new Refusal("not_found", "No record with this id exists in this collection for you.");
}

async function requireWritable(tx: Reader, at: PersonAt, recordId: string): Promise<void> {
  const { collection, row } = await requireReadable(tx, at, recordId);
  if (mayWrite(collection.kind, row, at.personId)) return;
  throw new Refusal("forbidden", "You may read this record and not change it: only its owner may.");
}

/** Throws the same error for an unknown, erased or suspended person, because their state must not be revealed. */
async function requireReachable(tx: Reader, environmentId: number, personId: string): Promise<void> {
  const person = await findPerson(tx, environmentId, personId);
  if (person !== null && person.status !== "suspended") return;
  throw new Refusal(
    "invalid_input",
    "`to` names nobody whom a record can reach: use the id of a person of this app.",
  );
}

function show(row: NewRecord): PersonRecordView {
  return withoutWriter(viewRecord(row));
}

function withoutWriter({ by: _, odd: _odd, ...shown }: RecordView): PersonRecordView {
  return shown;
}

interface ClientWriteDeps {
  store: Store;
  clock: Clock;
  limits: RaisableLimits;
  /** With several nodes: where shared limits are counted. */
  places?: Places | null;
}

/** The caps in the order they are checked, each with what it counts and the variable that raises it. */
const CAPS = {
  clientWritesPerPersonPerMinute: ["writes of one person", "RELAY_LIMIT_CLIENT_WRITES_PER_PERSON_PER_MINUTE"],
  clientWritesPerAddressPerMinute: [
    "writes from one network address",
    "RELAY_LIMIT_CLIENT_WRITES_PER_ADDRESS_PER_MINUTE",
  ],
  clientWritesPerAppPerMinute: [
    "writes of all people of the app",
    "RELAY_LIMIT_CLIENT_WRITES_PER_APP_PER_MINUTE",
  ],
  clientEventsPerPersonPerMinute: [
    "events that one person's writes make",
    "RELAY_LIMIT_CLIENT_EVENTS_PER_PERSON_PER_MINUTE",
  ],
  clientEventsPerAppPerMinute: [
    "events that the writes of all people of the app make",
    "RELAY_LIMIT_CLIENT_EVENTS_PER_APP_PER_MINUTE",
  ],
} as const;
type CapName = keyof typeof CAPS;

export class ClientWrites {
  readonly #deps: ClientWriteDeps;
  readonly #caps: Readonly<Record<CapName, Limiter>>;
  /** Caps that the owner was notified of within the hour, by environment. */
  readonly #notices: Limiter;

  constructor(deps: ClientWriteDeps) {
    this.#deps = deps;
    const caps = Object.keys(CAPS).map((name) => [
      name,
      new Limiter(deps.clock, deps.limits[name as CapName], CAP_WINDOW_MS, {
        kind: name,
        places: deps.places ?? null,
      }),
    ]);
    this.#caps = Object.fromEntries(caps) as Record<CapName, Limiter>;
    this.#notices = new Limiter(deps.clock, 1, SIGNIN_WINDOW_MS);
  }

  /** Counts a write in every window. Throws `writes_capped` and counts nothing if one is full. */
  async count(source: string, at: PersonAt, change: "created" | "updated" | "deleted"): Promise<void> {
    const events = await this.#deps.store.read((tx) => countWatchers(tx, at, change));
    const app = String(at.environmentId);
    const person = `${app} ${at.personId}`;
    const needs: [CapName, string, number][] = [
      ["clientWritesPerPersonPerMinute", person, 1],
      ["clientWritesPerAddressPerMinute", `${app} ${source}`, 1],
      ["clientWritesPerAppPerMinute", app, 1],
      ["clientEventsPerPersonPerMinute", person, events],
      ["clientEventsPerAppPerMinute", app, events],
    ];
    const asked = needs.flatMap(([cap, name, amount]) =>
      amount > 0 ? [{ cap, limiter: this.#caps[cap], name, amount }] : [],
    );
    await drawPlaces(asked);
    const full = takeAll(asked);
    if (full === null) return;
    const { need, resetAtMs } = full;
    await this.#notifyOwner(at, need.cap);
    throw new Refusal(
      "writes_capped",
      `The limit of ${need.limiter.limit} ${CAPS[need.cap][0]} within a minute is reached: write again after resetAt.`,
      { resetAtMs },
    );
  }

  /** Runs a counted write. Throws `storage_capped`; if the environment is full, the owner is notified. */
  async store<Result>(at: PersonAt, work: (tx: Writer) => Promise<Result>): Promise<Result> {
    const { store, limits } = this.#deps;
    try {
      return await store.write("app", (tx) => withinStorage(tx, at, limits, () => work(tx)));
    } catch (error) {
      if (error instanceof Refusal && error.extra.details?.limit === "environment") {
        const message = `The records and files of this environment take ${limits.storedPerEnvironmentMb} MB, the limit, so what people and the app write is refused: delete what is no longer needed (relay records delete, relay files delete), suspend whoever fills it (relay people suspend), or raise RELAY_LIMIT_STORED_PER_ENVIRONMENT_MB.`;
        await this.#notifyOnce(at.environmentId, "client:storage", message);
      }
      throw error;
    }
  }

  #notifyOwner({ environmentId, personId }: PersonAt, name: CapName): Promise<void> {
    const [what, variable] = CAPS[name];
    const message = `More than ${this.#deps.limits[name]} ${what} within a minute came through the client library, the limit: further ones are refused until the minute is over. Suspend whoever floods, or raise ${variable} if this is what your people do.`;
    const target = name.includes("PerApp") ? "client:writes" : `person:${personId}`;
    return this.#notifyOnce(environmentId, target, message, name);
  }

  /** Notifies the owner of a full window or environment, at most once an hour. */
  async #notifyOnce(environmentId: number, target: string, message: string, what = target): Promise<void> {
    if (this.#notices.take(`${environmentId} ${what}`) !== null) return;
    const { store, clock } = this.#deps;
    await store.write("app", (tx) =>
      raiseAlert(tx, { environmentId, code: "writes_capped", target, message, nowMs: clock.now() }),
    );
  }
}
