/** Lists events, shows one with its attempts, removes its payload, and prints each new event (`relay events …`). */

import { toIsoOrNull } from "../../../base/clock.ts";
import { writeJson } from "../../../base/json.ts";
import { MAX_PAGE_SIZE } from "../../../base/page.ts";
import type { EventCounts } from "../../../engine/event/count.ts";
import { EVENT_STATES, EVENT_TRIGGERS } from "../../../engine/event/event.ts";
import type { EventFilter } from "../../../engine/event/list.ts";
import type { EventItem, EventView } from "../../../engine/event/view.ts";
import { type Api, writeQuery } from "../api/api.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import { openWebPage, WEB } from "../api/web-page.ts";
import type { Command, Input, Option } from "../command.ts";
import { JSON_OUTPUT, withStore } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { expandEventId } from "../terminal/id-suffix.ts";
import {
  gather,
  LIMIT,
  type Listing,
  type ReadPage,
  readLimit,
  readTime,
  SINCE,
  UNTIL,
} from "../terminal/listing.ts";
import { follow } from "../terminal/tail.ts";
import { printList, printSheet } from "../terminal/terminal.ts";
import { EVENT_COLUMNS, writeEvent, writePayload } from "./text.ts";

const EVENT_FILTERS: readonly Option[] = [
  { name: "relay", value: "<name>", help: "only events of this relay", of: "relay" },
  { name: "state", value: "<state>", help: EVENT_STATES.join(", "), of: EVENT_STATES },
  { name: "trigger", value: "<kind>", help: EVENT_TRIGGERS.join(", "), of: EVENT_TRIGGERS },
  {
    name: "reason",
    value: "<code>",
    help: "only events whose last attempt failed with this code; any: with any code",
  },
  {
    name: "person",
    value: "<address, id or token>",
    help: "only events of this person; an unknown person is an error",
  },
];

/** Throws UsageError. */
function readEventFilter(input: Input, io: Io): EventFilter {
  return {
    relay: input.text("relay") ?? undefined,
    state: input.choice("state", EVENT_STATES) ?? undefined,
    trigger: input.choice("trigger", EVENT_TRIGGERS) ?? undefined,
    reason: input.text("reason") ?? undefined,
    person: input.text("person") ?? undefined,
    q: input.text("text") ?? undefined,
    mapped: input.text("mapped") ?? undefined,
    sinceMs: readTime(input, "since", io),
    untilMs: readTime(input, "until", io),
  };
}

/** Returns the filter in the form of the API. */
function queryOf({ sinceMs, untilMs, ...filter }: EventFilter) {
  return { ...filter, since: toIsoOrNull(sinceMs ?? null), until: toIsoOrNull(untilMs ?? null) };
}

export const eventPath = (id: string): string => `/events/${encodeURIComponent(id)}`;

export const eventsList: Command = {
  words: ["events", "list"],
  summary: "list events, newest first",
  options: [
    ...EVENT_FILTERS,
    SINCE,
    UNTIL,
    { name: "text", value: "<text>", help: "only events with this id, or with this text in the payload" },
    {
      name: "mapped",
      value: "<name:value>",
      help: "only events whose mapped value starts with this: order:cs_live",
    },
    LIMIT,
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay events list --state dead", "relay events list --relay checkout-completed --json"],
  async run(input, io) {
    const limit = readLimit(input);
    const filter = readEventFilter(input, io);
    const events = await withApi("read", input, io, async (api) => {
      const query = queryOf(filter);
      const read: ReadPage<EventItem> = (most, cursor) => api.page<EventItem>("/events", query, most, cursor);
      const listed = await gather(input, io, read, { limit, counted: true });
      const count = async () => {
        const path = `/events/counts${writeQuery({ ...query, state: undefined })}`;
        return (await api.request<{ counts: EventCounts }>("GET", path)).counts;
      };
      return await addCount(listed, count, filter);
    });
    await printList(input, io, events, { columns: EVENT_COLUMNS, none: "No events match." });
  },
};

/** Adds the total number of events from the event counts, which count further than paging does. */
async function addCount(
  listed: Listing<EventItem>,
  count: () => Promise<EventCounts>,
  { state }: EventFilter,
): Promise<Listing<EventItem>> {
  if (!listed.wantsCount) return listed;
  const counts = await count();
  const counted = state === undefined ? Object.values(counts) : [counts[state]];
  const total = counted.reduce((sum, one) => sum + one.count, 0);
  return { ...listed, of: { total, atLeast: counted.some(({ isMore }) => isMore) } };
}

/** Finds an event by its id or by the ending of the id, and returns its id. */
export function findEventId(api: Api, text: string): Promise<string> {
  return expandEventId(text, (most, cursor) => api.page<EventItem>("/events", {}, most, cursor));
}

/** Sends a POST about an event and returns the event's id. */
export async function postEvent(api: Api, path: string, sent: object = {}): Promise<string> {
  const { event } = await api.request<{ event: { id: string } }>("POST", path, sent);
  return event.id;
}

async function readEvent(api: Api, text: string): Promise<EventView> {
  const path = eventPath(await findEventId(api, text));
  return withoutDocs((await api.request<{ event: EventView }>("GET", path)).event);
}

export const eventsShow: Command = {
  words: ["events", "show"],
  summary: "show one event: payload, attempts, results",
  arguments: [{ name: "event id", help: "the id (or its ending) as relay events list shows it" }],
  options: [WEB, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay events show 00001a2f", "relay events show 00001a2f --web"],
  async run(input, io) {
    const read = (api: Api) => readEvent(api, input.first());
    if (input.on("web"))
      return await openWebPage(input, io, async (api) => ({ path: ["events", (await read(api)).id] }));
    const event = await withApi("read", input, io, read);
    if (input.on("json")) return io.print(writeJson({ event }, 2));
    const aside = io.screen.columns !== null && event.expunged === null;
    await printSheet(input, io, writeEvent(event, aside), aside ? writePayload(event) : null);
  },
};

/** Removes the docs link that a server adds for each code. The terminal has relay help for it. */
function withoutDocs(event: EventView): EventView {
  const runs = event.runs.map((run) => ({
    ...run,
    results: run.results.map(({ docs: _, ...result }) => result),
  }));
  return { ...event, runs };
}

export const eventsExpunge: Command = {
  words: ["events", "expunge"],
  summary: "permanently delete the payload of an event",
  arguments: [{ name: "event id", help: "the id (or its ending) as relay events list shows it" }],
  options: ANYWHERE,
  details:
    "The command also deletes what the results quote from the payload. The event never runs again, and a waiting event becomes failed. The audit log records the command. Mails that the event sent and earlier backups do not change.",
  examples: ["relay events expunge 00001a2f"],
  async run(input, io) {
    const { id, isLocal } = await withApi("write", input, io, async (api) => {
      const path = eventPath(await findEventId(api, input.first()));
      return { id: await postEvent(api, `${path}/expunge`), isLocal: api.isLocal };
    });
    if (isLocal) await vacuum(input, io);
    io.inform(`${id} is expunged: its payload is permanently deleted. See relay events show ${id}`);
  },
};

/** Overwrites the database pages that contained the payload. A server does that itself. */
function vacuum(input: Input, io: Io): Promise<void> {
  return withStore(input, io, async (store) => {
    while (await store.vacuumStep({ everything: true }));
  });
}

export const eventsTail: Command = {
  words: ["events", "tail"],
  summary: "print each event when it arrives and ends",
  details: "The command runs until you stop it.",
  options: [...EVENT_FILTERS, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay events tail --state dead"],
  async run(input, io) {
    const filter = readEventFilter(input, io);
    await withApi("read", input, io, (api) => {
      const read = async () =>
        (await api.page<EventItem>("/events", queryOf(filter), MAX_PAGE_SIZE, null)).items;
      return follow(api, input, io, { ...TAIL, read });
    });
  },
};

const TAIL = {
  columns: EVENT_COLUMNS,
  keyOf: ({ id, state, attempts, finishedAt }: EventItem) => `${id} ${state} ${attempts} ${finishedAt ?? ""}`,
  waiting: "Waiting for events",
};
