/**
 * Checks sessions of an app's people for the app's own server. A page sends its session's token to that server, which asks here whose it is. The
 * route never starts or ends a session.
 */
import { Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { fields, orNull, timeOrNull } from "../../base/schema.ts";
import { personView, requirePerson, viewPerson } from "../../shop/people/person.ts";
import {
  extendPersonSession,
  findPersonSession,
  isPersonSessionExtensionDue,
} from "../../shop/portal/person-session.ts";
import { environmentRoute } from "../http/route.ts";

const MAX_TOKEN_CHARS = 100;

export const personSessionRoutes = [
  environmentRoute({
    method: "POST",
    path: "/sessions/verify",
    needs: "read",
    summary:
      "Returns the person of a session token from an app's page. person is null if the token is not an active session of this environment.",
    body: fields({
      token: Type.String({
        maxLength: MAX_TOKEN_CHARS,
        description: "the session's token, as the client library's auth.token() returns it",
      }),
    }),
    answer: Type.Object({ person: orNull(personView), expiresAt: timeOrNull }),
    async handle({ deps, environmentId, body, nowMs }) {
      const found = await deps.store.read(async (tx) => {
        const session = await findPersonSession(tx, environmentId, body.token, nowMs);
        if (session === null) return null;
        return { session, person: viewPerson(await requirePerson(tx, environmentId, session.personId)) };
      });
      if (found === null) return { person: null, expiresAt: null };
      const { session, person } = found;
      // A session expires some time after its last use, and this request is a use.
      const expiresAt = isPersonSessionExtensionDue(session, nowMs)
        ? await deps.store.write("app", (tx) => extendPersonSession(tx, session, nowMs), environmentId)
        : session.expiresAt;
      return { person, expiresAt: toIso(expiresAt) };
    },
  }),
];
