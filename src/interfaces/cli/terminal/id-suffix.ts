/**
 * Resolves a shortened id: every command that takes an id also takes an ending that only one item has. For an ending of several ids it
 * lists them and does not guess.
 */
import { readNumberedId } from "../../../base/id.ts";
import { makeCursor } from "../../../base/page.ts";
import { CommandFailure } from "../command.ts";
import type { ReadPage } from "./listing.ts";

/** The pattern of an id's ending, with or without the … that a list shows before it. */
const ENDING = /^…?([0-9a-f]{4,31})$/i;
const PAGE = 200;
/** The most items to search in a list whose ids contain no number. */
const MAX_LOOKED_AT = 10_000;
/** The most events that a short ending may match. */
const MAX_CANDIDATES = 40;
/** The most events to search whose ids contain no number. */
const FORMER = 1_000;
const MAX_SHOWN = 5;

interface Named {
  id: string;
}

/** Returns the whole id of the listed item with this ending, or the text itself if no item has it. Fails if several items have it. */
export async function expandId(
  text: string,
  what: string,
  read: ReadPage<Named>,
  most = MAX_LOOKED_AT,
): Promise<string> {
  const ending = ENDING.exec(text)?.[1]?.toLowerCase();
  if (ending === undefined) return text;
  const found = await findEndings(ending, read, most);
  return found.length === 0 ? text : requireOne(found, text, what);
}

/** Resolves as `expandId` does, for events. Their ids end in a number, so it computes the candidates and needs no search. */
export async function expandEventId(text: string, read: ReadPage<Named>): Promise<string> {
  const ending = ENDING.exec(text)?.[1]?.toLowerCase();
  if (ending === undefined) return text;
  const [newest] = (await read(1, null)).items;
  const last = newest === undefined ? null : readNumberedId("evt", newest.id);
  if (last === null) return await expandId(text, "events", read, FORMER);
  const found: string[] = [];
  const stride = 16 ** ending.length;
  const first = Number.parseInt(ending, 16);
  if ((last.seq - first) / stride > MAX_CANDIDATES)
    throw new CommandFailure(
      "invalid_input",
      `Many event ids can end in ${text}: write eight characters, as relay events list shows them.`,
    );
  for (let seq = first; seq <= last.seq; seq += stride) {
    const [one] = (await read(1, makeCursor(String(seq + 1)))).items;
    if (one !== undefined && readNumberedId("evt", one.id)?.seq === seq) found.push(one.id);
  }
  return found.length === 0
    ? await expandId(text, "events", read, FORMER)
    : requireOne(found, text, "events");
}

async function findEndings(ending: string, read: ReadPage<Named>, most: number): Promise<string[]> {
  const found: string[] = [];
  let cursor: string | null = null;
  for (let looked = 0; looked < most; ) {
    const page: { items: Named[]; next: string | null } = await read(PAGE, cursor);
    found.push(...page.items.flatMap(({ id }) => (id.endsWith(ending) ? [id] : [])));
    looked += page.items.length;
    cursor = page.next;
    if (cursor === null) break;
  }
  return found;
}

function requireOne(found: readonly string[], text: string, what: string): string {
  const [one] = found;
  if (one !== undefined && found.length === 1) return one;
  const shown = found.slice(0, MAX_SHOWN).join(", ");
  const more = found.length > MAX_SHOWN ? ` and ${found.length - MAX_SHOWN} more` : "";
  throw new CommandFailure(
    "invalid_input",
    `${found.length} ids of ${what} end in ${text} (${shown}${more}): write more of the id.`,
  );
}
