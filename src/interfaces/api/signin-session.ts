/**
 * The end of every sign-in of the dashboard: a session with its cookie, and the place that is known to the account from then on. Each way to sign in
 * checks its own proof and calls these functions.
 */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { oneOf, orNull, time } from "../../base/schema.ts";
import {
  digestOwnerNetwork,
  isKnownOwnerNetwork,
  recordOwnerNetwork,
} from "../../platform/account/owner-network.ts";
import { beginPendingSignin, type FirstProof } from "../../platform/account/pending-signin.ts";
import { FACTOR_METHODS, hasFactor, listFactorMethods } from "../../platform/account/second-factor.ts";
import { createSession } from "../../platform/account/session.ts";
import type { KnownPlace } from "../../platform/account/signin-cap.ts";
import { SERVER_SCOPE, writeAudit } from "../../platform/audit/audit.ts";
import { requirePasswordSignin } from "../../platform/oidc/provider.ts";
import type { Writer } from "../../store/port.ts";
import { seenFrom } from "../http/caller.ts";
import { readDeviceCookie, writeDeviceCookie, writeSessionCookie } from "../http/cookie.ts";
import type { HttpDeps } from "../http/deps.ts";

/** The answer of a sign-in: the person who is signed in, or what the sign-in still needs. */
export const signinAnswer = Type.Object({
  owner: orNull(Type.Object({ email: Type.String() })),
  factor: Type.Optional(
    Type.Object(
      {
        token: Type.String({ description: "goes with the factor to POST /api/session/factor" }),
        methods: Type.Array(oneOf(FACTOR_METHODS)),
        expiresAt: time,
      },
      { description: "present if the account has a second factor: the sign-in waits for it" },
    ),
  ),
});

interface SignedIn {
  id: string;
  email: string;
}

/** A request that signs in. */
export interface SigninCall {
  deps: HttpDeps;
  request: Request;
  source: string;
  nowMs: number;
}

/**
 * Continues a sign-in whose first proof was right: a session, or a pending sign-in if the account has a second factor. Local development has no
 * passwords, so it needs no factor. Throws `password_signin_off`, because passwords may have been switched off while the proof was checked.
 */
export async function continueSignin(tx: Writer, owner: SignedIn, how: FirstProof, call: SigninCall) {
  const { deps, nowMs } = call;
  await requirePasswordSignin(tx);
  if (deps.config.mode === "local" || !(await hasFactor(tx, owner.id)))
    return await startSession(tx, owner, { how, twoFactor: false }, call);
  const pending = await beginPendingSignin(tx, { ownerId: owner.id, how, nowMs });
  return { pending: { ...pending, methods: await listFactorMethods(tx, owner.id) } };
}

/**
 * Starts the owner's session in the transaction and records the network as known. Returns what the cookie needs. `twoFactor` says whether the proof
 * includes a second factor.
 */
export async function startSession(
  tx: Writer,
  owner: SignedIn,
  { how, twoFactor }: { how: string; twoFactor: boolean },
  { deps, request, source, nowMs }: SigninCall,
) {
  // Only a server has passwords to guess, so only a server records known networks.
  if (deps.config.mode === "server") {
    const networkDigest = digestNetwork(deps, owner.email, source);
    await recordOwnerNetwork(tx, { ownerId: owner.id, networkDigest, nowMs });
  }
  await writeAudit(tx, {
    environmentId: SERVER_SCOPE,
    nowMs,
    by: `owner:${owner.email}`,
    action: "owner.signed_in",
    target: `owner:${owner.email}`,
    after: { how },
  });
  const proof = { twoFactor, factorAt: twoFactor ? nowMs : null };
  return { owner, session: await createSession(tx, owner.id, nowMs, seenFrom(request, source), proof) };
}

/** Adds the cookies of the session to the response, and returns the answer. A pending sign-in has no cookie. */
export function answerSession(
  deps: HttpDeps,
  headers: Headers,
  started: Awaited<ReturnType<typeof continueSignin>>,
): Static<typeof signinAnswer> {
  if ("pending" in started) {
    const { expiresAt, ...pending } = started.pending;
    return { owner: null, factor: { ...pending, expiresAt: toIso(expiresAt) } };
  }
  headers.append("set-cookie", writeSessionCookie(deps, started.session.token, started.session.expiresAt));
  // Only a server has passwords to guess, so only a server sets the cookie of a known device.
  if (deps.config.mode === "server")
    headers.append("set-cookie", writeDeviceCookie(deps, started.owner.email));
  return { owner: { email: started.owner.email } };
}

/** Returns the device that the account signed in from before, or else the network; null if both are new to it. */
export async function findKnownPlace(
  { deps, request, source, nowMs }: SigninCall,
  account: string,
): Promise<KnownPlace | null> {
  const device = readDeviceCookie(deps, request, account);
  if (device !== null) return { kind: "device", name: device };
  const network = digestNetwork(deps, account, source);
  const isKnown = await deps.store.read((tx) => isKnownOwnerNetwork(tx, network, nowMs));
  return isKnown ? { kind: "address", name: source } : null;
}

function digestNetwork({ sealer }: HttpDeps, account: string, source: string): Uint8Array {
  return digestOwnerNetwork((text) => sealer.digest(text), account, source);
}
