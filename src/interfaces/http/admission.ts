/**
 * Who calls, and where they may go. A caller is a key (`Authorization: Bearer relay_live_…`), an owner's session (the dashboard's cookie) or the command
 * line on the data directory; the one gate of `/api/apps/{appId}/{environment}` resolves the environment that a path names and refuses every caller who may not be there. Routes
 * are handed what it answers and never look at a key, a session or another environment.
 */

import { toIso } from "../../base/clock.ts";
import { Refusal } from "../../base/refusal.ts";
import {
  type Actor,
  actorOrigin,
  COMMAND_LINE,
  findApiKeyByToken,
  findEndedLoginKey,
  formatActor,
  isApiKeyUseDue,
  type PresentedKey,
  recordApiKeyUse,
} from "../../platform/account/api-key.ts";
import {
  type Environment,
  findEnvironmentById,
  requireEnvironment,
} from "../../platform/account/environment.ts";
import { findOwnerByEmail } from "../../platform/account/owner.ts";
import {
  extendSession,
  findSession,
  isSessionExtensionDue,
  isSessionUseDue,
  recordSessionUse,
  type Session,
  type SessionClient,
} from "../../platform/account/session.ts";
import type { Origin, Reader } from "../../store/port.ts";
import { readSessionCookie, requireSameOrigin, writeSessionCookie } from "./cookie.ts";
import type { HttpDeps } from "./deps.ts";

type KeyCaller = { kind: "key"; key: PresentedKey };
type Caller = KeyCaller | { kind: "owner"; session: Session } | { kind: "command_line" };

const READS = new Set(["GET", "HEAD"]);

/** Callers by their request, for the one place that renders errors: who asks decides whether `docs` is told. */
const callers = new WeakMap<Request, Caller>();

/** The caller of this request once it was identified, or null. */
export function callerOf(request: Request): Caller | null {
  return callers.get(request) ?? null;
}

/** Makes the command line the caller of a request that a command serves in its own process. No request of the network passes here. */
export function admitCommandLine(request: Request): void {
  callers.set(request, { kind: "command_line" });
}

/**
 * Identifies the caller. Refuses with `unauthenticated`, or with `wrong_origin` a write by session from another page. A session in
 * use is prolonged; `headers` then takes the new cookie.
 */
export async function identifyCaller(
  deps: HttpDeps,
  { request, source }: { request: Request; source: string },
  headers: Headers,
): Promise<Caller> {
  const known = callers.get(request);
  if (known?.kind === "command_line") return known;
  const caller = request.headers.has("authorization")
    ? await identifyKey(deps, request, readBearer(request))
    : await identifySession(deps, request, source, headers);
  callers.set(request, caller);
  return caller;
}

/** The token of `Authorization: Bearer …`, or null. */
export function readBearer(request: Request): string | null {
  return /^Bearer +(\S+) *$/i.exec(request.headers.get("authorization") ?? "")?.[1] ?? null;
}

/** Identifies the key of a token, wherever the request carries it. Refuses with `unauthenticated`. */
export async function identifyKey(
  deps: HttpDeps,
  request: Request,
  token: string | null,
): Promise<KeyCaller> {
  const nowMs = deps.clock.now();
  const key = token === null ? null : await deps.store.read((tx) => findApiKeyByToken(tx, token, nowMs));
  if (key === null) throw await refuseKey(deps, token);
  const caller: KeyCaller = { kind: "key", key };
  callers.set(request, caller);
  if (isApiKeyUseDue(key, nowMs)) {
    inBackground(
      deps,
      deps.store.write("app", (tx) => recordApiKeyUse(tx, key.id, nowMs)),
    );
  }
  return caller;
}

/** Who holds the letters of a login's key that has ended is told how the next one is made. */
async function refuseKey(deps: HttpDeps, token: string | null): Promise<Refusal> {
  const ended = token === null ? null : await deps.store.read((tx) => findEndedLoginKey(tx, token));
  if (ended === null)
    return new Refusal(
      "unauthenticated",
      "The request carries no live key: send Authorization: Bearer with a key that is not revoked.",
    );
  const how =
    ended.revokedAt === null
      ? `has ended at ${toIso(ended.expiresAt)}`
      : `was revoked at ${toIso(ended.revokedAt)}`;
  return new Refusal("unauthenticated", `The key of this login ${how}: run relay login for another.`);
}

/** Who made a change, for rows and audit. */
function actorOf(caller: Caller): Actor {
  switch (caller.kind) {
    case "key":
      return { kind: "key", id: caller.key.id, owner: caller.key.owner };
    case "owner":
      return { kind: "owner", id: caller.session.ownerId, email: caller.session.ownerEmail };
    case "command_line":
      return COMMAND_LINE;
  }
}

/** Where a call comes from, as its session notes it. */
export function seenFrom({ headers }: Pick<Request, "headers">, source: string): SessionClient {
  return { source, agent: headers.get("user-agent") };
}

async function identifySession(
  deps: HttpDeps,
  request: Request,
  source: string,
  headers: Headers,
): Promise<Caller> {
  const token = readSessionCookie(deps, request);
  const nowMs = deps.clock.now();
  const session = token === null ? null : await deps.store.read((tx) => findSession(tx, token, nowMs));
  if (token === null || session === null) {
    throw new Refusal(
      "unauthenticated",
      "The request carries no key and no session: send Authorization: Bearer with a secret key, or sign in.",
    );
  }
  if (!READS.has(request.method)) requireSameOrigin(deps.config, request.headers);
  if (isSessionExtensionDue(session, nowMs)) {
    const expiresAt = await deps.store.write("dashboard", (tx) => extendSession(tx, session, nowMs));
    headers.append("set-cookie", writeSessionCookie(deps, token, expiresAt));
  }
  if (isSessionUseDue(session, nowMs)) {
    const from = seenFrom(request, source);
    inBackground(
      deps,
      deps.store.write("dashboard", (tx) => recordSessionUse(tx, session.id, from, nowMs)),
    );
  }
  return { kind: "owner", session };
}

/** A note about a caller never delays or fails the call itself. */
function inBackground(deps: HttpDeps, work: Promise<unknown>): void {
  work.catch((error: unknown) => deps.log.warn("A caller's last use was not noted.", { error }));
}

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
  return { environment, actor, by: formatActor(actor), origin: actorOrigin(actor) };
}

/** Of a caller who was let in, for an answer that goes on: who it is, and whether they would be let in again. Notes and prolongs nothing. */
export function watchAdmission(
  deps: HttpDeps,
  request: Request,
  environmentId: number,
): { caller: string; holds(): Promise<boolean> } {
  const caller = callers.get(request);
  if (caller === undefined || caller.kind === "command_line")
    throw new Error("This request has no key and no session.");
  const isKey = caller.kind === "key";
  const token = (isKey ? readBearer(request) : readSessionCookie(deps, request)) ?? "";
  return {
    caller: isKey ? `key:${caller.key.id}` : `session:${caller.session.id}`,
    holds: () =>
      deps.store.read(async (tx) => {
        const nowMs = deps.clock.now();
        const who = isKey ? await findApiKeyByToken(tx, token, nowMs) : await findSession(tx, token, nowMs);
        return who !== null && (await findEnvironmentById(tx, environmentId)) !== null;
      }),
  };
}

/** Refuses with `forbidden` a key where only an owner may act: `what` says what that is. */
export function requireOwnerActor(actor: Actor, what: string): void {
  if (actor.kind !== "key") return;
  throw new Refusal(
    "forbidden",
    `${what}, and no key may: sign in to the dashboard, or run relay keys on the server.`,
  );
}

/** Who said yes may have been removed since: then nobody did. */
export async function requireApprover(tx: Reader, decidedBy: string | null): Promise<void> {
  const email = decidedBy?.replace(/^owner:/, "") ?? "";
  if ((await findOwnerByEmail(tx, email)) !== null) return;
  throw new Refusal(
    "approval_void",
    `${email} approved this, and is no owner of this server any more: ask anew.`,
  );
}

export interface Owner {
  id: string;
  email: string;
  sessionId: string;
}

/** Lets an owner's session through, and no key. */
export function requireOwner(caller: Caller): Owner {
  if (caller.kind !== "owner") {
    throw new Refusal(
      "forbidden",
      "This is for signed-in owners and no key may do it: sign in to the dashboard.",
    );
  }
  const { session } = caller;
  return { id: session.ownerId, email: session.ownerEmail, sessionId: session.id };
}

/** Lets owners and secret keys through, of whatever environment. Refuses an app key with `forbidden`. */
export function requireSecretCaller(caller: Caller): Actor {
  if (caller.kind === "key") requireSecretKey(caller.key);
  return actorOf(caller);
}

function requireSecretKey({ kind }: { kind: string }): void {
  if (kind === "secret") return;
  throw new Refusal(
    "forbidden",
    "An app key works on the client routes alone: use a secret key, from a server.",
  );
}

function requireKeyOf(
  key: { kind: string; appId: string; environmentName: string },
  appId: string,
  name: string,
): void {
  requireSecretKey(key);
  if (key.appId !== appId || key.environmentName !== name) {
    throw new Refusal(
      "wrong_environment",
      `This key belongs to ${key.appId}/${key.environmentName}: use a key of the environment you name, or name the key's environment.`,
    );
  }
}
