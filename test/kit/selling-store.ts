/**
 * A store with relays, products and plans on which the selling actions run as the runner runs them, each event with its own id. It has no
 * service, because a model's thousands of sales each apply one action. Flow tests sell the same through a service.
 */

import type { EnvironmentName } from "../../src/platform/account/environment.ts";
import type { ActionOutcome, DatabaseAction } from "../../src/rules/action/contract.ts";
import { deleteRelay } from "../../src/rules/relay/relay-save.ts";
import { listLiveGrants } from "../../src/shop/people/access-grant.ts";
import { findBalance } from "../../src/shop/people/credit.ts";
import { findPerson, type PersonRow } from "../../src/shop/people/person.ts";
import { currentPlan } from "../../src/shop/selling/plan-sale.ts";
import { type Occurrence, openTown, type Town } from "./people.ts";
import { makeRelayKit, schedule } from "./relay-kit.ts";

interface SellingStore extends Town {
  newRelay(name: string, environment?: EnvironmentName): Promise<void>;
  deleteRelay(name: string): Promise<void>;
  /** Runs a selling action for a person in the person's stored state. */
  sell<Action>(type: DatabaseAction<Action>, action: Action, person: PersonRow, occurrence?: Occurrence): Promise<ActionOutcome>;
  /** Adds refunds without a purchase, which are the newest receipts of the person. */
  addRefunds(person: PersonRow, most: number): Promise<void>;
  /** Returns the live grants as `<entitlement> from <source>`, sorted, the balance and the plan. */
  holdings(person: PersonRow): Promise<{ grants: string[]; credits: number; plan: string | null }>;
}

let events = 0;

/**
 * Opens a store with relays `shop` and `other`, a product `lamp` (key and 100 credits), and plans `free` (default) and `pro`. The relay `shop` sells
 * the product and the plan `pro`.
 */
export async function openSellingStore(): Promise<SellingStore> {
  const town = await openTown();
  const { store, clock, environmentId } = town;
  const kit = makeRelayKit(town);
  const market: SellingStore = {
    ...town,
    async newRelay(name, environment = "development") {
      await kit.create(schedule(name), {}, environment);
    },
    async deleteRelay(name) {
      const context = await kit.context();
      await store.write("dashboard", (tx) => deleteRelay(tx, context, name));
    },
    async sell(type, action, person, occurrence = {}) {
      const now = await store.read((tx) => findPerson(tx, environmentId, person.id));
      const run = market.makeRun(now, occurrence);
      return store.write("relay", (tx) => type.bind(action)(tx, run));
    },
    /** Gives each event a different id. */
    makeRun: (person, occurrence = {}) => town.makeRun(person, { event: `evt_${++events}`, ...occurrence }),
    async addRefunds({ id }, most) {
      const sql = `WITH RECURSIVE refund (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM refund WHERE number < $most)
        INSERT INTO purchase (id, environment_id, kind, ref, item_kind, item, person_id, origin, refunds, created_at)
        SELECT 'prc_z' || $id || number, $environmentId, 'refund', 'other' || $id || number, 'product', 'lamp', $id, 'payment', 'prc_none', 1 FROM refund`;
      await store.write("app", (tx) => tx.run(sql, { environmentId, id, most }));
    },
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
