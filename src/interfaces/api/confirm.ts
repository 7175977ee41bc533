/**
 * A confirmation: a signed-in person proves again who they are, so that the session can do what is sensitive for 15 minutes. Each method of the
 * account checks one field of the body.
 */
import { Type } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import { fields, oneOf } from "../../base/schema.ts";
import {
  AUTHENTICATION_METHODS,
  type AuthenticationMethod,
  listAuthenticationMethods,
  provesFactor,
} from "../../platform/account/authentication.ts";
import { findOwnerByEmail, hasSamePassword, verifyPassword } from "../../platform/account/owner.ts";
import { listPasskeys, loadPasskeys, makeChallenge, signinOptions } from "../../platform/account/passkey.ts";
import type { FactorMethod } from "../../platform/account/second-factor.ts";
import { recordAuthentication } from "../../platform/account/session.ts";
import { SERVER_SCOPE, writeAudit } from "../../platform/audit/audit.ts";
import type { Writer } from "../../store/port.ts";
import type { Owner } from "../http/admission.ts";
import type { HttpDeps } from "../http/deps.ts";
import { ownerRoute } from "../http/route.ts";
import {
  passkeyField,
  passkeyOptions,
  prepareFactor,
  recoveryCodeField,
  requirePasskeySite,
  sayRefused,
  totpField,
} from "./signin-factor.ts";

/** A person who is signed in, and the address of the request. */
interface Asking {
  deps: HttpDeps;
  owner: Owner;
  source: string;
  nowMs: number;
}

/** Checks what the person sent, outside of a transaction. The returned function confirms it in the transaction, or throws. */
type Check = (call: Asking, given: string) => Promise<(tx: Writer) => Promise<void>>;

/** The methods that check a field of the body. The OpenID provider has its own routes (signin-oidc.ts). */
const CHECKS: Readonly<Record<Exclude<AuthenticationMethod, "oidc">, Check>> = {
  password: checkPassword,
  totp: checkFactor("totp"),
  passkey: checkFactor("passkey"),
  recoveryCode: checkFactor("recoveryCode"),
};

const CHECKED = Object.keys(CHECKS) as (keyof typeof CHECKS)[];

async function checkPassword(call: Asking, given: string): Promise<(tx: Writer) => Promise<void>> {
  const known = await requirePassword(call, given, "password");
  return async (tx) => {
    if (!hasSamePassword(await findOwnerByEmail(tx, call.owner.email), known))
      throw new Refusal("forbidden", "The password changed meanwhile: type the new password.");
  };
}

/** Checks a second factor of the person, and uses it up before the confirmation. */
function checkFactor(method: FactorMethod): Check {
  return async ({ deps, owner, source, nowMs }, given) => {
    const { store, signinCap } = deps;
    const place = { kind: "device", name: owner.sessionId } as const;
    await signinCap.countAttempt(source, owner.email, place);
    const useProof = await prepareFactor(method, {
      deps,
      ownerId: owner.id,
      text: given,
      purpose: purposeOf(owner),
      nowMs,
    });
    const result = await store.write("dashboard", async (tx) => {
      const used = await useProof(tx);
      if (used !== "right") await audit(tx, { owner, nowMs }, "owner.confirmation_refused", method);
      return used;
    });
    if (result !== "right") throw new Refusal("forbidden", sayRefused(method, result));
    signinCap.releaseAttempt(source, owner.email, place);
    return async () => undefined;
  };
}

/** Returns the purpose of the challenge of a passkey that confirms this session. */
const purposeOf = ({ sessionId }: Owner): string => `confirm ${sessionId}`;

/**
 * Returns the account if the password is its own. The attempt counts in the limits of sign-in. The session counts as the device, so that guesses
 * by strangers cannot keep the person out. `field` names the password in the refusal.
 */
export async function requirePassword(
  { deps, owner, source, nowMs }: Asking,
  given: string,
  field: string,
): Promise<NonNullable<Awaited<ReturnType<typeof findOwnerByEmail>>>> {
  const place = { kind: "device", name: owner.sessionId } as const;
  await deps.signinCap.countAttempt(source, owner.email, place);
  const known = await deps.store.read((tx) => findOwnerByEmail(tx, owner.email));
  if (known === null || !(await verifyPassword(given, known.passwordHash))) {
    await deps.store.write("dashboard", (tx) =>
      audit(tx, { owner, nowMs }, "owner.confirmation_refused", "password"),
    );
    throw new Refusal("forbidden", `${field} is not your current password: type it again.`);
  }
  deps.signinCap.releaseAttempt(source, owner.email, place);
  return known;
}

async function audit(
  tx: Writer,
  { owner, nowMs }: Pick<Asking, "owner" | "nowMs">,
  action: "owner.confirmed" | "owner.confirmation_refused",
  method: AuthenticationMethod,
): Promise<void> {
  const who = `owner:${owner.email}`;
  await writeAudit(tx, {
    environmentId: SERVER_SCOPE,
    nowMs,
    by: who,
    action,
    target: who,
    after: { method },
  });
}

export const confirmRoutes = [
  ownerRoute({
    method: "POST",
    path: "/api/session/confirm",
    needs: null,
    enrolls: true,
    summary:
      "Confirms who is signed in, with one of the methods of the account, for the next 15 minutes of the session.",
    body: fields({
      password: Type.Optional(Type.String({ description: "the password of the account" })),
      totp: Type.Optional(totpField),
      passkey: Type.Optional(passkeyField),
      recoveryCode: Type.Optional(recoveryCodeField),
    }),
    answer: Type.Object({ method: oneOf(AUTHENTICATION_METHODS) }),
    async handle(call) {
      const { deps, owner, body, nowMs } = call;
      const [method, ...others] = CHECKED.filter((name) => body[name] !== undefined);
      const own = await deps.store.read((tx) => listAuthenticationMethods(tx, owner.id));
      if (method === undefined || others.length > 0 || !own.includes(method))
        throw new Refusal(
          "invalid_input",
          `The body must have exactly one method of the account: ${own.filter((name) => name !== "oidc").join(" or ") || "it has none, so confirm at the OpenID provider"}.`,
        );
      const confirm = await CHECKS[method](call, body[method] ?? "");
      await deps.store.write("dashboard", async (tx) => {
        await confirm(tx);
        await recordAuthentication(tx, owner.sessionId, { nowMs, withFactor: provesFactor(method) });
        await audit(tx, call, "owner.confirmed", method);
      });
      return { method };
    },
  }),
  ownerRoute({
    method: "POST",
    path: "/api/session/confirm/options",
    needs: null,
    enrolls: true,
    summary: "Returns the options for a confirmation with a passkey of the signed-in member.",
    answer: passkeyOptions,
    async handle({ deps, owner, nowMs }) {
      const site = requirePasskeySite(deps);
      const passkeys = await deps.store.read((tx) => listPasskeys(tx, owner.id));
      const challenge = makeChallenge(deps.sealer, purposeOf(owner), nowMs);
      const options = await signinOptions(await loadPasskeys(), { site, passkeys, challenge });
      return { options: JSON.stringify(options) };
    },
  }),
];
