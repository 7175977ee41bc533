/**
 * Compares any order of payments, refunds, renewals, cancellations, repeats and spending with a simple model. Access equals what the receipts say,
 * and each ref counts once.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { fulfilProduct, grantPlan, refundProduct, revokePlan } from "../../src/rules/action/sale.ts";
import { addCredits, findBalance } from "../../src/shop/people/credit.ts";
import type { PersonRow } from "../../src/shop/people/person.ts";
import { roundsOf } from "../kit/chosen-store.ts";
import { openSellingStore } from "../kit/selling-store.ts";

const market = await openSellingStore();
const { store, environmentId, clock } = market;
await market.product("book", {
  key: "access:library",
  credits: 7,
  soldThrough: { kind: "relay", relay: "shop" },
});
await market.plan("team", { soldThrough: { kind: "relay", relay: "shop" } });

const PRODUCTS = {
  lamp: { key: "lamp", credits: 100 },
  book: { key: "access:library", credits: 7 },
} as const;
type Product = keyof typeof PRODUCTS;
type Plan = "pro" | "team";

type Step =
  | { do: "fulfil"; who: number; product: Product; ref: number }
  | { do: "refund"; who: number; product: Product; ref: number }
  | { do: "grant"; who: number; plan: Plan; ref: number }
  | { do: "revoke"; who: number; plan: Plan; ref: number }
  | { do: "spend"; who: number; amount: number };

const who = fc.integer({ min: 0, max: 1 });
const ref = fc.integer({ min: 0, max: 3 });
const product = fc.constantFrom<Product>("lamp", "book");
const plan = fc.constantFrom<Plan>("pro", "team");
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant("fulfil"), who, product, ref }),
  fc.record({ do: fc.constant("refund"), who, product, ref }),
  fc.record({ do: fc.constant("grant"), who, plan, ref }),
  fc.record({ do: fc.constant("revoke"), who, plan, ref }),
  fc.record({ do: fc.constant("spend"), who, amount: fc.integer({ min: 1, max: 150 }) }),
);

/** The expected access, computed only from the steps. */
class Model {
  readonly credits = [0, 0];
  /** The active plan, with the ref of its newest payment. */
  readonly plan: (null | { plan: Plan; paid: number })[] = [null, null];
  readonly #sold = new Map<number, { who: number; item: string; refunded: boolean }>();

  take(step: Step): string {
    if (step.do === "spend") {
      const short = (this.credits[step.who] ?? 0) < step.amount;
      if (!short) this.#add(step.who, -step.amount);
      return short ? "short" : "done";
    }
    const item = "product" in step ? step.product : step.plan;
    const sold = this.#sold.get(step.ref);
    const isTheirs = sold?.who === step.who;
    if (sold !== undefined && !(isTheirs && sold.item === item)) return step.do === "refund" && isTheirs ? "skipped" : "ref_used";
    if (step.do === "fulfil") return sold ? "skipped" : this.#fulfil(step.who, step.product, step.ref);
    if (step.do === "grant") return sold ? "skipped" : this.#grant(step.who, step.plan, step.ref);
    if (step.do === "refund") return this.#refund(step.who, step.product, sold);
    const active = this.plan[step.who];
    if (!active || active.plan !== step.plan || (sold !== undefined && active.paid !== step.ref)) return "skipped";
    this.plan[step.who] = null;
    return "done";
  }

  grants(who: number): string[] {
    const bought = [...this.#sold.values()].filter((sold) => sold.who === who && !sold.refunded && sold.item in PRODUCTS);
    const active = this.plan[who];
    return [...bought.map((sold) => `${PRODUCTS[sold.item as Product].key} from purchase`), ...(active ? [`${active.plan} from plan`] : [])].sort();
  }

  #fulfil(who: number, product: Product, ref: number): string {
    this.#sold.set(ref, { who, item: product, refunded: false });
    this.#add(who, PRODUCTS[product].credits);
    return "done";
  }

  #refund(who: number, product: Product, sold: { refunded: boolean } | undefined): string {
    if (sold === undefined) return "purchase_missing";
    if (sold.refunded) return "skipped";
    sold.refunded = true;
    this.#add(who, -Math.min(this.credits[who] ?? 0, PRODUCTS[product].credits));
    return "done";
  }

  #grant(who: number, plan: Plan, ref: number): string {
    this.plan[who] = { plan, paid: ref };
    this.#sold.set(ref, { who, item: plan, refunded: false });
    return "done";
  }

  #add(who: number, amount: number): void {
    this.credits[who] = (this.credits[who] ?? 0) + amount;
  }
}

let io = 0;

async function take(step: Step, person: PersonRow, prefix: string): Promise<string> {
  if (step.do === "spend") return spend(person, step.amount);
  const ref = `${prefix}-${step.ref}`;
  const outcome = await (step.do === "fulfil"
    ? market.sell(fulfilProduct, { type: "fulfil_product", product: step.product, ref }, person)
    : step.do === "refund"
      ? market.sell(refundProduct, { type: "refund_product", product: step.product, ref }, person)
      : step.do === "grant"
        ? market.sell(grantPlan, { type: "grant_plan", plan: step.plan, ref }, person)
        : market.sell(revokePlan, { type: "revoke_plan", plan: step.plan, ref }, person));
  return outcome.outcome === "failed" ? outcome.code : outcome.outcome;
}

async function spend(person: PersonRow, amount: number): Promise<string> {
  return store.write("app", async (tx) => {
    if ((await findBalance(tx, environmentId, person.id)) < amount) return "short";
    await addCredits(tx, {
      environmentId,
      personId: person.id,
      amount: -amount,
      reason: "spent",
      source: "hand",
      relayName: null,
      eventId: null,
      onceKey: null,
      nowMs: clock.now(),
    });
    return "done";
  });
}

test("any order of fulfill, refund, renew, cancel, repeat and spend leaves the state of the model", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
      const prefix = `world${++io}`;
      const people = [await market.newPerson(), await market.newPerson()];
      const model = new Model();
      for (const one of steps) {
        const person = people[one.who] as PersonRow;
        expect(await take(one, person, prefix)).toBe(model.take(one));
        expect(await market.holdings(person)).toEqual({
          grants: model.grants(one.who),
          credits: model.credits[one.who] ?? 0,
          plan: model.plan[one.who]?.plan ?? "free",
        });
      }
    }),
    { numRuns: roundsOf(150) },
  );
});
