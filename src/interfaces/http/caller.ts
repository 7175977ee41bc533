/**
 * Identifies the caller of a request: a key (`Authorization: Bearer relay_live_…`), an owner's session (the dashboard's cookie) or the command line on
 * the data directory. Also says whether the person of a session or of a login's key proved who they are as the server and the action require.
 */

import { toIso } from "../../base/clock.ts";
import { Refusal } from "../../base/refusal.ts";
import {
  findApiKeyByToken,
  findEndedLoginKey,
  isApiKeyUseDue,
  type PresentedKey,
  recordApiKeyUse,
} from "../../platform/account/api-key.ts";
import { listAuthenticationMethods } from "../../platform/account/authentication.ts";
import { hasFactor, isFactorRequired } from "../../platform/account/second-factor.ts";
import {
  extendSession,
  findSession,
  hasRecentAuthentication,
  isSessionExtensionDue,
  isSessionUseDue,
  recordSessionUse,
  type Session,
  type SessionClient,
} from "../../platform/account/session.ts";
import { type Reader, SERVICE_ROWS } from "../../store/port.ts";
import { readSessionCookie, requireSameOrigin, writeSessionCookie } from "./cookie.ts";
import type { HttpDeps } from "./deps.ts";

type KeyCaller = { kind: "key"; key: PresentedKey };
export type Caller = KeyCaller | { kind: "owner"; session: Session } | { kind: "command_line" };

const READS = new Set(["GET", "HEAD"]);

/** Callers by request, for the code that renders errors. The caller decides whether an error has `docs`. */
const callers = new WeakMap<Request, Caller>();

/** Returns the identified caller of this request, or null. */
export function callerOf(request: Request): Caller | null {
  return callers.get(request) ?? null;
}

/** Makes the command line the caller of a request that a command serves in its own process. Network requests never reach this function. */
export function admitCommandLine(request: Request): void {
  callers.set(request, { kind: "command_line" });
}

/**
 * Identifies the caller. Refuses with `unauthenticated`, or with `wrong_origin` a write by session from another page. It extends a session in use
 * and adds the new cookie to `headers`. If the server requires a second factor, it refuses with `second_factor_required` a person without one,
 * except on the routes that add one (`enrolls`).
 */
export async function identifyCaller(
  deps: HttpDeps,
  { request, source }: { request: Request; source: string },
  headers: Headers,
  { enrolls = false }: { enrolls?: boolean } = {},
): Promise<Caller> {
  const known = callers.get(request);
  if (known?.kind === "command_line") return known;
  const caller = request.headers.has("authorization")
    ? await identifyKey(deps, request, readBearer(request))
    : await identifySession(deps, request, source, headers);
  callers.set(request, caller);
  if (!enrolls && (await deps.store.read((tx) => lacksFactor(tx, deps, caller)))) throw rejectFactor(caller);
  return caller;
}

/** Reports whether the server requires a second factor that the person of the session or of the key's login lacks. */
export async function lacksFactor(tx: Reader, { config }: HttpDeps, caller: Caller): Promise<boolean> {
  if (config.mode === "local" || caller.kind === "command_line") return false;
  const ownerId = caller.kind === "key" ? caller.key.ownerId : null;
  // A key of the environment belongs to no person.
  if (caller.kind === "key" ? ownerId === null : caller.session.twoFactor) return false;
  if (!(config.secondFactor ?? (await isFactorRequired(tx)))) return false;
  if (ownerId === null) return true;
  // A person who signs in at the OpenID provider has no factor here.
  return !(await hasFactor(tx, ownerId)) && !(await listAuthenticationMethods(tx, ownerId)).includes("oidc");
}

function rejectFactor(caller: Caller): Refusal {
  return new Refusal(
    "second_factor_required",
    caller.kind === "key"
      ? "This server requires a second factor, and the person whose login made this key has none: sign in to the dashboard and add one under Settings › Sessions."
      : "This server requires a second factor, and you have none: open the dashboard and add an authenticator app or a passkey.",
  );
}

/** Returns the token of `Authorization: Bearer …`, or null. */
export function readBearer(request: Request): string | null {
  return /^Bearer +(\S+) *$/i.exec(request.headers.get("authorization") ?? "")?.[1] ?? null;
}

/** Identifies the key of a token from any header. Refuses with `unauthenticated`. */
export async function identifyKey(
  deps: HttpDeps,
  request: Request,
  token: string | null,
): Promise<KeyCaller> {
  const nowMs = deps.clock.now();
  const key = token === null ? null : await deps.store.read((tx) => findApiKeyByToken(tx, token, nowMs));
  if (key === null) throw await rejectKey(deps, token);
  const caller: KeyCaller = { kind: "key", key };
  callers.set(request, caller);
  if (isApiKeyUseDue(key, nowMs)) {
    inBackground(
      deps,
      deps.store.write("app", (tx) => recordApiKeyUse(tx, key.id, nowMs), key.environmentId),
    );
  }
  return caller;
}

/** Returns the refusal of a token. For the expired key of a login it says how to create the next one. */
async function rejectKey(deps: HttpDeps, token: string | null): Promise<Refusal> {
  const ended = token === null ? null : await deps.store.read((tx) => findEndedLoginKey(tx, token));
  if (ended === null)
    return new Refusal(
      "unauthenticated",
      "The request has no valid key: send Authorization: Bearer with a key that is not revoked.",
    );
  const how =
    ended.revokedAt === null
      ? `expired at ${toIso(ended.expiresAt)}`
      : `was revoked at ${toIso(ended.revokedAt)}`;
  return new Refusal("unauthenticated", `The key of this login ${how}: run relay login to get a new one.`);
}

/** Returns the origin of a request, for its session. */
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
      "The request has no key and no session: send Authorization: Bearer with a secret key, or sign in.",
    );
  }
  if (!READS.has(request.method)) requireSameOrigin(deps.config, request.headers);
  if (isSessionExtensionDue(session, nowMs)) {
    const expiresAt = await deps.store.write(
      "dashboard",
      (tx) => extendSession(tx, session, nowMs),
      SERVICE_ROWS,
    );
    headers.append("set-cookie", writeSessionCookie(deps, token, expiresAt));
  }
  if (isSessionUseDue(session, nowMs)) {
    const from = seenFrom(request, source);
    inBackground(
      deps,
      deps.store.write("dashboard", (tx) => recordSessionUse(tx, session.id, from, nowMs), SERVICE_ROWS),
    );
  }
  return { kind: "owner", session };
}

/** Runs a write about a caller in the background, so that it never delays or fails the request. */
function inBackground(deps: HttpDeps, work: Promise<unknown>): void {
  work.catch((error: unknown) => deps.log.warn("The last use of a caller was not stored.", { error }));
}

export async function findCallerAgain(
  tx: Reader,
  { isKey, token, nowMs }: { isKey: boolean; token: string; nowMs: number },
): Promise<Caller | null> {
  if (isKey) {
    const key = await findApiKeyByToken(tx, token, nowMs);
    return key === null ? null : { kind: "key", key };
  }
  const session = await findSession(tx, token, nowMs);
  return session === null ? null : { kind: "owner", session };
}

/**
 * Refuses with `reauthentication_required` a session whose person last proved who they are 15 minutes ago or more. Keys and the command line
 * prove it with each request, and local development has no passwords.
 */
export async function requireRecentAuthentication(deps: HttpDeps, request: Request): Promise<void> {
  const caller = callerOf(request);
  if (caller?.kind !== "owner" || deps.config.mode === "local") return;
  const { session } = caller;
  if (hasRecentAuthentication(session, deps.clock.now())) return;
  const methods = await deps.store.read((tx) => listAuthenticationMethods(tx, session.ownerId));
  throw new Refusal(
    "reauthentication_required",
    "This action needs a recent authentication, and yours is 15 minutes old or older: confirm with POST /api/session/confirm or sign in again, then send the request again.",
    { details: { methods } },
  );
}
