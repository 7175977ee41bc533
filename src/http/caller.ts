/**
 * Who calls: a key (`Authorization: Bearer sk_…`) or an owner's session (the dashboard's cookie). It decides that alone; where the
 * caller may go is admission's.
 */

import { apiKeyTouches, findApiKeyByToken, type PresentedKey, touchApiKey } from "../account/api-key.ts";
import type { Actor } from "../account/owner.ts";
import { findSession, type Session, sessionSlides, slideSession } from "../account/session.ts";
import { Refusal } from "../ground/refusal.ts";
import { readSessionCookie, writeSessionCookie } from "./cookie.ts";
import type { HttpDeps } from "./deps.ts";
import { requireSameOrigin } from "./host.ts";

type KeyCaller = { kind: "key"; key: PresentedKey };
export type Caller = KeyCaller | { kind: "owner"; session: Session };

const READS = new Set(["GET", "HEAD"]);

/** Callers by their request, for the one place that renders errors: who asks decides whether `docs` is told. */
const callers = new WeakMap<Request, Caller>();

/** The caller of this request once it was identified, or null. */
export function callerOf(request: Request): Caller | null {
  return callers.get(request) ?? null;
}

/**
 * Identifies the caller. Refuses with `unauthenticated`, or with `wrong_origin` a write by session from another page. A session in
 * use is prolonged; `headers` then takes the new cookie.
 */
export async function identifyCaller(deps: HttpDeps, request: Request, headers: Headers): Promise<Caller> {
  const caller = request.headers.has("authorization")
    ? await identifyKey(deps, request, readBearer(request))
    : await identifySession(deps, request, headers);
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
  const key = token === null ? null : await deps.store.read((tx) => findApiKeyByToken(tx, token));
  if (key === null) {
    throw new Refusal(
      "unauthenticated",
      "The request carries no live key: send Authorization: Bearer with a key that is not revoked.",
    );
  }
  const caller: KeyCaller = { kind: "key", key };
  callers.set(request, caller);
  const nowMs = deps.clock.now();
  if (apiKeyTouches(key, nowMs)) {
    inBackground(
      deps,
      deps.store.write("app", (tx) => touchApiKey(tx, key.id, nowMs)),
    );
  }
  return caller;
}

/** Who made a change, for rows and audit. */
export function actorOf(caller: Caller): Actor {
  return caller.kind === "key"
    ? { kind: "key", id: caller.key.id }
    : { kind: "owner", id: caller.session.ownerId, email: caller.session.ownerEmail };
}

async function identifySession(deps: HttpDeps, request: Request, headers: Headers): Promise<Caller> {
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
  if (sessionSlides(session, nowMs)) {
    const expiresAt = await deps.store.write("dashboard", (tx) => slideSession(tx, session, nowMs));
    headers.append("set-cookie", writeSessionCookie(deps, token, expiresAt));
  }
  return { kind: "owner", session };
}

/** A note about a caller never delays or fails the call itself. */
function inBackground(deps: HttpDeps, work: Promise<unknown>): void {
  work.catch((error: unknown) => deps.log.warn("A key's last use was not noted.", { error }));
}
