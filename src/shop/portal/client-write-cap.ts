/**
 * Limits what the people of an app write in a minute, counted in memory: by person, by address (an IPv6 /64) and by app, and the events
 * that such writes cause. A write is counted before it is checked, so that rejected writes count too.
 */
import type { Clock } from "../../base/clock.ts";
import { CAP_WINDOW_MS, type RaisableLimits, SIGNIN_WINDOW_MS } from "../../base/limit.ts";
import { drawPlaces, takeAll } from "../../base/limit-window.ts";
import { Limiter, type Places } from "../../base/limiter.ts";
import { Refusal } from "../../base/refusal.ts";
import { raiseAlert } from "../../platform/audit/alert.ts";
import type { Store, Writer } from "../../store/port.ts";
import { countWatchers, withinStorage } from "../records/record-budget.ts";
import type { PersonAt } from "./person-record.ts";

interface ClientWriteDeps {
  store: Store;
  clock: Clock;
  limits: RaisableLimits;
  /** The places where several nodes count shared limits. */
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
      return await store.write(
        "app",
        (tx) => withinStorage(tx, at, limits, () => work(tx)),
        at.environmentId,
      );
    } catch (error) {
      if (error instanceof Refusal && error.extra.details?.limit === "environment") {
        const message = `The records and files of this environment take ${limits.storedPerEnvironmentMb} MB, which is the limit, so writes of people and of the app are refused. Delete data that is no longer needed (relay records delete, relay files delete), suspend the person who fills it (relay people suspend), or raise RELAY_LIMIT_STORED_PER_ENVIRONMENT_MB.`;
        await this.#notifyOnce(at.environmentId, "client:storage", message);
      }
      throw error;
    }
  }

  #notifyOwner({ environmentId, personId }: PersonAt, name: CapName): Promise<void> {
    const [what, variable] = CAPS[name];
    const message = `More than ${this.#deps.limits[name]} ${what} within a minute came through the client library, which is the limit: more are refused until the minute is over. Suspend the person who floods the app, or raise ${variable} if this is normal traffic.`;
    const target = name.includes("PerApp") ? "client:writes" : `person:${personId}`;
    return this.#notifyOnce(environmentId, target, message, name);
  }

  /** Notifies the owner of a full window or environment, at most once an hour. */
  async #notifyOnce(environmentId: number, target: string, message: string, what = target): Promise<void> {
    if (this.#notices.take(`${environmentId} ${what}`) !== null) return;
    const { store, clock } = this.#deps;
    await store.write(
      "app",
      (tx) => raiseAlert(tx, { environmentId, code: "writes_capped", target, message, nowMs: clock.now() }),
      environmentId,
    );
  }
}
