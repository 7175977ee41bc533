/** What a signed-in person may know of themselves: who they are, their plan, what they may use, their credits. */
import { Type } from "typebox";
import { toIso } from "../ground/clock.ts";
import { orNull, time, timeOrNull } from "../ground/schema.ts";
import { checkAccess, grantSource } from "../people/access-grant.ts";
import { findBalance } from "../people/credit.ts";
import { resolveEntitlementKey } from "../people/entitlement.ts";
import { type PersonRow, requirePerson } from "../people/person.ts";
import { currentPlan } from "../selling/subscription.ts";
import { personRoute } from "./client-route.ts";

export const clientPerson = Type.Object({ id: Type.String(), email: Type.String(), createdAt: time });

/** Attributes stay inside: what an app notes about its people is not always for their eyes. */
export function viewClientPerson({ id, email, createdAt }: PersonRow) {
  return { id, email, createdAt: toIso(createdAt) };
}

export const clientMeRoutes = [
  personRoute({
    method: "GET",
    path: "/me",
    summary: "Tells who is signed in and the plan they are on.",
    answer: Type.Object({ person: clientPerson, plan: orNull(Type.String()) }),
    handle({ deps, client, person }) {
      return deps.store.read(async (tx) => {
        const row = await requirePerson(tx, client.environmentId, person.personId);
        const { plan } = await currentPlan(tx, client.environmentId, person.personId);
        return { person: viewClientPerson(row), plan };
      });
    },
  }),
  personRoute({
    method: "GET",
    path: "/access/:entitlement",
    summary: "Tells whether the signed-in person may use one entitlement now, and until when.",
    answer: Type.Object({
      granted: Type.Boolean(),
      until: timeOrNull,
      grants: Type.Array(
        Type.Object({
          source: grantSource,
          grantedAt: time,
          expiresAt: timeOrNull,
        }),
      ),
    }),
    handle({ deps, client, person, params, nowMs }) {
      const { environmentId } = client;
      return deps.store.read(async (tx) => {
        const entitlement = await resolveEntitlementKey(tx, environmentId, params.entitlement);
        const holding = { environmentId, personId: person.personId, entitlement, nowMs };
        const { granted, until, grants } = await checkAccess(tx, holding);
        // Who granted and why are words for the app's owner.
        const shown = grants.map(({ source, grantedAt, expiresAt }) => ({ source, grantedAt, expiresAt }));
        return { granted, until, grants: shown };
      });
    },
  }),
  personRoute({
    method: "GET",
    path: "/credits",
    summary: "Tells the signed-in person's credits.",
    answer: Type.Object({ balance: Type.Integer() }),
    async handle({ deps, client, person }) {
      const { environmentId } = client;
      return { balance: await deps.store.read((tx) => findBalance(tx, environmentId, person.personId)) };
    },
  }),
];
