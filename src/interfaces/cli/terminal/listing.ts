/** Reads a list for a command: the newest items up to --limit and not before --since. On a terminal it also counts the others. */
import { type Page, type PageRequest, readCursor } from "../../../base/page.ts";
import { readPage } from "../../../store/index-scan.ts";
import type { Reader, Store } from "../../../store/port.ts";
import { type Input, type Option, UsageError } from "../command.ts";
import type { Io } from "../io.ts";
import { readMoment } from "./time-text.ts";

const SHOWN = 20;
const MAX_LISTED = 10_000;
/** The most items of one page. */
const PAGE = 200;
/** The most items to count in addition to those shown. */
const MAX_COUNTED = 1_000;

export const LIMIT: Option = {
  name: "limit",
  value: "<number>",
  otherwise: String(SHOWN),
  help: "the most items to show",
};
export const SINCE: Option = {
  name: "since",
  value: "<time>",
  help: "only from this time on: 24h, 90m or 7d ago, or a date",
};
export const UNTIL: Option = { name: "until", value: "<time>", help: "only before this time, as in --since" };

/** Reads the most items that the command shows. Throws UsageError. */
export function readLimit(input: Input, otherwise = SHOWN): number {
  return input.number(LIMIT.name, { from: 1, to: MAX_LISTED }) ?? otherwise;
}

/** Reads the time in an option, in milliseconds since the epoch. Throws UsageError. */
export function readTime(input: Input, name: string, { clock }: Io): number | undefined {
  const text = input.text(name);
  if (text === null) return undefined;
  const time = readMoment(text, clock.now());
  if (time !== null) return time;
  throw new UsageError(
    `--${name} is ${JSON.stringify(text)}: write a time span such as 24h, 90m or 7d, a date, or a time with its zone such as 2030-01-31T12:00:00Z.`,
  );
}

/** The number of items, including those shown. `atLeast` means that more were not counted. */
export interface Count {
  total: number;
  atLeast: boolean;
}

export interface Listing<Item> {
  items: Item[];
  /** Null if the list is complete, or no person sees the count. */
  of: Count | null;
  /** True if there are more items. */
  isCut: boolean;
  /** True if a person reads the output, so the command should count the rest. */
  wantsCount: boolean;
}

/** Returns the next value for --limit if the items shown are not enough. `total` is the number of items, if known. */
export function nextLimit(shown: number, total = MAX_LISTED): number {
  return Math.min(Math.max(shown * 10, 200), total);
}

/** Formats the note that the list is cut. A pipe gets it too, because its reader could think that the list is complete. */
export function formatMore(shown: number): string {
  const next = nextLimit(shown);
  return `There are more than ${shown === 1 ? "this one" : `these ${shown}`}${next > shown ? `: --limit ${next} shows more` : ", which is the highest --limit"}.`;
}

/** Reads a page of a list. `after` is the cursor of the page before. */
export type ReadPage<Item> = (limit: number, after: string | null) => Promise<Page<Item>>;

/** The time of an item. `ordered` is true if the list is in the order of that time. */
export interface TimeOf<Item> {
  of(item: Item): string;
  ordered: boolean;
}

/** Reads the first items of a list, as many as --limit says and not before --since. With `counted`, the caller counts them in another way. */
export async function gather<Item>(
  input: Input,
  io: Io,
  read: ReadPage<Item>,
  { limit, time, counted = false }: { limit: number; time?: TimeOf<Item> | undefined; counted?: boolean },
): Promise<Listing<Item>> {
  const sinceMs = time === undefined ? undefined : readTime(input, SINCE.name, io);
  const counts = io.screen.columns !== null && !input.on("json");
  const most = counts && !counted ? limit + MAX_COUNTED : limit;
  const found: Item[] = [];
  let cursor: string | null = null;
  do {
    const left: number = (found.length < limit ? limit : most) - found.length;
    const page: Page<Item> = await read(Math.min(PAGE, left), cursor);
    cursor = page.next;
    for (const item of page.items) {
      const isOld = sinceMs !== undefined && time !== undefined && Date.parse(time.of(item)) < sinceMs;
      if (!isOld) found.push(item);
      else if (time.ordered) cursor = null;
    }
  } while (cursor !== null && found.length < most);
  const isCut = found.length > limit || cursor !== null;
  return {
    items: found.slice(0, limit),
    of: counts && !counted && isCut ? { total: found.length, atLeast: cursor !== null } : null,
    isCut,
    wantsCount: counts && isCut,
  };
}

/** Reads a list of the data directory, page by page. */
export function pagesOf<Item>(
  store: Store,
  step: (tx: Reader, part: PageRequest) => Promise<Page<Item>>,
): ReadPage<Item> {
  return (limit, cursor) => readPage(store, { limit, after: keyOf(cursor) }, step);
}

/** Returns the key in a cursor, after which the page begins. */
function keyOf(cursor: string | null): string | null {
  return cursor === null ? null : readCursor(cursor);
}
