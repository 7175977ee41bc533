/** The methods by which a signed-in person can prove again who they are, for an action that needs a recent authentication. */
import type { Reader } from "../../store/port.ts";
import { hasTotp } from "./totp.ts";

export const AUTHENTICATION_METHODS = ["password", "totp"] as const;
export type AuthenticationMethod = (typeof AUTHENTICATION_METHODS)[number];

/** Lists the methods that the account has. One of them is enough. */
export async function listAuthenticationMethods(
  tx: Reader,
  ownerId: string,
): Promise<AuthenticationMethod[]> {
  const sql = "SELECT password_hash AS passwordHash FROM owner WHERE id = ?1";
  const found = await tx.get<{ passwordHash: string | null }>(sql, ownerId);
  const methods: AuthenticationMethod[] = found?.passwordHash ? ["password"] : [];
  if (await hasTotp(tx, ownerId)) methods.push("totp");
  return methods;
}
