/** `relay … tail`: a line for each thing as it comes, until the command is stopped. */
import { sleep } from "../../../base/clock.ts";
import type { Api } from "../api/api.ts";
import type { Input } from "../command.ts";
import type { World } from "../io.ts";
import type { Column } from "./table.ts";
import { sayLine } from "./terminal.ts";

/** A data directory is read more often than a server is asked. */
const LOCAL_PERIOD_MS = 500;
const REMOTE_PERIOD_MS = 2_000;

interface Followed<Item> {
  /** What there is now, the newest first. */
  look(): Promise<readonly Item[]>;
  /** What is another line when it changes. */
  keyOf(item: Item): string;
  columns: readonly Column<Item>[];
  /** What is said before the first. */
  waiting: string;
}

export async function follow<Item>(
  { isLocal }: Api,
  input: Input,
  world: World,
  { look, keyOf, columns, waiting }: Followed<Item>,
): Promise<void> {
  const periodMs = isLocal ? LOCAL_PERIOD_MS : REMOTE_PERIOD_MS;
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
    await Promise.race([stopped, sleep(world.clock, periodMs)]);
  }
}
