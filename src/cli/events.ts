/**
 * `relay events …`: what happened, one event with its attempts, running one again, taking its payload out, and a line for each as it comes. The
 * running service takes up by itself what is queued here.
 */
import { actorWords, COMMAND_LINE } from "../account/api-key.ts";
import { EVENT_STATES, EVENT_TRIGGERS } from "../event/event.ts";
import { expungeByHand } from "../event/expunge.ts";
import { type EventFilter, readEvents } from "../event/list.ts";
import { planReplay, replayEvent } from "../event/replay.ts";
import type { PlannedAction, ReplayPlan } from "../event/replay-plan.ts";
import { type EventItem, type EventView, requireEventView } from "../event/view.ts";
import { sleep, toIsoOrNull } from "../ground/clock.ts";
import { writeJson } from "../ground/json.ts";
import { MAX_ACTIONS_PER_RELAY } from "../ground/limit.ts";
import type { Page } from "../ground/page.ts";
import { cutToLine, plain } from "../ground/text.ts";
import { readPersonFilter } from "../people/person.ts";
import type { Store } from "../store/port.ts";
import { type Command, type Input, type Option, UsageError } from "./command.ts";
import { JSON_OUTPUT, LIMIT, readLimit, readTime } from "./data-directory.ts";
import { ANYWHERE, atPlace } from "./place.ts";
import { askPlace, listRemote } from "./remote.ts";
import { sayList, WAY_WORDS, writeEvent } from "./terminal.ts";
import type { World } from "./world.ts";

const EVENT_FILTERS: readonly Option[] = [
  { name: "relay", value: "<name>", help: "only this relay's" },
  { name: "state", value: "<state>", help: EVENT_STATES.join(", ") },
  { name: "trigger", value: "<kind>", help: EVENT_TRIGGERS.join(", ") },
  {
    name: "person",
    value: "<address, id or token>",
    help: "only this person's; somebody unknown is an error",
  },
];

/** Throws UsageError. */
function readEventFilter(input: Input): EventFilter {
  return {
    relay: input.text("relay") ?? undefined,
    state: input.choice("state", EVENT_STATES) ?? undefined,
    trigger: input.choice("trigger", EVENT_TRIGGERS) ?? undefined,
    person: input.text("person") ?? undefined,
    q: input.text("text") ?? undefined,
    mapped: input.text("mapped") ?? undefined,
    sinceMs: readTime(input, "since"),
    untilMs: readTime(input, "until"),
  };
}

/** The filter with the person's id, who was named by address, token or id. */
export async function findFilteredPerson<Filter extends { person?: string | undefined }>(
  store: Store,
  environmentId: number,
  filter: Filter,
): Promise<Filter> {
  const person = await readPersonFilter(store, environmentId, filter.person);
  return person === undefined ? filter : { ...filter, person };
}

/** The filter as the API takes it. */
function queryOf({ sinceMs, untilMs, ...filter }: EventFilter) {
  return { ...filter, since: toIsoOrNull(sinceMs ?? null), until: toIsoOrNull(untilMs ?? null) };
}

const eventPath = (id: string): string => `/events/${encodeURIComponent(id)}`;

/** "No events match" is said when all were looked at. */
const EVERY_STEP = { steps: Number.POSITIVE_INFINITY };

export const eventsList: Command = {
  words: ["events", "list"],
  summary: "list events, newest first",
  options: [
    ...EVENT_FILTERS,
    { name: "since", value: "<time>", help: "not before this time" },
    { name: "until", value: "<time>", help: "before this time" },
    { name: "text", value: "<text>", help: "an event id, or text anywhere in the payload" },
    { name: "mapped", value: "<name:value>", help: "a mapped value begins so: order:cs_live" },
    LIMIT,
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay events list --state dead", "relay events list --relay checkout-completed --json"],
  async run(input, world) {
    const limit = readLimit(input);
    const filter = readEventFilter(input);
    const { items } = await atPlace(input, world, {
      here: async (store, { id }) => {
        const found = await findFilteredPerson(store, id, filter);
        return await readEvents(store, id, found, { limit, after: null }, EVERY_STEP);
      },
      there: (remote) => listRemote<EventItem>(remote, "/events", queryOf(filter), limit),
    });
    sayList(input, world, items, {
      headings: EVENT_HEADINGS,
      row: eventRow,
      none: "No events match.",
    });
  },
};

const EVENT_HEADINGS = ["ARRIVED", "STATE", "RELAY", "ATTEMPTS", "ID", "ABOUT", "REASON"] as const;
const MAX_ABOUT_CHARS = 72;

/** The event under EVENT_HEADINGS. */
function eventRow(event: EventItem): string[] {
  return [
    event.createdAt,
    event.state,
    event.relay.name,
    String(event.attempts),
    event.id,
    cutToLine([event.eventType, event.preview].filter((one) => one !== null).join(" · "), MAX_ABOUT_CHARS),
    [
      event.cameBy === null ? null : WAY_WORDS[event.cameBy],
      event.reason,
      event.waits === null ? null : sayWaits(event.waits),
    ]
      .filter((one) => one !== null)
      .join(", "),
  ];
}

/** In a word or two. */
function sayWaits({ for: what, until, ahead }: NonNullable<EventItem["waits"]>): string {
  if (what === "retry") return `next try ${until}`;
  if (what === "hold") return "waits: on hold";
  if (what === "pause") return "waits: paused";
  return ahead === 0 ? "next" : `waits: behind ${ahead}`;
}

export const eventsShow: Command = {
  words: ["events", "show"],
  summary: "one event: its payload, and what each attempt did",
  arguments: [{ name: "event id", help: "as relay events list shows it" }],
  options: [JSON_OUTPUT, ...ANYWHERE],
  async run(input, world) {
    const id = input.first();
    const event = await atPlace(input, world, {
      here: (store, environment) => store.read((tx) => requireEventView(tx, environment.id, id)),
      there: async (remote) =>
        withoutDocs((await askPlace<{ event: EventView }>(remote, "GET", eventPath(id))).event),
    });
    world.say(input.on("json") ? writeJson({ event }, 2) : writeEvent(event));
  },
};

/** A server tells the page of each code too; the terminal has relay help for it. */
function withoutDocs(event: EventView): EventView {
  const runs = event.runs.map((run) => ({
    ...run,
    results: run.results.map(({ docs: _, ...result }) => result),
  }));
  return { ...event, runs };
}

export const eventsReplay: Command = {
  words: ["events", "replay"],
  summary: "run an event again; what it did before is not done twice",
  details:
    "--plan says first what each action will do. An action that was edited after it had done its work is skipped unless --run names it.",
  arguments: [{ name: "event id", help: "as relay events list shows it" }],
  options: [
    { name: "plan", help: "only say what each action would do" },
    {
      name: "run",
      value: "<index>",
      list: true,
      otherwise: "none",
      help: "an action edited after its work that runs all the same, counted from 0 as the plan does",
    },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay events replay evt_… --plan", "relay events replay evt_… --run 2"],
  async run(input, world) {
    if (input.on("plan")) return await sayPlan(input, world);
    const id = input.first();
    const run = readIndexes(input);
    const [actor, nowMs] = [actorWords(COMMAND_LINE), world.clock.now()];
    await atPlace<unknown>(input, world, {
      writes: true,
      here: (store, { id: environmentId }) =>
        store.write("dashboard", (tx) => replayEvent(tx, { environmentId, id, actor, nowMs, run })),
      there: (remote) => askPlace(remote, "POST", `${eventPath(id)}/replay`, { run }),
    });
    if (input.on("json")) world.say(writeJson({ event: { id, state: "queued" } }, 2));
    world.tell(
      `${id} is queued again; calls are sent again, everything else only where it was not done. See relay events show ${id}`,
    );
  },
};

async function sayPlan(input: Input, world: World): Promise<void> {
  const id = input.first();
  const plan = await atPlace(input, world, {
    here: (store, { id: environmentId }) => store.read((tx) => planReplay(tx, { environmentId, id })),
    there: async (remote) =>
      (await askPlace<{ plan: ReplayPlan }>(remote, "GET", `${eventPath(id)}/replay`)).plan,
  });
  if (input.on("json")) world.say(writeJson({ plan }, 2));
  else if (plan.relay === null || plan.stop !== null) world.tell(plain(plan.stop ?? ""));
  else {
    const { name, version } = plan.relay;
    world.say([`${plain(name)}, version ${version}`, ...plan.actions.map(writePlanned)].join("\n"));
  }
}

function writePlanned({ index, type, message, mayChoose }: PlannedAction): string {
  const choice = mayChoose ? ` (--run ${index})` : "";
  return `  actions.${index}  ${type}  ${plain(message)}${choice}`;
}

function readIndexes(input: Input): number[] {
  return input.list("run").map((text) => {
    const index = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
    if (index < MAX_ACTIONS_PER_RELAY) return index;
    throw new UsageError(
      `--run is ${JSON.stringify(text)}: write the index of an action, from 0 to ${MAX_ACTIONS_PER_RELAY - 1}, as --plan shows it.`,
    );
  });
}

export const eventsExpunge: Command = {
  words: ["events", "expunge"],
  summary: "take an event's payload out for good, audited; it never runs again",
  arguments: [{ name: "event id", help: "as relay events list shows it" }],
  options: ANYWHERE,
  details:
    "What its results quote goes with it; an event that waits ends failed. Mails it caused and backups made before are not touched.",
  async run(input, world) {
    const id = input.first();
    await atPlace<unknown>(input, world, {
      writes: true,
      here: async (store, { id: environmentId }) => {
        const nowMs = world.clock.now();
        await expungeByHand(store, { environmentId, id, actor: actorWords(COMMAND_LINE), nowMs });
        // Nothing of it stays in pages that came free.
        while (await store.tend({ everything: true }));
      },
      there: (remote) => askPlace(remote, "POST", `${eventPath(id)}/expunge`),
    });
    world.tell(`${id} is expunged: its payload is gone for good. See relay events show ${id}`);
  },
};

const LOOK_EVERY_MS = 500;
const LOOK_THERE_EVERY_MS = 2_000;
const PAGE = { limit: 200, after: null };

export const eventsTail: Command = {
  words: ["events", "tail"],
  summary: "a line for each event as it arrives and ends, until stopped",
  options: [...EVENT_FILTERS, JSON_OUTPUT, ...ANYWHERE],
  async run(input, world) {
    const filter = readEventFilter(input);
    await atPlace(input, world, {
      here: async (store, { id }) => {
        const found = await findFilteredPerson(store, id, filter);
        const look = () => readEvents(store, id, found, PAGE);
        await follow(look, LOOK_EVERY_MS, input, world);
      },
      there: (remote) => {
        const look = () => listRemote<EventItem>(remote, "/events", queryOf(filter), PAGE.limit);
        return follow(look, LOOK_THERE_EVERY_MS, input, world);
      },
    });
  },
};

async function follow(
  look: () => Promise<Page<EventItem>>,
  everyMs: number,
  input: Input,
  world: World,
): Promise<void> {
  const stop = { now: false };
  const stopped = world.untilStopped().then(() => {
    stop.now = true;
  });
  let seen = new Map((await look()).items.map((event) => [event.id, phaseOf(event)]));
  world.tell("Waiting for events; press Ctrl+C to stop.");
  while (!stop.now) {
    const { items } = await look();
    for (const event of items.toReversed()) {
      if (seen.get(event.id) === phaseOf(event)) continue;
      world.say(input.on("json") ? writeJson(event) : eventRow(event).map(plain).join("  ").trimEnd());
    }
    seen = new Map(items.map((event) => [event.id, phaseOf(event)]));
    await Promise.race([stopped, sleep(world.clock, everyMs)]);
  }
}

function phaseOf(event: EventItem): string {
  return `${event.state} ${event.attempts} ${event.finishedAt ?? ""}`;
}
