/** `relay events list`: what happened, newest first. */
import { type EventItem, listEvents } from "../event/event-list.ts";
import { MAX_PAGE_SIZE } from "../ground/page.ts";
import { readPage } from "../store/walk.ts";
import type { Command } from "./command.ts";
import { APP, chooseEnvironment, ENVIRONMENT, JSON_OUTPUT, withStore } from "./data-directory.ts";
import { EVENT_FILTERS, readEventFilter } from "./event-option.ts";
import { DATA_DIR } from "./service-option.ts";
import { sayList } from "./table.ts";

const DEFAULT_LIMIT = 20;

export const eventsList: Command = {
  words: ["events", "list"],
  summary: "list events, newest first",
  options: [
    ...EVENT_FILTERS,
    { name: "since", value: "<time>", help: "not before this time" },
    { name: "until", value: "<time>", help: "before this time" },
    { name: "text", value: "<text>", help: "an event id, or text anywhere in the payload" },
    { name: "limit", value: "<number>", otherwise: String(DEFAULT_LIMIT), help: "how many at most" },
    JSON_OUTPUT,
    APP,
    ENVIRONMENT,
    DATA_DIR,
  ],
  examples: ["relay events list --state dead", "relay events list --relay checkout-completed --json"],
  async run(input, world) {
    const limit = input.number("limit", { from: 1, to: MAX_PAGE_SIZE }) ?? DEFAULT_LIMIT;
    const filter = readEventFilter(input);
    const { items } = await withStore(input, world, async (store) => {
      const { id } = await store.read((tx) => chooseEnvironment(tx, input));
      return await readPage(store, { limit, after: null }, (tx, part) => listEvents(tx, id, filter, part));
    });
    sayList(world, {
      json: input.on("json"),
      items,
      headings: EVENT_HEADINGS,
      row: eventRow,
      none: "No events match.",
    });
    return 0;
  },
};

const EVENT_HEADINGS = ["ARRIVED", "STATE", "RELAY", "ATTEMPTS", "ID", "REASON"] as const;

/** The event under EVENT_HEADINGS. */
export function eventRow(event: EventItem): string[] {
  return [
    event.createdAt,
    event.state,
    event.relay.name,
    String(event.attempts),
    event.id,
    event.reason ?? (event.nextAttemptAt === null ? "" : `next try ${event.nextAttemptAt}`),
  ];
}
