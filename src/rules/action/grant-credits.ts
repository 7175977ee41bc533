/**
 * grant_credits: adds to the balance of the event's person, once per event, and with a ref only once per person and ref. It never spends.
 * Source: the specification's "Actions".
 */
import { type Static, Type } from "typebox";
import { MAX_CREDITS, MIN_CREDITS } from "../../base/limit.ts";
import { formatCount } from "../../base/text.ts";
import { checkTemplateText } from "../../platform/template/template.ts";
import { addCredits, findCreditByKey } from "../../shop/people/credit.ts";
import { resolveRef } from "../../shop/selling/sale.ts";
import { type DatabaseAction, findActingPerson } from "./contract.ts";
import { defineActionShape, reasonShape, refShape, renderReason } from "./shape.ts";

const words = defineActionShape(
  "grant_credits",
  "Grant credits",
  "Adds credits to the balance of the event's person.",
  {
    amount: Type.Integer({
      minimum: MIN_CREDITS,
      maximum: MAX_CREDITS,
      description: "The number of credits to add.",
      expects: `an integer from ${MIN_CREDITS} to ${formatCount(MAX_CREDITS)}`,
    }),
    reason: Type.Optional(reasonShape),
    ref: Type.Optional(refShape),
  },
);

export type GrantCredits = Static<typeof words.shape>;

export const grantCredits: DatabaseAction<GrantCredits> = {
  ...words,
  effect: "gives",
  sends: false,
  needsPerson: () => true,
  check: (action) => [
    ...(action.reason === undefined ? [] : checkTemplateText("reason", action.reason)),
    ...(action.ref === undefined ? [] : checkTemplateText("ref", action.ref)),
  ],
  references: () => [],
  target: () => "credits",
  examples: [
    { type: "grant_credits", amount: 100 },
    {
      type: "grant_credits",
      amount: 500,
      reason: "Top-up {{mapped.order_id}}",
      ref: "{{mapped.payment_id}}",
    },
  ],

  bind: (action) => async (tx, run) => {
    const { person, failure } = await findActingPerson(tx, run);
    if (failure !== null) return failure;
    const target = resolveRef(action.ref, (text) => run.renderRef(text), run.event.id);
    if ("failure" in target) return target.failure;
    // The runner ensures that an action without a ref gives once per event. A relay with two such actions may give twice on one event.
    const onceKey = action.ref === undefined ? null : `ref:${target.ref}`;
    const first = await findCreditByKey(tx, person.id, onceKey);
    if (first !== null) {
      const message = "This ref already added credits, so no credits were added again.";
      return { outcome: "skipped", message, after: { line: first.id, amount: first.amount } };
    }
    const reason = renderReason(action.reason, run);
    const { line } = await addCredits(tx, {
      environmentId: run.environmentId,
      personId: person.id,
      amount: action.amount,
      reason: reason === "" ? "relay" : `relay: ${reason}`,
      source: "relay",
      relayName: run.relay.name,
      eventId: run.event.id,
      onceKey,
      nowMs: run.nowMs,
    });
    return {
      outcome: "done",
      before: { balance: line.balance - line.amount },
      after: { balance: line.balance, amount: line.amount, line: line.id },
    };
  },
};
