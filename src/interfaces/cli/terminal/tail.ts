/** Prints a line for each new item until the command stops (`relay … tail`). */
import { sleep } from "../../../base/clock.ts";
import type { Api } from "../api/api.ts";
import type { Input } from "../command.ts";
import type { Io } from "../io.ts";
import type { Column } from "./table.ts";
import { printLine } from "./terminal.ts";

/** The time between reads. A command reads a data directory more often than it asks a server. */
const LOCAL_PERIOD_MS = 500;
const REMOTE_PERIOD_MS = 2_000;

interface Followed<Item> {
  /** Reads the current items, newest first. */
  read(): Promise<readonly Item[]>;
  /** Returns the key of an item's line. An item with a new key gets a new line. */
  keyOf(item: Item): string;
  columns: readonly Column<Item>[];
  /** The message before the first line. */
  waiting: string;
}

export async function follow<Item>(
  { isLocal }: Api,
  input: Input,
  io: Io,
  { read, keyOf, columns, waiting }: Followed<Item>,
): Promise<void> {
  const periodMs = isLocal ? LOCAL_PERIOD_MS : REMOTE_PERIOD_MS;
  const stop = { now: false };
  const stopped = io.untilStopped().then(() => {
    stop.now = true;
  });
  let seen = new Set((await read()).map(keyOf));
  io.inform(`${waiting}; press Ctrl+C to stop.`);
  while (!stop.now) {
    const items = await read();
    for (const item of items.toReversed()) if (!seen.has(keyOf(item))) printLine(input, io, columns, item);
    seen = new Set(items.map(keyOf));
    await Promise.race([stopped, sleep(io.clock, periodMs)]);
  }
}
