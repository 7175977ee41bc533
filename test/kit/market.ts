/** A town that sells: relays by name, products and plans, and the selling actions run as the runner runs them, each event with its own id. */
import type { ActionOutcome, DatabaseAction } from "../../src/action/contract.ts";
import { listLiveGrants } from "../../src/people/access-grant.ts";
import { findBalance } from "../../src/people/credit.ts";
import { findPerson, type PersonRow } from "../../src/people/person.ts";
import { type PlanInput, savePlan } from "../../src/selling/plan.ts";
import { currentPlan } from "../../src/selling/plan-sale.ts";
import { type ProductInput, saveProduct } from "../../src/selling/product.ts";
import { type Occurrence, openTown, type Town } from "./people.ts";

interface Market extends Town {
  newRelay(name: string, environmentId?: number): Promise<void>;
  deleteRelay(name: string): Promise<void>;
  product(name: string, input?: ProductInput): Promise<void>;
  plan(name: string, input?: PlanInput): Promise<void>;
  /** Runs a selling action for a person, as they are stored now. */
  sell<Action>(type: DatabaseAction<Action>, action: Action, person: PersonRow, occurrence?: Occurrence): Promise<ActionOutcome>;
  /** Live grants as `<entitlement> from <source>`, sorted, the balance and the plan. */
  holdings(person: PersonRow): Promise<{ grants: string[]; credits: number; plan: string | null }>;
}

let events = 0;

/** Relays `shop` and `other`; a product `lamp` (key and 100 credits) and plans `free` (default) and `pro`, sold through `shop`. */
export async function openMarket(): Promise<Market> {
  const town = await openTown();
  const { store, clock, environmentId } = town;
  const change = () => ({ environmentId, by: "key:test", nowMs: clock.now() });
  const market: Market = {
    ...town,
    async newRelay(name, at = environmentId) {
      await store.write("app", (tx) =>
        tx.run(
          `INSERT INTO relay (id, environment_id, name, definition, origin_kind, origin_at, active_since, created_at, updated_at)
           VALUES (?1, ?2, ?3, '{}', 'dashboard', 0, 0, 0, 0)`,
          `rly_${name}_${at}`,
          at,
          name,
        ),
      );
    },
    async deleteRelay(name) {
      await store.write("app", (tx) => tx.run("DELETE FROM relay WHERE name = ?1", name));
    },
    async product(name, input = {}) {
      await store.write("app", (tx) => saveProduct(tx, change(), name, input));
    },
    async plan(name, input = {}) {
      await store.write("app", (tx) => savePlan(tx, change(), name, input));
    },
    async sell(type, action, person, occurrence = {}) {
      const now = await store.read((tx) => findPerson(tx, environmentId, person.id));
      const run = market.makeRun(now, occurrence);
      return store.write("relay", (tx) => type.apply(tx, action, run));
    },
    /** Each event has an id of its own. */
    makeRun: (person, occurrence = {}) => town.makeRun(person, { event: `evt_${++events}`, ...occurrence }),
    holdings: (person) =>
      store.read(async (tx) => {
        const at = { environmentId, personId: person.id, entitlement: null, nowMs: clock.now() };
        const grants = await listLiveGrants(tx, at);
        return {
          grants: grants.map(({ entitlement, source }) => `${entitlement} from ${source}`).sort(),
          credits: await findBalance(tx, environmentId, person.id),
          plan: (await currentPlan(tx, environmentId, person.id)).plan,
        };
      }),
  };
  await market.newRelay("shop");
  await market.newRelay("other");
  await market.product("lamp", { credits: 100, soldThrough: { kind: "relay", relay: "shop" } });
  await market.plan("free");
  await market.plan("pro", { soldThrough: { kind: "relay", relay: "shop" } });
  return market;
}
