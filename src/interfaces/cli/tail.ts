/** `relay … tail`: a line for each thing as it comes, until the command is stopped. */
import { sleep } from "../../base/clock.ts";
import type { Input } from "./command.ts";
import type { World } from "./io.ts";
import type { Column } from "./table.ts";
import { sayLine } from "./terminal.ts";

/** How often the data directory is looked at, and a server asked. */
export const LOOK_EVERY_MS = 500;
export const LOOK_THERE_EVERY_MS = 2_000;

interface Followed<Item> {
  /** What there is now, the newest first. */
  look(): Promise<readonly Item[]>;
  everyMs: number;
  /** What is another line when it changes. */
  keyOf(item: Item): string;
  columns: readonly Column<Item>[];
  /** What is said before the first. */
  waiting: string;
}

export async function follow<Item>(
  input: Input,
  world: World,
  { look, everyMs, keyOf, columns, waiting }: Followed<Item>,
): Promise<void> {
  const stop = { now: false };
  const stopped = world.untilStopped().then(() => {
    stop.now = true;
  });
  let seen = new Set((await look()).map(keyOf));
  world.tell(`${waiting}; press Ctrl+C to stop.`);
  while (!stop.now) {
    const items = await look();
    for (const item of items.toReversed()) if (!seen.has(keyOf(item))) sayLine(input, world, columns, item);
    seen = new Set(items.map(keyOf));
    await Promise.race([stopped, sleep(world.clock, everyMs)]);
  }
}
