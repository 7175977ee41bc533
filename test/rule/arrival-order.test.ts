/**
 * Checks that a person ends with the same access, plan and credits in any order of events. Each sequence runs for two people. The events of one run
 * in order of arrival, and those of the other run randomly late. Manual grants run on time for both.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { grantAccess, revokeAccess } from "../../src/rules/action/access.ts";
import type { ActionOutcome, DatabaseAction } from "../../src/rules/action/contract.ts";
import { grantCredits } from "../../src/rules/action/grant-credits.ts";
import { fulfilProduct, grantPlan, refundProduct, revokePlan } from "../../src/rules/action/sale.ts";
import { grantAccess as giveByHand } from "../../src/shop/people/access-grant.ts";
import { putAccessSlug } from "../../src/shop/people/entitlement.ts";
import type { PersonRow } from "../../src/shop/people/person.ts";
import { ON_POSTGRES } from "../kit/chosen-store.ts";
import { IS_SOAK, rounds } from "../kit/rounds.ts";
import { openSellingStore } from "../kit/selling-store.ts";

const market = await openSellingStore();
const { store, environmentId, clock } = market;
await store.write("app", (tx) => putAccessSlug(tx, environmentId, { slug: "club" }, 0));
await market.plan("team", { soldThrough: { kind: "relay", relay: "shop" } });

interface Happening {
  does: "pay" | "cancel" | "give" | "take" | "buy" | "refund" | "credits" | "hand";
  plan: "pro" | "team";
  entitlement: "access:club" | "lamp" | "pro";
  /** One of a few refs; 0 means no ref. */
  ref: number;
  /** The number of steps by which it runs late. */
  late: number;
}

const happening: fc.Arbitrary<Happening> = fc.record({
  does: fc.constantFrom<Happening["does"]>("pay", "pay", "pay", "cancel", "cancel", "give", "take", "take", "buy", "refund", "credits", "hand"),
  plan: fc.constantFrom<Happening["plan"]>("pro", "pro", "team"),
  entitlement: fc.constantFrom<Happening["entitlement"]>("access:club", "lamp", "pro"),
  ref: fc.nat(5),
  late: fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 3, arbitrary: fc.nat(12) }),
});

let arrived = 0;
let lives = 0;

type Work = () => Promise<ActionOutcome>;

/** Builds the step's effect on the person. `life` separates the refs of one sequence from all others. */
function workOf({ does, plan, entitlement, ref }: Happening, person: PersonRow, arrival: number, life: string): Work {
  const at = { arrival, event: `evt_${arrival}` };
  const run =
    <Action>(type: DatabaseAction<Action>, action: Action): Work =>
    () =>
      market.sell(type, action, person, at);
  const under = (name: string) => (ref === 0 ? {} : { ref: `${life}-${name}-${ref}` });
  switch (does) {
    case "pay":
      return run(grantPlan, { type: "grant_plan", plan, ...under(plan) });
    case "cancel":
      // Some of these refs belong to payments of the plan and some do not.
      return run(revokePlan, { type: "revoke_plan", plan, ...under(plan) });
    case "give":
      return run(grantAccess, { type: "grant_access", entitlement });
    case "take":
      return run(revokeAccess, { type: "revoke_access", entitlement });
    case "buy":
      return run(fulfilProduct, { type: "fulfil_product", product: "lamp", ref: `${life}-lamp-${ref}` });
    case "refund":
      return run(refundProduct, { type: "refund_product", product: "lamp", ref: `${life}-lamp-${ref}` });
    case "credits":
      return run(grantCredits, { type: "grant_credits", amount: 5, ...under("credits") });
    case "hand":
      return () =>
        store.write("app", async (tx) => {
          const origin = { source: "hand", sourceRef: "key:test", relayName: null, eventId: null, reason: null } as const;
          // The manual grant happened after the previous event arrived.
          await giveByHand(tx, {
            environmentId,
            personId: person.id,
            entitlement,
            ...origin,
            expiresAtMs: null,
            arrival: arrival - 1,
            nowMs: clock.now(),
          });
          return { outcome: "done" };
        });
  }
}

/** Runs the sequence. At each moment it runs what is due in order of arrival, and at the end it retries failures. */
async function lead(steps: readonly Happening[], person: PersonRow, life: string, disturbed: boolean): Promise<void> {
  const first = arrived + 1;
  arrived += steps.length;
  const due = steps.map((step, at) => ({
    moment: at + (disturbed && step.does !== "hand" ? step.late : 0),
    work: workOf(step, person, first + at, life),
  }));
  let left: Work[] = due.toSorted((one, other) => one.moment - other.moment).map(({ work }) => work);
  for (let turn = 0; turn < 2; turn++) {
    const again: Work[] = [];
    for (const work of left) if ((await work()).outcome === "failed") again.push(work);
    left = again;
  }
}

async function heldBy(person: PersonRow, life: string): Promise<unknown> {
  const receipts = await store.read((tx) =>
    tx.all<{ ref: string; confirmation: number }>("SELECT ref, confirmation FROM purchase WHERE person_id = ?1 AND kind = 'purchase'", person.id),
  );
  // A ref that the service made contains an event's number, so the test replaces it by its rank.
  const numbers = receipts.flatMap(({ ref }) => (ref.startsWith("rly:evt_") ? [Number(ref.slice("rly:evt_".length))] : []));
  const nth = new Map(numbers.sort((one, other) => one - other).map((number, at) => [`rly:evt_${number}`, `none ${at}`]));
  const shown = receipts.map(({ ref, confirmation }) => `${nth.get(ref) ?? ref.slice(life.length)}${confirmation === 1 ? " confirms" : ""}`);
  return { ...(await market.holdings(person)), receipts: shown.sort() };
}

test(
  "events that run late leave the same state as events that run in order of arrival",
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(happening, { minLength: 2, maxLength: 18 }), async (steps) => {
        const life = `life${++lives}`;
        const [calm, rushed] = [await market.newPerson(), await market.newPerson()];
        await lead(steps, calm, `${life}a`, false);
        await lead(steps, rushed, `${life}b`, true);
        expect(await heldBy(rushed, `${life}b`)).toEqual(await heldBy(calm, `${life}a`));
      }),
      { numRuns: rounds({ slice: ON_POSTGRES ? 20 : 100, soak: ON_POSTGRES ? 60 : 500, long: ON_POSTGRES ? 300 : 2_000 }) },
    );
  },
  IS_SOAK ? 3_600_000 : 240_000,
);
