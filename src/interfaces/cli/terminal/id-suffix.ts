/**
 * Ids as a person types them: an ending that only one thing has stands for its whole id, in every command that takes one. Where several have it
 * they are told, and nothing is guessed.
 */
import { readNumberedId } from "../../../base/id.ts";
import { makeCursor } from "../../../base/page.ts";
import { CommandFailure } from "../command.ts";
import type { ReadPage } from "./listing.ts";

/** What a person may type of an id: its ending, with or without the … that a list showed before it. */
const ENDING = /^…?([0-9a-f]{4,31})$/i;
const PAGE = 200;
/** Of lists whose ids are no numbers, so many of the newest are looked through. */
const MAX_LOOKED_AT = 10_000;
/** Events that an ending of few signs could mean. */
const MAX_CANDIDATES = 40;
/** Of events that came before their ids were numbers. */
const FORMER = 1_000;
const MAX_TOLD = 5;

interface Named {
  id: string;
}

/** The whole id of what is meant among those of a list; the text itself where it is none's ending. Fails where several have it. */
export async function wholeId(
  text: string,
  what: string,
  read: ReadPage<Named>,
  most = MAX_LOOKED_AT,
): Promise<string> {
  const ending = ENDING.exec(text)?.[1]?.toLowerCase();
  if (ending === undefined) return text;
  const found = await findEndings(ending, read, most);
  return found.length === 0 ? text : only(found, text, what);
}

/** As `wholeId`, of events: their ids end in a number, so that none has to be looked for. */
export async function wholeEventId(text: string, read: ReadPage<Named>): Promise<string> {
  const ending = ENDING.exec(text)?.[1]?.toLowerCase();
  if (ending === undefined) return text;
  const [newest] = (await read(1, null)).items;
  const last = newest === undefined ? null : readNumberedId("evt", newest.id);
  if (last === null) return await wholeId(text, "events", read, FORMER);
  const found: string[] = [];
  const apart = 16 ** ending.length;
  const first = Number.parseInt(ending, 16);
  if ((last.seq - first) / apart > MAX_CANDIDATES)
    throw new CommandFailure(
      "invalid_input",
      `${text} may end the ids of many events: write more of it, eight signs as relay events list shows them.`,
    );
  for (let seq = first; seq <= last.seq; seq += apart) {
    const [one] = (await read(1, makeCursor(String(seq + 1)))).items;
    if (one !== undefined && readNumberedId("evt", one.id)?.seq === seq) found.push(one.id);
  }
  return found.length === 0 ? await wholeId(text, "events", read, FORMER) : only(found, text, "events");
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

function only(found: readonly string[], text: string, what: string): string {
  const [one] = found;
  if (one !== undefined && found.length === 1) return one;
  const told = found.slice(0, MAX_TOLD).join(", ");
  const more = found.length > MAX_TOLD ? ` and ${found.length - MAX_TOLD} more` : "";
  throw new CommandFailure(
    "invalid_input",
    `${text} ends the ids of ${found.length} ${what} (${told}${more}): write more of it.`,
  );
}
