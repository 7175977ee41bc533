/**
 * Checks capture against a model. Writes, edits of relays and interrupted or lost steps happen in any order. Each change makes one event for every
 * relay that watched it, if the relay still wants it when its turn comes.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { drainChanges } from "../../src/engine/change-capture/capture.ts";
import type { NewRecord } from "../../src/shop/records/record.ts";
import { roundsOf } from "../kit/chosen-store.ts";
import { openWatchedRecords, type WatchedRecords } from "../kit/watched-records.ts";

const CHANGES = ["created", "updated", "deleted"] as const;
type Change = (typeof CHANGES)[number];

interface Trigger {
  collection: "notes" | "orders";
  on: Change[];
  where: { status: string } | undefined;
}

type Write = { do: "create" | "update" | "remove"; which: number; status: string };
type Save = { do: "watch" | "edit"; which: number; trigger: Trigger } | { do: "end"; which: number };
type Step = Write | Save | { do: "drain"; room: { changes?: number; watchers?: number; events?: number; written?: number }; killed: boolean };

const which = fc.nat({ max: 6 });
const status = fc.constantFrom("open", "paid");
const trigger: fc.Arbitrary<Trigger> = fc.record({
  collection: fc.constantFrom("notes", "notes", "notes", "orders"),
  on: fc.subarray([...CHANGES], { minLength: 1 }),
  where: fc.option(fc.record({ status }), { nil: undefined }),
});
const few = fc.integer({ min: 1, max: 4 });
const room = fc.oneof(
  fc.record({ changes: few }),
  fc.record({ watchers: few }),
  fc.record({ events: few }),
  fc.record({ written: fc.constant(1) }),
  fc.constant({}),
);
const begin = fc.array(fc.record({ do: fc.constant("watch" as const), which, trigger }), { minLength: 2, maxLength: 5 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom("create", "update", "update", "remove"), which, status }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("watch", "edit"), which, trigger }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("end"), which }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("drain"), room, killed: fc.boolean() }) },
);

interface Relay {
  id: string;
  name: string;
  version: number;
  trigger: Trigger;
}

/** A change in the log, the relays that watched it, and the last relay that it reached. */
interface Pending {
  seq: number;
  change: Change;
  status: string;
  mark: number;
  watched: ReadonlySet<string>;
  told: string;
}

class Model {
  relays: Relay[] = [];
  pending: Pending[] = [];
  readonly events: string[] = [];

  watchers(change: Change): Relay[] {
    return this.relays.filter(({ trigger }) => trigger.collection === "notes" && trigger.on.includes(change));
  }

  /** After a step, the log says how far it came. The current relays decided about the changes that it passed. */
  pass(log: readonly { seq: number; told: string | null }[]): void {
    for (const one of this.pending) {
      const left = log.find(({ seq }) => seq === one.seq);
      const until = left === undefined ? "~" : (left.told ?? "");
      for (const { id, name, trigger } of this.watchers(one.change).sort((a, b) => (a.id < b.id ? -1 : 1))) {
        if (id <= one.told || id > until || !one.watched.has(id)) continue;
        if (trigger.where !== undefined && trigger.where.status !== one.status) continue;
        this.events.push(`${one.change} ${one.mark} ${name}`);
      }
      one.told = until;
    }
    this.pending = this.pending.filter(({ told }) => told !== "~");
  }
}

class Town {
  readonly model = new Model();
  readonly #records: WatchedRecords;
  readonly #rows: NewRecord[] = [];
  #made = 0;

  constructor(records: WatchedRecords) {
    this.#records = records;
  }

  async take(step: Step): Promise<void> {
    if (step.do === "drain") return await this.drain(step.room, step.killed);
    if ("status" in step) return await this.#write(step);
    await this.#setRelay(step);
  }

  async drain(room: object, killed: boolean): Promise<void> {
    const { store, clock, log } = this.#records;
    const done = store.write("app", async (tx) => {
      await drainChanges(tx, room, clock.now(), log);
      if (killed) throw new Error("killed");
    });
    if (killed) await expect(done).rejects.toThrow("killed");
    else await done;
    this.model.pass(await this.#log());
    await this.check();
  }

  async check(): Promise<void> {
    const fired = await this.#records.fired();
    const told = fired.map(({ relay, payload: { record, previous } }) => {
      const change = previous === null ? "created" : Bun.deepEquals(previous, record) ? "deleted" : "updated";
      return `${change} ${record.data.size} ${relay}`;
    });
    expect(told).toEqual(this.model.events);
  }

  async #write({ do: does, which, status }: Write): Promise<void> {
    const at = which % Math.max(1, this.#rows.length);
    const before = this.#rows[at];
    const change: Change = does === "create" || before === undefined ? "created" : does === "update" ? "updated" : "deleted";
    const data = change === "deleted" ? (before?.data ?? {}) : { size: ++this.#made, status };
    const watched = new Set(this.model.watchers(change).map(({ id }) => id));
    if (before === undefined || change === "created") this.#rows.push(await this.#records.write(data));
    else if (change === "updated") this.#rows[at] = await this.#records.update(before, data);
    else {
      await this.#records.remove(before);
      this.#rows.splice(at, 1);
    }
    const log = await this.#log();
    // One change is one row, however many relays watch.
    expect(log).toHaveLength(this.model.pending.length + (watched.size > 0 ? 1 : 0));
    if (watched.size === 0) return;
    const seq = log.at(-1)?.seq ?? 0;
    this.model.pending.push({ seq, change, status: String(data.status), mark: Number(data.size), watched, told: "" });
  }

  async #setRelay(step: Save): Promise<void> {
    const { kit, store } = this.#records;
    const { relays } = this.model;
    const relay = relays[step.which % Math.max(1, relays.length)];
    if (step.do === "watch") {
      const name = `relay-${++this.#made}`;
      const { id } = (await kit.create(define(name, step.trigger))).relay;
      relays.push({ id, name, version: 1, trigger: step.trigger });
    } else if (relay !== undefined && step.do === "edit") {
      const saved = await kit.update(relay.name, define(relay.name, step.trigger), relay.version);
      Object.assign(relay, { version: saved.relay.version, trigger: step.trigger });
    } else if (relay !== undefined) {
      await store.write("dashboard", (tx) => tx.run("DELETE FROM relay WHERE id = ?1", relay.id));
      this.model.relays = relays.filter((one) => one !== relay);
    }
  }

  #log(): Promise<{ seq: number; told: string | null }[]> {
    return this.#records.store.read((tx) => tx.all("SELECT seq, told_relay_id AS told FROM record_change ORDER BY seq"));
  }
}

function define(name: string, { collection, on, where }: Trigger): object {
  const kind = "data_change";
  const actions = [{ type: "call_url", url: "https://example.com/notice" }];
  return { name, trigger: { kind, collection, on, ...(where === undefined ? {} : { where }) }, actions };
}

test("makes one event for each change and each relay that watched it, whatever happens in between", async () => {
  await fc.assert(
    fc.asyncProperty(begin, fc.array(step, { maxLength: 40, size: "max" }), async (first, steps) => {
      await using records = await openWatchedRecords();
      await records.stop();
      const town = new Town(records);
      for (const one of [...first, ...steps]) await town.take(one);
      for (let left = 1; left > 0; left = await records.count("record_change")) await town.drain({}, false);
      expect([town.model.pending, await records.count("past_record_watch")]).toEqual([[], 0]);
      await records.start();
      await town.check();
    }),
    { numRuns: Number(process.env["CAPTURE_RUNS"] ?? roundsOf(25)) },
  );
});
