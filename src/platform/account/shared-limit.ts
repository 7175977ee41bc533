/**
 * Limits that several nodes share, counted in the database. All nodes together admit at most the limit, and counts survive the death of a
 * node. A window begins with the first draw and ends by the database's clock; if that clock is set back, a window still ends within its
 * length. Names contain network addresses, so only their keyed digests are stored.
 */
import { type Clock, systemClock } from "../../base/clock.ts";
import type { Limiter, Nodes, PlaceAsk, Places } from "../../base/limiter.ts";
import { readDatabaseTime } from "../../store/lease/node-lease.ts";
import { type Reader, SERVICE_ROWS, type Store, type Writer } from "../../store/port.ts";
import { bytes, defineTable, integer } from "../../store/table.ts";

const LIMIT_WINDOW = defineTable({
  name: "limit_window",
  key: ["name"],
  columns: { name: bytes(), endsAt: integer(), taken: integer() },
});

/** Each draw adds a few rows, so it also deletes up to 50 expired ones. */
const FORGET = `DELETE FROM limit_window WHERE name IN (
  SELECT name FROM limit_window WHERE ends_at <= ?1 ORDER BY ends_at LIMIT 50)`;

interface PlacesDeps {
  store: Store;
  /** A test's own clock replaces the clock of the database. */
  clock: Clock;
  digest: (text: string) => Uint8Array;
  nodes: Nodes;
  /** Milliseconds by the database. */
  readNow?: (tx: Reader) => Promise<number>;
}

/** A caller that waits for a draw. */
interface Waiting {
  asks: readonly PlaceAsk[];
  resolve(): void;
  reject(error: unknown): void;
}

type Place = Omit<PlaceAsk, "amount">;

/** A window as the transaction found it, and its changes. */
interface Drawn extends Place {
  key: Uint8Array;
  taken: number;
  endsAt: number;
  endsInMs: number;
  isChanged: boolean;
  drawn: number;
  isUsedUp: boolean;
}

export class SharedPlaces implements Places {
  readonly #deps: Required<PlacesDeps>;
  #waiting: Waiting[] = [];
  #returned: Place[] = [];
  #isDrawing = false;

  constructor(deps: PlacesDeps) {
    const { clock } = deps;
    const readNow = clock === systemClock ? readDatabaseTime : async () => clock.now();
    this.#deps = { readNow, ...deps };
  }

  get nodes(): number {
    return this.#deps.nodes.live;
  }

  draw(asks: readonly PlaceAsk[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ asks, resolve, reject });
      void this.#drawAll();
    });
  }

  giveBack(limiter: Limiter, name: string): void {
    this.#returned.push({ limiter, name });
    void this.#drawAll();
  }

  /** Draws for all callers that wait. Callers that ask during a transaction share the next one. */
  async #drawAll(): Promise<void> {
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    while (this.#waiting.length + this.#returned.length > 0) {
      const waiting = this.#waiting.splice(0);
      const returned = this.#returned.splice(0);
      try {
        const work = (tx: Writer) => this.#drawIn(tx, waiting, returned);
        const drawn = await this.#deps.store.write("app", work, SERVICE_ROWS);
        for (const { limiter, name, ...found } of drawn)
          if (found.drawn > 0 || found.isUsedUp)
            limiter.give(name, { ...found, left: limiter.limit - found.taken });
        for (const { resolve } of waiting) resolve();
      } catch (error) {
        for (const { reject } of waiting) reject(error);
      }
    }
    this.#isDrawing = false;
  }

  async #drawIn(tx: Writer, waiting: readonly Waiting[], returned: readonly Place[]): Promise<Drawn[]> {
    tx.suppressWakeups();
    // Reads in one round trip and awaits no write, because all nodes wait for the transaction.
    const places = [...returned, ...waiting.flatMap(({ asks }) => asks)];
    const named = new Map(places.map((place) => [nameOf(place), place]));
    const keys = [...named.keys()].map((name) => this.#deps.digest(`limit ${name}`));
    const [nowMs, ...rows] = await Promise.all([
      this.#deps.readNow(tx),
      ...keys.map((name) => LIMIT_WINDOW.find(tx, { name })),
    ]);
    await tx.post(FORGET, nowMs);
    const known = new Map(
      [...named].map(([name, place], at) => {
        const key = keys[at] as Uint8Array;
        return [name, openWindow({ ...place, key }, rows[at] ?? null, nowMs)];
      }),
    );
    const find = (place: Place): Drawn => known.get(nameOf(place)) as Drawn;
    for (const place of returned) take(find(place), -1);
    for (const { asks } of waiting) {
      const wanted = asks.map((ask) => ({ ...ask, of: find(ask) }));
      const lacking = wanted.filter(({ of }) => leftOf(of) === 0);
      for (const { of } of lacking) of.isUsedUp = true;
      if (lacking.length > 0) continue;
      for (const { of, amount } of wanted) takePlaces(of, Math.min(amount, leftOf(of)));
    }
    const all = [...known.values()];
    for (const one of all) if (one.drawn > 0) takePlaces(one, Math.min(one.limiter.ahead, leftOf(one)));
    const changed = all.filter(({ isChanged }) => isChanged);
    await tx.postEach(
      STORE,
      changed.map(({ key: name, endsAt, taken }) => ({ name, endsAt, taken })),
    );
    return all;
  }
}

const STORE = `INSERT INTO limit_window (name, ends_at, taken) VALUES ($name, $endsAt, $taken)
  ON CONFLICT (name) DO UPDATE SET ends_at = excluded.ends_at, taken = excluded.taken`;

function nameOf({ limiter, name }: Place): string {
  return `${limiter.kind}\n${name}`;
}

/** Returns the window of the stored row, or a new one that begins now. */
function openWindow(
  place: Place & { key: Uint8Array },
  row: { endsAt: number; taken: number } | null,
  nowMs: number,
): Drawn {
  const { limiter, name, key } = place;
  const { windowMs } = limiter;
  const runs = row !== null && nowMs < row.endsAt;
  const endsAt = Math.min(runs ? row.endsAt : nowMs + windowMs, nowMs + windowMs);
  const isChanged = runs && endsAt !== row.endsAt;
  const taken = runs ? row.taken : 0;
  return {
    limiter,
    name,
    key,
    taken,
    endsAt,
    endsInMs: endsAt - nowMs,
    isChanged,
    drawn: 0,
    isUsedUp: false,
  };
}

function leftOf({ limiter, taken }: Drawn): number {
  return Math.max(0, limiter.drawable - taken);
}

function takePlaces(one: Drawn, places: number): void {
  take(one, places);
  one.drawn += places;
}

/** Negative `places` gives places back. */
function take(one: Drawn, places: number): void {
  if (places === 0) return;
  one.taken = Math.max(0, one.taken + places);
  one.isChanged = true;
}
