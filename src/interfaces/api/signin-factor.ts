/** The second step of a sign-in: a passkey, a code of an authenticator app, or a recovery code. A passkey is also a sign-in by itself. */
import { Type } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import { fields } from "../../base/schema.ts";
import { findOwnerById } from "../../platform/account/owner.ts";
import {
  findPasskey,
  findPasskeySite,
  listPasskeys,
  loadPasskeys,
  makeChallenge,
  type PasskeyResult,
  type PasskeySite,
  readCredential,
  signinOptions,
  usePasskey,
  verifyPasskey,
} from "../../platform/account/passkey.ts";
import {
  countRefusedCode,
  requirePendingSignin,
  usePendingSignin,
} from "../../platform/account/pending-signin.ts";
import { useRecoveryCode } from "../../platform/account/recovery-code.ts";
import type { FactorMethod } from "../../platform/account/second-factor.ts";
import { loadTotp, useTotp } from "../../platform/account/totp.ts";
import { SERVER_SCOPE, writeAudit } from "../../platform/audit/audit.ts";
import { requirePasswordSignin } from "../../platform/oidc/provider.ts";
import type { Writer } from "../../store/port.ts";
import { requireSameOrigin } from "../http/cookie.ts";
import type { HttpDeps } from "../http/deps.ts";
import { openRoute } from "../http/route.ts";
import { answerSession, findKnownPlace, signinAnswer, startSession } from "./signin-session.ts";

const MAX_CODE_CHARS = 40;
/** A signature of an RSA key with an id of 255 bytes has about 1,550. */
const MAX_SIGNED_CHARS = 1_600;

export const totpField = Type.String({
  maxLength: MAX_CODE_CHARS,
  description: "the six digits that the authenticator app shows",
});
export const passkeyField = Type.String({
  maxLength: MAX_SIGNED_CHARS,
  description: "the credential that the browser returned, as JSON text",
});
export const recoveryCodeField = Type.String({
  maxLength: MAX_CODE_CHARS,
  description: "one of the ten recovery codes",
});
export const passkeyOptions = Type.Object({
  options: Type.String({ description: "the options for navigator.credentials, as JSON text" }),
});
const pendingToken = Type.String({
  maxLength: 100,
  description: "the token of a sign-in that waits for a second factor",
});

/** Checks a proof of the person in the transaction and uses it up. */
type UseProof = (tx: Writer) => Promise<PasskeyResult>;

/** A proof that a person sent with one method. */
interface GivenFactor {
  deps: HttpDeps;
  ownerId: string;
  text: string;
  /** The purpose of the passkey's challenge. */
  purpose: string;
  nowMs: number;
}

/** Does the expensive part of each check outside of the transaction, and loads its library. */
const METHODS: Readonly<
  Record<FactorMethod, { words: string; prepare(given: GivenFactor): Promise<UseProof> }>
> = {
  passkey: { words: "passkey", prepare: preparePasskey },
  totp: {
    words: "authenticator app",
    async prepare({ deps, ownerId, text, nowMs }) {
      const library = await loadTotp();
      const code = text.replace(/\s/g, "");
      return (tx) => useTotp(tx, library, { ownerId, code, sealer: deps.sealer, nowMs });
    },
  },
  recoveryCode: {
    words: "recovery code",
    prepare:
      async ({ deps, ownerId, text, nowMs }) =>
      (tx) =>
        useRecoveryCode(tx, { ownerId, code: text, sealer: deps.sealer, nowMs }),
  },
};

/** Checks a factor of the person outside of a transaction. The returned function accepts it once. */
export function prepareFactor(method: FactorMethod, given: GivenFactor): Promise<UseProof> {
  return METHODS[method].prepare(given);
}

async function preparePasskey({ deps, ownerId, text, purpose, nowMs }: GivenFactor): Promise<UseProof> {
  const site = requirePasskeySite(deps);
  const credential = readCredential("passkey", text);
  const passkey = await deps.store.read((tx) => findPasskey(tx, credential.id));
  if (passkey?.ownerId !== ownerId) return async () => "wrong";
  const check = { site, sealer: deps.sealer, purpose, nowMs };
  const signed = await verifyPasskey(await loadPasskeys(), credential, passkey, check);
  return async (tx) => (signed === null ? "wrong" : await usePasskey(tx, signed, nowMs));
}

/** Returns the site of this server's passkeys. Throws `base_url_needed` with the reason if it can have none. */
export function requirePasskeySite(deps: HttpDeps): PasskeySite {
  const site = findPasskeySite(deps.baseUrl());
  if (typeof site !== "string") return site;
  throw new Refusal("base_url_needed", site);
}

/** Audits a second factor that was refused. */
async function auditRefused(
  tx: Writer,
  { email, nowMs, method, why }: { email: string; nowMs: number; method: FactorMethod; why: PasskeyResult },
): Promise<void> {
  await writeAudit(tx, {
    environmentId: SERVER_SCOPE,
    nowMs,
    by: `owner:${email}`,
    action: "owner.factor_refused",
    target: `owner:${email}`,
    after: { method, why },
  });
}

const SENTENCES: Readonly<Record<FactorMethod, Record<Exclude<PasskeyResult, "right">, string>>> = {
  totp: {
    wrong:
      "totp is not the code of your app now: type the six digits that it shows, and check the clock of its device.",
    used: "totp was used already, and a code works once: wait until the app shows the next code.",
    counter: "",
  },
  recoveryCode: {
    wrong:
      "recoveryCode is not one of your recovery codes: type another one, or ask an owner to reset your second factor.",
    used: "recoveryCode was used already, and a recovery code works once: type another one.",
    counter: "",
  },
  passkey: {
    wrong:
      "passkey is not valid here: it belongs to another account or site, or took longer than five minutes. Retry, or use another way to sign in.",
    used: "passkey was sent before, and each answer of a passkey works once: retry.",
    counter:
      "passkey counts fewer signatures than before, so a copy of it may exist: use another factor, then remove this passkey.",
  },
};

/** Returns the sentence about a refused factor. */
export function sayRefused(method: FactorMethod, why: Exclude<PasskeyResult, "right">): string {
  return SENTENCES[method][why];
}

/** Returns the purpose of a challenge that belongs to a sign-in which waits for a factor. */
const purposeOf = (token: string): string => `factor ${token}`;
const SIGNIN_PURPOSE = "signin";

export const signinFactorRoutes = [
  openRoute({
    method: "POST",
    path: "/api/session/factor",
    summary:
      "Completes a sign-in that waits for a second factor. The body has the token and one method: passkey, totp or recoveryCode.",
    body: fields({
      token: pendingToken,
      passkey: Type.Optional(passkeyField),
      totp: Type.Optional(totpField),
      recoveryCode: Type.Optional(recoveryCodeField),
    }),
    answer: signinAnswer,
    async handle({ deps, request, source, body, headers, nowMs }) {
      requireSameOrigin(deps.config, request.headers);
      const { store, signinCap } = deps;
      const call = { deps, request, source, nowMs };
      const { email, ownerId } = await store.read((tx) => requirePendingSignin(tx, body.token, nowMs));
      const [method, ...others] = (Object.keys(METHODS) as FactorMethod[]).filter(
        (name) => body[name] !== undefined,
      );
      if (method === undefined || others.length > 0)
        throw new Refusal(
          "invalid_input",
          "The body must have exactly one method: passkey, totp or recoveryCode.",
        );
      const place = await findKnownPlace(call, email);
      await signinCap.countAttempt(source, email, place);
      const given = { deps, ownerId, text: body[method] ?? "", purpose: purposeOf(body.token), nowMs };
      const useProof = await prepareFactor(method, given);
      const done = await store.write("dashboard", async (tx) => {
        // Another request may have used the sign-in meanwhile.
        const pending = await requirePendingSignin(tx, body.token, nowMs);
        // Passwords may have been switched off since the sign-in began.
        await requirePasswordSignin(tx);
        const result = await useProof(tx);
        if (result !== "right") {
          await countRefusedCode(tx, pending);
          await auditRefused(tx, { email, nowMs, method, why: result });
          return { refused: result };
        }
        await usePendingSignin(tx, pending);
        if (method === "recoveryCode")
          await writeAudit(tx, {
            environmentId: SERVER_SCOPE,
            nowMs,
            by: `owner:${email}`,
            action: "owner.recovery_code_used",
            target: `owner:${email}`,
          });
        const proof = { how: `${pending.how} and ${METHODS[method].words}`, twoFactor: true };
        return await startSession(tx, { id: ownerId, email }, proof, call);
      });
      if ("refused" in done) {
        deps.log.warn("A second factor was refused.", { source });
        throw new Refusal("unauthenticated", sayRefused(method, done.refused));
      }
      signinCap.releaseAttempt(source, email, place);
      return answerSession(deps, headers, done);
    },
  }),
  openRoute({
    method: "POST",
    path: "/api/session/passkey/options",
    summary:
      "Returns the options for a sign-in with a passkey. With the token of a sign-in that waits for a factor, only the passkeys of its account fit.",
    body: fields({ token: Type.Optional(pendingToken) }),
    answer: passkeyOptions,
    async handle({ deps, request, body, nowMs }) {
      requireSameOrigin(deps.config, request.headers);
      const site = requirePasskeySite(deps);
      const { token } = body;
      const passkeys =
        token === undefined
          ? null
          : await deps.store.read(async (tx) =>
              listPasskeys(tx, (await requirePendingSignin(tx, token, nowMs)).ownerId),
            );
      const purpose = token === undefined ? SIGNIN_PURPOSE : purposeOf(token);
      const challenge = makeChallenge(deps.sealer, purpose, nowMs);
      const options = await signinOptions(await loadPasskeys(), { site, passkeys, challenge });
      return { options: JSON.stringify(options) };
    },
  }),
  openRoute({
    method: "POST",
    path: "/api/session/passkey",
    summary: "Signs a member in with a passkey that names them. It counts as both factors.",
    body: fields({ passkey: passkeyField }),
    answer: signinAnswer,
    async handle({ deps, request, source, body, headers, nowMs }) {
      requireSameOrigin(deps.config, request.headers);
      requirePasskeySite(deps);
      const { store, signinCap } = deps;
      const call = { deps, request, source, nowMs };
      const { id } = readCredential("passkey", body.passkey);
      const owner = await store.read(async (tx) => {
        await requirePasswordSignin(tx);
        const found = await findPasskey(tx, id);
        return found === null ? null : await findOwnerById(tx, found.ownerId);
      });
      const account = owner?.email ?? "unknown passkey";
      const place = owner === null ? null : await findKnownPlace(call, account);
      await signinCap.countAttempt(source, account, place);
      if (owner === null)
        throw new Refusal(
          "unauthenticated",
          "This passkey belongs to no member of this server: sign in with your password, then add it under Settings › Sessions.",
        );
      const given = { deps, ownerId: owner.id, text: body.passkey, purpose: SIGNIN_PURPOSE, nowMs };
      const useProof = await prepareFactor("passkey", given);
      const done = await store.write("dashboard", async (tx) => {
        await requirePasswordSignin(tx);
        const result = await useProof(tx);
        if (result === "right")
          return await startSession(tx, owner, { how: "passkey", twoFactor: true }, call);
        await auditRefused(tx, { email: account, nowMs, method: "passkey", why: result });
        return { refused: result };
      });
      if ("refused" in done) {
        deps.log.warn("A second factor was refused.", { source });
        throw new Refusal("unauthenticated", sayRefused("passkey", done.refused));
      }
      signinCap.releaseAttempt(source, account, place);
      return answerSession(deps, headers, done);
    },
  }),
];
