/**
 * How much the people of an app may write through the client library in a minute, counted in memory: by person, by address (of IPv6 the
 * /64) and by app, and the events that such writes make where relays watch the collection. A write is counted before it is judged, so
 * that refused ones cost their sender too. It forgets with the process, and never sees what is written.
 */
import { alertOn, findEnvironmentById } from "../account/environment.ts";
import type { Clock } from "../ground/clock.ts";
import { CAP_WINDOW_MS, type RaisableLimits, SIGNIN_WINDOW_MS } from "../ground/limit.ts";
import { Limiter, takeAll } from "../ground/limiter.ts";
import { Refusal } from "../ground/refusal.ts";
import { countWatchers, withinStorage } from "../records/record-budget.ts";
import type { Store, Writer } from "../store/port.ts";
import { raiseAlert } from "../watch/alert.ts";
import type { PersonAt } from "./person-record.ts";

interface ClientWriteRooms {
  store: Store;
  clock: Clock;
  limits: RaisableLimits;
}

/** The caps in the order they are looked at, each with what it counts in words and the variable that raises it. */
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
  readonly #rooms: ClientWriteRooms;
  readonly #caps: Readonly<Record<CapName, Limiter>>;
  /** Which caps of which environment the owner was told of within the hour. */
  readonly #told: Limiter;

  constructor(rooms: ClientWriteRooms) {
    this.#rooms = rooms;
    const caps = Object.keys(CAPS).map((name) => [
      name,
      new Limiter(rooms.clock, rooms.limits[name as CapName], CAP_WINDOW_MS),
    ]);
    this.#caps = Object.fromEntries(caps) as Record<CapName, Limiter>;
    this.#told = new Limiter(rooms.clock, 1, SIGNIN_WINDOW_MS);
  }

  /** Counts a write in every window; refuses with `writes_capped`, having counted nothing, where one is full. */
  async count(source: string, at: PersonAt, change: "created" | "updated" | "deleted"): Promise<void> {
    const events = await this.#rooms.store.read((tx) => countWatchers(tx, at, change));
    const app = String(at.environmentId);
    const person = `${app} ${at.personId}`;
    const needs: [CapName, string, number][] = [
      ["clientWritesPerPersonPerMinute", person, 1],
      ["clientWritesPerAddressPerMinute", `${app} ${source}`, 1],
      ["clientWritesPerAppPerMinute", app, 1],
      ["clientEventsPerPersonPerMinute", person, events],
      ["clientEventsPerAppPerMinute", app, events],
    ];
    const asked = needs.filter(([, , amount]) => amount > 0);
    const full = takeAll(
      asked.map(([cap, name, amount]) => ({ cap, limiter: this.#caps[cap], name, amount })),
    );
    if (full === null) return;
    const { need, resetAtMs } = full;
    await this.#tellOwner(at, need.cap);
    throw new Refusal(
      "writes_capped",
      `The limit of ${need.limiter.limit} ${CAPS[need.cap][0]} within a minute is reached: write again after resetAt.`,
      { resetAtMs },
    );
  }

  /** Stores what was counted. Refuses with `storage_capped`; that the environment is full is the owner's to hear. */
  async store<Result>(at: PersonAt, work: (tx: Writer) => Promise<Result>): Promise<Result> {
    const { store, limits } = this.#rooms;
    try {
      return await store.write("app", (tx) => withinStorage(tx, at, limits, () => work(tx)));
    } catch (error) {
      if (error instanceof Refusal && error.extra.details?.limit === "environment") {
        const message = `The records and files of this environment take ${limits.storedPerEnvironmentMb} MB, the limit, so what people and the app write is refused: delete what is no longer needed, suspend whoever fills it, or raise RELAY_LIMIT_STORED_PER_ENVIRONMENT_MB.`;
        await this.#tellOnce(at.environmentId, "client:storage", message);
      }
      throw error;
    }
  }

  #tellOwner({ environmentId, personId }: PersonAt, name: CapName): Promise<void> {
    const [what, variable] = CAPS[name];
    const message = `More than ${this.#rooms.limits[name]} ${what} within a minute came through the client library, the limit: further ones are refused until the minute is over. Suspend whoever floods, or raise ${variable} if this is what your people do.`;
    const target = name.includes("PerApp") ? "client:writes" : `person:${personId}`;
    return this.#tellOnce(environmentId, target, message, name);
  }

  /** The owner hears of a full window, and of a full environment, once an hour, whoever filled it. */
  async #tellOnce(environmentId: number, target: string, message: string, what = target): Promise<void> {
    if (this.#told.take(`${environmentId} ${what}`) !== null) return;
    const { store, clock } = this.#rooms;
    await store.write("app", async (tx) => {
      const environment = await findEnvironmentById(tx, environmentId);
      if (environment === null || !alertOn(environment, "writes_capped")) return;
      await raiseAlert(tx, { environmentId, code: "writes_capped", target, message, nowMs: clock.now() });
    });
  }
}
