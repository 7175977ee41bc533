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
} from "../../platform/account/authentication.ts";
import { findOwnerByEmail, hasSamePassword, verifyPassword } from "../../platform/account/owner.ts";
import { recordAuthentication } from "../../platform/account/session.ts";
import { loadTotp, useTotp } from "../../platform/account/totp.ts";
import { SERVER_SCOPE, writeAudit } from "../../platform/audit/audit.ts";
import type { Writer } from "../../store/port.ts";
import type { Owner } from "../http/admission.ts";
import type { HttpDeps } from "../http/deps.ts";
import { ownerRoute } from "../http/route.ts";
import { refuseCode, totpField } from "./signin-factor.ts";

/** A person who is signed in, and the address of the request. */
interface Asking {
  deps: HttpDeps;
  owner: Owner;
  source: string;
  nowMs: number;
}

/** Checks what the person sent, outside of a transaction. The returned function confirms it in the transaction, or throws. */
type Check = (call: Asking, given: string) => Promise<(tx: Writer) => Promise<void>>;

/** The methods that check a field of the body. The OpenID provider has its own routes (oidc.ts). */
const CHECKS: Readonly<Record<Exclude<AuthenticationMethod, "oidc">, Check>> = {
  password: checkPassword,
  totp: checkTotp,
};

const CHECKED = Object.keys(CHECKS) as (keyof typeof CHECKS)[];

async function checkPassword(call: Asking, given: string): Promise<(tx: Writer) => Promise<void>> {
  const known = await requirePassword(call, given, "password");
  return async (tx) => {
    if (!hasSamePassword(await findOwnerByEmail(tx, call.owner.email), known))
      throw new Refusal("forbidden", "The password changed meanwhile: type the new password.");
  };
}

async function checkTotp(
  { deps, owner, source, nowMs }: Asking,
  given: string,
): Promise<() => Promise<void>> {
  const { sealer, store, signinCap } = deps;
  const place = { kind: "device", name: owner.sessionId } as const;
  await signinCap.countAttempt(source, owner.email, place);
  const library = await loadTotp();
  const code = { ownerId: owner.id, code: given.replace(/\s/g, ""), sealer, nowMs };
  const result = await store.write("dashboard", async (tx) => {
    const used = await useTotp(tx, library, code);
    if (used !== "right") await audit(tx, { owner, nowMs }, "owner.confirmation_refused", "totp");
    return used;
  });
  if (result !== "right") throw new Refusal("forbidden", refuseCode("totp", result).message);
  signinCap.releaseAttempt(source, owner.email, place);
  return async () => undefined;
}

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
        await recordAuthentication(tx, owner.sessionId, nowMs);
        await audit(tx, call, "owner.confirmed", method);
      });
      return { method };
    },
  }),
];
