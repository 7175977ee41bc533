/** A list as a command reads it: the newest, as many as are asked for, not before a time, and how many there are where a person reads along. */
import { type Page, type PageRequest, readCursor } from "../../../base/page.ts";
import { readPage } from "../../../store/index-scan.ts";
import type { Reader, Store } from "../../../store/port.ts";
import { type Input, type Option, UsageError } from "../command.ts";
import type { World } from "../io.ts";
import { readMoment } from "./time-text.ts";

const SHOWN = 20;
const MAX_LISTED = 10_000;
/** What one page holds at most. */
const PAGE = 200;
/** More than so many beside those shown are not counted. */
const MAX_COUNTED = 1_000;

export const LIMIT: Option = {
  name: "limit",
  value: "<number>",
  otherwise: String(SHOWN),
  help: "how many at most",
};
export const SINCE: Option = {
  name: "since",
  value: "<time>",
  help: "not before this time, or so long ago: 24h, 90m, 7d",
};
export const UNTIL: Option = { name: "until", value: "<time>", help: "before this time, or so long ago" };

/** How many of a list are meant. Throws UsageError. */
export function readLimit(input: Input, otherwise = SHOWN): number {
  return input.number(LIMIT.name, { from: 1, to: MAX_LISTED }) ?? otherwise;
}

/** The time that an option names, milliseconds since the epoch. Throws UsageError. */
export function readTime(input: Input, name: string, { clock }: World): number | undefined {
  const text = input.text(name);
  if (text === null) return undefined;
  const time = readMoment(text, clock.now());
  if (time !== null) return time;
  throw new UsageError(
    `--${name} is ${JSON.stringify(text)}: write how long ago, such as 24h, 90m or 7d, a date, or a time with its zone, such as 2030-01-31T12:00:00Z.`,
  );
}

/** How many there are, those shown among them; `atLeast`: more were not counted. */
export interface Count {
  total: number;
  atLeast: boolean;
}

export interface Listing<Item> {
  items: Item[];
  /** null: these are all, or nobody is to be told. */
  of: Count | null;
  /** Whether there are more than these. */
  isCut: boolean;
  /** Whether somebody reads along who wants to know how many more. */
  wantsCount: boolean;
}

/** What to ask for where as many as were shown are not enough; `total`: so many there are. */
export function nextLimit(shown: number, total = MAX_LISTED): number {
  return Math.min(Math.max(shown * 10, 200), total);
}

/** Said to a pipe too, whose reader would take what was cut for all. */
export function sayMore(shown: number): string {
  const next = nextLimit(shown);
  return `There are more than ${shown === 1 ? "this one" : `these ${shown}`}${next > shown ? `: --limit ${next} shows more` : ", the most that --limit takes"}.`;
}

/** A page of a list; `after`: the cursor of the page before. */
export type ReadPage<Item> = (limit: number, after: string | null) => Promise<Page<Item>>;

/** When an item was, and whether the list is ordered by that. */
export interface TimeOf<Item> {
  of(item: Item): string;
  ordered: boolean;
}

/** The first of a list, as many as --limit says and not before --since. `counted`: whoever asks counts them in another way. */
export async function gather<Item>(
  input: Input,
  world: World,
  read: ReadPage<Item>,
  { limit, time, counted = false }: { limit: number; time?: TimeOf<Item> | undefined; counted?: boolean },
): Promise<Listing<Item>> {
  const sinceMs = time === undefined ? undefined : readTime(input, SINCE.name, world);
  const counts = world.screen.columns !== null && !input.on("json");
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

/** A list of the data directory, page by page. */
export function pagesOf<Item>(
  store: Store,
  step: (tx: Reader, part: PageRequest) => Promise<Page<Item>>,
): ReadPage<Item> {
  return (limit, cursor) => readPage(store, { limit, after: keyOf(cursor) }, step);
}

/** What a page comes after: the key that its cursor holds. */
function keyOf(cursor: string | null): string | null {
  return cursor === null ? null : readCursor(cursor);
}
