/** Pages of what is known by name and listed newest first: the sort key is the moment it was created, then its name. */
import { Refusal } from "./refusal.ts";

/** The key of a row, such as `1767225600000:lamp`. */
export function makeNameKey(row: { createdAt: number; name: string }): string {
  return `${row.createdAt}:${row.name}`;
}

/** The key's two parts; nulls for the first page. Refuses with `invalid_input` a cursor of another list. */
export function parseNameKey(key: string | null): { createdAt: number | null; name: string | null } {
  if (key === null) return { createdAt: null, name: null };
  const found = /^(-?\d{1,15}):(.+)$/.exec(key);
  if (found) return { createdAt: Number(found[1]), name: found[2] ?? "" };
  throw new Refusal(
    "invalid_input",
    "cursor belongs to another list: use the next value of this list's page.",
  );
}
