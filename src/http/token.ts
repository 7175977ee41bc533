/** Store account tokens of a person: filed by the app, so that a store's purchase finds its person. The audit gets fingerprints alone. */
import { Type } from "typebox";
import { fileToken, findPersonByToken, removeToken } from "../people/person-token.ts";
import { fingerprintSecret } from "../secret/fingerprint.ts";
import { environmentRoute } from "./route.ts";
import { time } from "./schema.ts";
import { auditVisit } from "./visit-audit.ts";

export const tokenRoutes = [
  environmentRoute({
    method: "PUT",
    path: "/persons/:id/tokens/:token",
    summary: "Files a store account token for a person; filing it again changes nothing.",
    answer: Type.Object({ token: Type.Object({ token: Type.String(), createdAt: time }) }),
    async handle({ rooms, visit, params, nowMs }) {
      const filing = { environmentId: visit.environment.id, personId: params.id, token: params.token, nowMs };
      const token = await rooms.store.write(visit.origin, async (tx) => {
        const earlier = await findPersonByToken(tx, filing.environmentId, filing.token);
        const filed = await fileToken(tx, filing);
        if (earlier === null) {
          await auditVisit(tx, visit, nowMs, {
            action: "person.token_filed",
            target: `person:${params.id}`,
            after: { token: fingerprintSecret(params.token) },
          });
        }
        return filed;
      });
      return { token };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/persons/:id/tokens/:token",
    summary: "Takes a person's store account token back.",
    answer: null,
    async handle({ rooms, visit, params, nowMs }) {
      const filing = { environmentId: visit.environment.id, personId: params.id, token: params.token };
      await rooms.store.write(visit.origin, async (tx) => {
        await removeToken(tx, filing);
        await auditVisit(tx, visit, nowMs, {
          action: "person.token_removed",
          target: `person:${params.id}`,
          before: { token: fingerprintSecret(params.token) },
        });
      });
      return undefined;
    },
  }),
];
