/** A person's credits: the balance with its ledger, and adding or spending by hand under an idempotency key. */
import { Type } from "typebox";
import { readPageRequest } from "../ground/page.ts";
import { fields, pageQuery, textOrNull } from "../ground/schema.ts";
import { addCreditsByHand, creditView, listCredits, viewCredit } from "../people/credit.ts";
import { requirePerson } from "../people/person.ts";
import { environmentRoute } from "./route.ts";

export const creditRoutes = [
  environmentRoute({
    method: "GET",
    path: "/persons/:id/credits",
    summary: "Tells a person's balance, with the ledger newest first.",
    query: fields(pageQuery),
    answer: Type.Object({ balance: Type.Integer(), items: Type.Array(creditView), next: textOrNull }),
    handle({ deps, environment, params, query }) {
      const page = readPageRequest(query);
      const at = { environmentId: environment.id, personId: params.id };
      return deps.store.read(async (tx) => {
        await requirePerson(tx, at.environmentId, params.id);
        return await listCredits(tx, at, page);
      });
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/persons/:id/credits",
    summary: "Adds credits, or spends with a negative amount; the same key applies once.",
    body: fields({
      amount: Type.Integer({ description: "an integer other than 0; a negative one spends" }),
      reason: Type.String(),
      key: Type.String({ description: "your own key for this change, so that a repeat applies once" }),
    }),
    answer: Type.Object({ credit: creditView, balance: Type.Integer(), applied: Type.Boolean() }),
    status: 201,
    async handle({ deps, environment, origin, audit, params, body, nowMs }) {
      const change = { environmentId: environment.id, personId: params.id, nowMs, ...body };
      const made = await deps.store.write(origin, async (tx) => {
        const result = await addCreditsByHand(tx, change);
        if (result.applied) {
          const { id, amount, balance } = result.line;
          await audit(tx, {
            action: "credits.changed",
            target: `person:${params.id}`,
            before: { balance: balance - amount },
            after: { balance, amount, credit: id },
          });
        }
        return result;
      });
      return { credit: viewCredit(made.line), balance: made.line.balance, applied: made.applied };
    },
  }),
];
