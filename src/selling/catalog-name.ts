/**
 * Names, titles and versions of products and plans. Both kinds share one name space, because an entitlement is a name and does not
 * say which kind it means. It decides what may be saved under which name; it never saves.
 */
import { MAX_TITLE_CHARS } from "../ground/limit.ts";
import { Refusal } from "../ground/refusal.ts";
import { CATALOG_NAME } from "../ground/shape.ts";
import { breaksOneLine, countChars } from "../ground/text.ts";
import type { Reader } from "../store/port.ts";

export type ItemKind = "product" | "plan";

/** Refuses a name that is not one (`invalid_input`), and one the other kind holds (`name_taken`). */
export async function requireFreeName(
  tx: Reader,
  environmentId: number,
  kind: ItemKind,
  name: string,
): Promise<void> {
  if (!CATALOG_NAME.test(name)) {
    throw new Refusal(
      "invalid_input",
      `The name of a ${kind} is lowercase letters, digits, hyphens and underscores, starting with a letter, at most 63 characters: choose such a name.`,
    );
  }
  const other: ItemKind = kind === "product" ? "plan" : "product";
  const sql = `SELECT 1 AS found FROM ${other} WHERE environment_id = ?1 AND name = ?2`;
  if ((await tx.get(sql, environmentId, name)) === null) return;
  throw new Refusal(
    "name_taken",
    `\`name\` is taken by a ${other}, and products and plans share one name space: choose another name for the ${kind}.`,
  );
}

/** The title to store: the one given, or the name. Refuses with `invalid_input` what is not one line of 1 to 200 characters. */
export function readTitle(title: string | undefined, name: string): string {
  if (title === undefined) return name;
  const trimmed = title.trim();
  const broken = breaksOneLine(trimmed);
  if (broken !== null) {
    throw new Refusal("invalid_input", `\`title\` ${broken}: write one line of plain text.`);
  }
  if (trimmed === "" || countChars(trimmed) > MAX_TITLE_CHARS) {
    throw new Refusal(
      "invalid_input",
      `\`title\` is empty or too long: write 1 to ${MAX_TITLE_CHARS} characters.`,
    );
  }
  return trimmed;
}

/** Refuses with `version_conflict` when the caller read another version than the stored one; a caller that read none overwrites. */
export function requireItemVersion(
  kind: ItemKind,
  name: string,
  stored: number | null,
  read: number | undefined,
): void {
  if (read === undefined || read === stored) return;
  const now = stored === null ? "does not exist any more" : `is at version ${stored}`;
  throw new Refusal(
    "version_conflict",
    `The ${kind} ${name} ${now} and you read version ${read}: read it again, apply your change and save.`,
    stored === null ? {} : { details: { version: stored } },
  );
}
