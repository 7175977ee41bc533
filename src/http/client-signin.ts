/** Signing people in to an app and out again. The session's token is in the answer alone: the library keeps it, no cookie does. */
import { Type } from "typebox";
import { endPersonSession, endPersonSessions } from "../client/person-session.ts";
import type { SigninPlace } from "../client/person-signin.ts";
import { toIso } from "../ground/clock.ts";
import { fields, time } from "../ground/schema.ts";
import { clientPerson, viewClientPerson } from "./client-me.ts";
import { type ClientCall, clientRoute, personRoute } from "./client-route.ts";

const email = Type.String({ description: "an e-mail address" });

function placeOf({ key, environmentId }: ClientCall, source: string): SigninPlace {
  return { appId: key.appId, environmentId, by: `key:${key.id}`, source };
}

export const clientSigninRoutes = [
  clientRoute({
    method: "POST",
    path: "/auth/code",
    summary: "Mails a sign-in code to an address; the answer is the same whether or not anybody has it.",
    body: fields({ email }),
    answer: Type.Object({ expiresAt: time }),
    status: 202,
    async handle({ deps, client, source, body }) {
      const { expiresAt } = await deps.personSignin.requestCode(placeOf(client, source), body.email);
      return { expiresAt: toIso(expiresAt) };
    },
  }),
  clientRoute({
    method: "POST",
    path: "/auth/session",
    summary: "Signs a person in with the code they were mailed; someone new is created first.",
    body: fields({ email, code: Type.String({ maxLength: 20, description: "the six digits of the code" }) }),
    answer: Type.Object({ token: Type.String(), expiresAt: time, person: clientPerson }),
    status: 201,
    async handle({ deps, client, source, body }) {
      const { person, token, expiresAt } = await deps.personSignin.signIn(placeOf(client, source), body);
      return { token, expiresAt: toIso(expiresAt), person: viewClientPerson(person) };
    },
  }),
  personRoute({
    method: "DELETE",
    path: "/auth/session",
    summary: "Signs out.",
    answer: null,
    async handle({ deps, person }) {
      await deps.store.write("app", (tx) => endPersonSession(tx, person.session.id));
      return undefined;
    },
  }),
  personRoute({
    method: "DELETE",
    path: "/auth/sessions",
    summary: "Signs out everywhere.",
    answer: null,
    async handle({ deps, person }) {
      await deps.store.write("app", (tx) => endPersonSessions(tx, person.personId));
      return undefined;
    },
  }),
];
