/**
 * The secret key that a command on the data directory uses to call its own service. The key's letters are derived from the master key, so each
 * run gets the same key and nothing is stored. If the key was revoked, the next one is derived.
 */
import { hashToken } from "../../base/id.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { type ApiKey, listSecretKeySpellings, mintApiKey, TOKEN_CHARS } from "./api-key.ts";
import type { EnvironmentName } from "./environment.ts";

const MOST_REVOKED = 1_000;

/** Returns the token of the environment's command key, and creates the key if needed. `made` is the new key, or null if it existed. */
export async function requireCommandKey(
  tx: Writer,
  {
    environment,
    name,
    nowMs,
    digest,
  }: {
    environment: { id: number; name: EnvironmentName };
    name: string;
    nowMs: number;
    /** A hash keyed by the master key. */
    digest(text: string): Uint8Array;
  },
): Promise<{ token: string; made: ApiKey | null }> {
  for (let number = 0; number < MOST_REVOKED; number++) {
    const hash = Buffer.from(digest(`command key\n${environment.id}\n${name}\n${number}`)).toString("hex");
    const letters = hash.slice(0, TOKEN_CHARS);
    const found = await findIssuedKey(tx, listSecretKeySpellings(letters, environment.name));
    if (found !== null && found.revokedAt !== null) continue;
    if (found !== null) return { token: found.token, made: null };
    const { key, token } = await mintApiKey(tx, { environment, kind: "secret", name, nowMs, letters });
    return { token, made: key };
  }
  throw new Error(`${MOST_REVOKED} keys named ${name} were revoked.`);
}

async function findIssuedKey(
  tx: Reader,
  tokens: readonly string[],
): Promise<{ token: string; revokedAt: number | null } | null> {
  const sql = "SELECT revoked_at AS revokedAt FROM api_key WHERE key_hash = ?1";
  for (const token of tokens) {
    const row = await tx.get<{ revokedAt: number | null }>(sql, hashToken(token));
    if (row !== null) return { token, ...row };
  }
  return null;
}
