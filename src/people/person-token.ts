/**
 * Store account tokens: what the app filed with an app store for a person, so that a purchase there finds its way back.
 * A token names one person; it never moves to another by itself.
 */
import { toIso } from "../ground/clock.ts";
import { MAX_ACCOUNT_TOKEN_CHARS } from "../ground/limit.ts";
import { Refusal } from "../ground/refusal.ts";
import { breaksOneLine } from "../ground/text.ts";
import type { Reader, Writer } from "../store/port.ts";
import { PERSON_COLUMNS, type PersonRow, requirePerson } from "./person.ts";

interface TokenView {
  token: string;
  createdAt: string;
}

export function findPersonByToken(
  tx: Reader,
  environmentId: number,
  token: string,
): Promise<PersonRow | null> {
  return tx.get<PersonRow>(
    `SELECT ${PERSON_COLUMNS} FROM person
     WHERE id = (SELECT person_id FROM person_token WHERE environment_id = ?1 AND token = ?2)
       AND environment_id = ?1 AND status <> 'erased'`,
    environmentId,
    token,
  );
}

/** Files a token; filing it again for the same person changes nothing. Refuses `invalid_input`, `not_found`, `token_taken`. */
export async function fileToken(
  tx: Writer,
  filing: { environmentId: number; personId: string; token: string; nowMs: number },
): Promise<TokenView> {
  const { environmentId, personId, token, nowMs } = filing;
  if (token === "" || token.length > MAX_ACCOUNT_TOKEN_CHARS || breaksOneLine(token) !== null) {
    throw new Refusal(
      "invalid_input",
      `\`token\` is not valid: use 1 to ${MAX_ACCOUNT_TOKEN_CHARS} characters on one line, as the store gives it back.`,
    );
  }
  await requirePerson(tx, environmentId, personId);
  const filed = await tx.get<{ personId: string; createdAt: number }>(
    "SELECT person_id AS personId, created_at AS createdAt FROM person_token WHERE environment_id = ?1 AND token = ?2",
    environmentId,
    token,
  );
  if (filed !== null && filed.personId !== personId) {
    throw new Refusal(
      "token_taken",
      "`token` is filed for another person: file each token for one person only.",
    );
  }
  if (filed !== null) return { token, createdAt: toIso(filed.createdAt) };
  await tx.run(
    "INSERT INTO person_token (environment_id, token, person_id, created_at) VALUES (?1, ?2, ?3, ?4)",
    environmentId,
    token,
    personId,
    nowMs,
  );
  return { token, createdAt: toIso(nowMs) };
}

/** Takes a person's token back. Refuses with `not_found`. */
export async function removeToken(
  tx: Writer,
  filing: { environmentId: number; personId: string; token: string },
): Promise<void> {
  const removed = await tx.run(
    "DELETE FROM person_token WHERE environment_id = ?1 AND token = ?2 AND person_id = ?3",
    filing.environmentId,
    filing.token,
    filing.personId,
  );
  if (removed === 0) throw new Refusal("not_found", "This token is not filed for this person.");
}

export async function listTokens(tx: Reader, environmentId: number, personId: string): Promise<TokenView[]> {
  const rows = await tx.all<{ token: string; createdAt: number }>(
    `SELECT token, created_at AS createdAt FROM person_token
     WHERE person_id = ?1 AND environment_id = ?2 ORDER BY created_at DESC, token`,
    personId,
    environmentId,
  );
  return rows.map((row) => ({ token: row.token, createdAt: toIso(row.createdAt) }));
}
