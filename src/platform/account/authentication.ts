/** The methods by which a signed-in person can prove again who they are, for an action that needs a recent authentication. */
import type { Reader } from "../../store/port.ts";
import { hasPasskey } from "./passkey.ts";
import { countRecoveryCodes } from "./recovery-code.ts";
import { hasTotp } from "./totp.ts";

export const AUTHENTICATION_METHODS = ["password", "totp", "passkey", "recoveryCode", "oidc"] as const;
export type AuthenticationMethod = (typeof AUTHENTICATION_METHODS)[number];

/** Lists the methods that the account has. One of them is enough. */
export async function listAuthenticationMethods(
  tx: Reader,
  ownerId: string,
): Promise<AuthenticationMethod[]> {
  // The OpenID provider can be the only way to sign in.
  const password = `SELECT 1 AS found FROM owner WHERE id = ?1 AND password_hash IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM oidc_provider WHERE passwords = 0)`;
  const identity = `SELECT 1 AS found FROM oidc_identity JOIN oidc_provider ON oidc_provider.issuer = oidc_identity.issuer
    WHERE owner_id = ?1`;
  const methods: AuthenticationMethod[] = [];
  if ((await tx.get(password, ownerId)) !== null) methods.push("password");
  if (await hasTotp(tx, ownerId)) methods.push("totp");
  if (await hasPasskey(tx, ownerId)) methods.push("passkey");
  if ((await countRecoveryCodes(tx, ownerId)) > 0) methods.push("recoveryCode");
  if ((await tx.get(identity, ownerId)) !== null) methods.push("oidc");
  return methods;
}

/** Reports whether the method proves a second factor. The OpenID provider is responsible for its own. */
export function provesFactor(method: AuthenticationMethod): boolean {
  return method !== "password";
}
