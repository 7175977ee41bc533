/**
 * The one gate of `/api/apps/{appId}/{environment}`: it resolves the environment that a path names and refuses every caller who may
 * not be there. Routes are handed what it answers and never look at a key, a session or another environment.
 */

import { type Environment, requireEnvironment } from "../account/environment.ts";
import { type Actor, actorOrigin, actorWords } from "../account/owner.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Origin } from "../store/port.ts";
import { actorOf, type Caller } from "./caller.ts";
import type { HttpDeps } from "./deps.ts";

export interface Admitted {
  environment: Environment;
  actor: Actor;
  /** The actor in the words of rows and audit. */
  by: string;
  /** What the store is told of who writes. */
  origin: Origin;
}

/**
 * Lets the caller into the environment. Refuses with `forbidden` (an app key), `wrong_environment` (a key of another one, whether
 * or not the one in the path exists) or `not_found`.
 */
export async function admit(deps: HttpDeps, caller: Caller, appId: string, name: string): Promise<Admitted> {
  if (caller.kind === "key") requireKeyOf(caller.key, appId, name);
  const environment = await deps.store.read((tx) => requireEnvironment(tx, appId, name));
  const actor = actorOf(caller);
  return { environment, actor, by: actorWords(actor), origin: actorOrigin(actor) };
}

/** Refuses with `forbidden` a key where only an owner may act: `what` says what that is. */
export function requireOwnerActor(actor: Actor, what: string): void {
  if (actor.kind !== "key") return;
  throw new Refusal(
    "forbidden",
    `${what}, and no key may: sign in to the dashboard, or run relay keys on the server.`,
  );
}

export interface Owner {
  id: string;
  email: string;
  sessionId: string;
}

/** Lets an owner's session through, and no key. */
export function requireOwner(caller: Caller): Owner {
  if (caller.kind === "key") {
    throw new Refusal(
      "forbidden",
      "This is for signed-in owners and no key may do it: sign in to the dashboard.",
    );
  }
  const { session } = caller;
  return { id: session.ownerId, email: session.ownerEmail, sessionId: session.id };
}

function requireKeyOf(
  key: { kind: string; appId: string; environmentName: string },
  appId: string,
  name: string,
): void {
  if (key.kind !== "secret") {
    throw new Refusal(
      "forbidden",
      "An app key works on the client routes alone: use a secret key, from a server.",
    );
  }
  if (key.appId !== appId || key.environmentName !== name) {
    throw new Refusal(
      "wrong_environment",
      `This key belongs to ${key.appId}/${key.environmentName}: use a key of the environment you name, or name the key's environment.`,
    );
  }
}
