/** People, catalogs and action runs for rule tests. Each call commits separately, as a request does. */

import type { JsonObject } from "../../src/base/json.ts";
import { DEFAULT_LIMITS, type RaisableLimits } from "../../src/base/limit.ts";
import { makeActionRun } from "../../src/engine/runner/context.ts";
import type { ActionOutcome, ActionRun, DatabaseAction } from "../../src/rules/action/contract.ts";
import { type PersonRow, updatePerson } from "../../src/shop/people/person.ts";
import { invitePerson } from "../../src/shop/people/person-invite.ts";
import { createCollection } from "../../src/shop/records/collection.ts";
import { requireCollectionDefinition } from "../../src/shop/records/collection-definition.ts";
import { type PlanInput, savePlan } from "../../src/shop/selling/plan.ts";
import { type ProductInput, saveProduct } from "../../src/shop/selling/product.ts";
import { type FreshStore, openFreshStore } from "./fresh-store.ts";

export interface Town extends FreshStore {
  environmentId: number;
  /** Another environment of the same app. */
  otherEnvironmentId: number;
  /** Creates a person with a made-up address. */
  newPerson(options?: { environmentId?: number; suspended?: boolean }): Promise<PersonRow>;
  newCollection(name: string, kind: string, fields: unknown): Promise<void>;
  product(name: string, input?: ProductInput): Promise<void>;
  plan(name: string, input?: PlanInput): Promise<void>;
  makeRun(person: PersonRow | null, occurrence?: Occurrence): ActionRun;
  /** Runs an action once for a person as the runner does, in a transaction of origin `relay`. */
  act<Action>(type: DatabaseAction<Action>, action: Action, person: PersonRow | null, payload?: JsonObject): Promise<ActionOutcome>;
}

let count = 0;
let arrived = 0;

export async function openTown(): Promise<Town> {
  const fresh = await openFreshStore();
  const { store, clock, environment } = fresh;
  const environmentId = (await environment("development")).id;
  const otherEnvironmentId = (await environment("production")).id;
  const change = () => ({ environmentId, by: "key:test", nowMs: clock.now() });
  return {
    ...fresh,
    environmentId,
    otherEnvironmentId,
    async newPerson(options = {}) {
      count += 1;
      const nowMs = clock.now();
      const at = options.environmentId ?? environmentId;
      const invite = {
        email: `person${count}@example.com`,
        createdBy: "key:test",
        nowMs,
        invitesPerDay: 100_000,
      };
      const { person } = await store.write("app", (tx) => invitePerson(tx, { environmentId: at, ...invite }));
      if (options.suspended !== true) return person;
      const where = { environmentId: at, personId: person.id, nowMs };
      return (await store.write("app", (tx) => updatePerson(tx, where, { status: "suspended" }))).after;
    },
    async newCollection(name, kind, fields) {
      const definition = requireCollectionDefinition({ name, kind, fields });
      await store.write("app", (tx) => createCollection(tx, environmentId, definition, clock.now()));
    },
    async product(name, input = {}) {
      await store.write("app", (tx) => saveProduct(tx, change(), name, input));
    },
    async plan(name, input = {}) {
      await store.write("app", (tx) => savePlan(tx, change(), name, input));
    },
    makeRun: (person, occurrence = {}) => makeRun(environmentId, clock.now(), person, occurrence),
    act(type, action, person, payload = {}) {
      const run = makeRun(environmentId, clock.now(), person, { payload });
      return store.write("relay", (tx) => type.bind(action)(tx, run));
    },
  };
}

export interface Occurrence {
  /** The relay that runs, `shop` by default. */
  relay?: string;
  event?: string;
  /** The event's number. The default arrives after all earlier events. */
  arrival?: number;
  payload?: JsonObject;
  local?: boolean;
  limits?: RaisableLimits;
}

/** Returns what the runner passes to an action for a receiver's event. Templates read the payload and the person. */
function makeRun(environmentId: number, nowMs: number, person: PersonRow | null, occurrence: Occurrence): ActionRun {
  const { relay = "shop", event = "evt_test", arrival = ++arrived, payload = {}, local = false, limits = DEFAULT_LIMITS } = occurrence;
  const trigger = { kind: "receiver" as const, verify: { scheme: "hooks" }, map: {} };
  const definition = { name: relay, trigger, actions: [] };
  return makeActionRun({
    relay: { id: `rly_${relay}`, name: relay, environmentId, appId: "app_test", local, signingSecret: null, previousSigningSecret: null, definition },
    event: { id: event, seq: arrival, createdAt: nowMs, runs: 1, trigger: "receiver", truncated: false, form: false },
    payload,
    person,
    results: [],
    nowMs,
    limits,
    warn: () => undefined,
  });
}
