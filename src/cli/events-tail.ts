/** `relay events tail`: a line for each event that arrives or changes its state, until it is stopped. */
import { type EventItem, listEvents } from "../event/event-list.ts";
import { sleep } from "../ground/clock.ts";
import { writeJson } from "../ground/json.ts";
import { readPage } from "../store/walk.ts";
import type { Command } from "./command.ts";
import { APP, chooseEnvironment, ENVIRONMENT, JSON_OUTPUT, withStore } from "./data-directory.ts";
import { EVENT_FILTERS, readEventFilter } from "./event-option.ts";
import { eventRow } from "./events-list.ts";
import { DATA_DIR } from "./service-option.ts";
import { plain } from "./table.ts";

const LOOK_EVERY_MS = 500;
const PAGE = { limit: 200, after: null };

export const eventsTail: Command = {
  words: ["events", "tail"],
  summary: "a line for each event as it arrives and ends, until stopped",
  options: [...EVENT_FILTERS, JSON_OUTPUT, APP, ENVIRONMENT, DATA_DIR],
  async run(input, world) {
    const filter = readEventFilter(input);
    const stop = { now: false };
    const stopped = world.untilStopped().then(() => {
      stop.now = true;
    });
    await withStore(input, world, async (store) => {
      const environment = await store.read((tx) => chooseEnvironment(tx, input));
      const look = () => readPage(store, PAGE, (tx, part) => listEvents(tx, environment.id, filter, part));
      let seen = new Map((await look()).items.map((event) => [event.id, phaseOf(event)]));
      world.tell("Waiting for events; press Ctrl+C to stop.");
      while (!stop.now) {
        const { items } = await look();
        for (const event of items.toReversed()) {
          if (seen.get(event.id) === phaseOf(event)) continue;
          world.say(input.on("json") ? writeJson(event) : eventRow(event).map(plain).join("  ").trimEnd());
        }
        seen = new Map(items.map((event) => [event.id, phaseOf(event)]));
        await Promise.race([stopped, sleep(world.clock, LOOK_EVERY_MS)]);
      }
    });
    return 0;
  },
};

function phaseOf(event: EventItem): string {
  return `${event.state} ${event.attempts} ${event.finishedAt ?? ""}`;
}
