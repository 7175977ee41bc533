/** Replays the failed or dead events that a filter matches, or events of another person, as a job (`relay replays …`). */

import { toIso } from "../../../base/clock.ts";
import { writeJson } from "../../../base/json.ts";
import { plain } from "../../../base/text.ts";
import { BULK_STATES, type BulkFilter, type BulkPlan } from "../../../engine/event/bulk-choice.ts";
import {
  type BulkReplayView,
  DEFAULT_PER_SECOND,
  MAX_PER_SECOND,
} from "../../../engine/event/bulk-replay.ts";
import { EVENT_TRIGGERS } from "../../../engine/event/event.ts";
import { listItems, withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import type { Command, Input, Option } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { World } from "../io.ts";
import { wholeId } from "../terminal/id-suffix.ts";
import { LIMIT, readTime, SINCE, UNTIL } from "../terminal/listing.ts";
import { sayList } from "../terminal/terminal.ts";

const FILTERS: readonly Option[] = [
  { name: "state", value: "<state>", otherwise: "dead", help: BULK_STATES.join(", "), of: BULK_STATES },
  { name: "relay", value: "<name>", help: "only this relay's", of: "relay" },
  { name: "reason", value: "<code>", help: "only what failed with this last" },
  { name: "trigger", value: "<kind>", help: EVENT_TRIGGERS.join(", "), of: EVENT_TRIGGERS },
  { name: "person", value: "<address or id>", help: "only this person's" },
  { ...SINCE, help: "that arrived not before this time, or so long ago: 24h, 7d" },
  { ...UNTIL, help: "that arrived before this time, or so long ago" },
];

/** Reads the filter. It names a person by address or id. Throws UsageError. */
function readFilter(input: Input, world: World): BulkFilter {
  const [relay, reason, trigger, person] = [
    input.text("relay"),
    input.text("reason"),
    input.choice("trigger", EVENT_TRIGGERS),
    input.text("person"),
  ];
  const [sinceMs, untilMs] = [readTime(input, "since", world), readTime(input, "until", world)];
  return {
    state: input.choice("state", BULK_STATES) ?? "dead",
    ...(relay === null ? {} : { relay }),
    ...(reason === null ? {} : { reason }),
    ...(trigger === null ? {} : { trigger }),
    ...(person === null ? {} : { person }),
    ...(sinceMs === undefined ? {} : { since: toIso(sinceMs) }),
    ...(untilMs === undefined ? {} : { until: toIso(untilMs) }),
  };
}

async function plan(input: Input, world: World): Promise<BulkPlan> {
  const filter = readFilter(input, world);
  return await withApi(
    "read",
    input,
    world,
    async (api) => (await api.request<{ plan: BulkPlan }>("POST", "/bulk-replays/plan", filter)).plan,
  );
}

const WILL_WORDS = {
  run: "run",
  skip: "skipped, their work is done",
  again: "sent again, with the same id",
  edited: "skipped, edited after their work was done",
  other_person: "skipped, their work was done for another person",
  settle: "looked at first, whether they left",
} as const;

const LEFT_OUT_WORDS: Readonly<Record<string, string>> = {
  payload_expunged: "their payload is not there any more",
  unsigned_event: "they arrived unsigned and their relay now acts without trustUnsignedEvents",
  relay_deleted: "their relay was deleted",
  trigger_changed: "their relay has another trigger now",
  same_person: "their work was done for the person whom they are about",
  action_unknown: "their relay holds an action that this version of the service does not know",
  not_replayable: "they are under way",
  not_found: "they are gone",
};

const NONE_MATCHES =
  "No event matches, so nothing is replayed: relay events list --state dead shows what is dead.";

function writePlan(
  { matched, planned, relays, actions, otherPerson, leftOut }: BulkPlan,
  move: boolean,
): string {
  if (matched === 0) return NONE_MATCHES;
  const scope = planned < matched ? `, of which the oldest ${say(planned)} were looked at one by one` : "";
  return [
    `${say(matched)} match${scope}.`,
    ...relays.map(({ relay, events }) => `  ${plain(relay)}  ${say(events)}`),
    ...actions.map(({ type, will, events }) => `  ${type}  ${say(events)} ${WILL_WORDS[will]}`),
    ...sayOther(otherPerson, move),
    ...Object.entries(leftOut).map(
      ([code, count]) =>
        `  ${say(count)} ${code === "same_person" ? "are left out" : "may not act any more"}: ${LEFT_OUT_WORDS[code] ?? code}`,
    ),
  ].join("\n");
}

/** Describes events whose work was for another person than they are about now. */
function sayOther(events: number, move: boolean): string[] {
  if (events === 0) return [];
  const start = `${say(events)} did work for another person than they are about now`;
  return [
    move
      ? `${start}: that work is done for the new person, and purchases move.`
      : `${start}: that stays as it is. With --move, it is done for the new person, and purchases move.`,
  ];
}

function say(count: number): string {
  return count.toLocaleString("en");
}

function writeReplay({ id, state, matched, replayed, leftOut }: BulkReplayView): string {
  const left = Object.values(leftOut).reduce((sum, count) => sum + count, 0);
  const beside = left === 0 ? "" : `, ${say(left)} left out (${Object.keys(leftOut).join(", ")})`;
  return `${id} is ${state}: ${say(replayed)} of ${say(matched)} replayed${beside}.`;
}

export const replaysStart: Command = {
  words: ["replays", "start"],
  summary: "replay every dead event that a filter chooses",
  details:
    "Or every failed one, with --state failed. With --state done, those whose work was done for another person than they are about now: that work is done for the new person, and purchases move. --plan says first what it would do. It is a job of the service: it goes on without this command and over a restart, oldest first, and what an event did before is not done twice.",
  options: [
    ...FILTERS,
    {
      name: "per-second",
      value: "<number>",
      otherwise: String(DEFAULT_PER_SECOND),
      help: "how many events a second at most",
    },
    {
      name: "move",
      help: "do also what was done for another person than the event is about now; purchases move",
    },
    { name: "plan", help: "only say what it would do" },
    { name: "yes", help: "ask nothing" },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: [
    "relay replays start --relay checkout-completed --plan",
    "relay replays start --relay checkout-completed --since 2026-11-01T00:00:00Z",
    "relay replays start --state done --relay checkout-completed --plan",
  ],
  async run(input, world) {
    const perSecond = input.number("per-second", { from: 1, to: MAX_PER_SECOND }) ?? DEFAULT_PER_SECOND;
    const filter = readFilter(input, world);
    const move = input.on("move") || filter.state === "done";
    if (input.on("plan") || !input.on("yes")) {
      const planned = await plan(input, world);
      if (input.on("plan")) {
        world.say(input.on("json") ? writeJson({ plan: planned }, 2) : writePlan(planned, move));
        return 0;
      }
      world.tell(writePlan(planned, move));
      if (planned.matched === 0) return 0;
      if (!(await world.confirm(`Replay ${planned.matched === 1 ? "this event" : "these events"}?`))) {
        const ask = world.interactive ? "" : " Where nobody can answer, --yes asks nothing.";
        world.tell(`Nothing was replayed.${ask}`);
        return 1;
      }
    }
    const replay = await withApi(
      "write",
      input,
      world,
      async (api) =>
        (
          await api.request<{ replay: BulkReplayView }>("POST", "/bulk-replays", {
            ...filter,
            perSecond,
            move,
          })
        ).replay,
    );
    if (input.on("json")) world.say(writeJson({ replay }, 2));
    const { id, state, matched } = replay;
    const next = ` See it with relay replays list, stop it with relay replays stop ${id}`;
    world.tell(matched === 0 ? NONE_MATCHES : `${writeReplay(replay)}${state === "running" ? next : ""}`);
    return 0;
  },
};

function sayLeftOut({ leftOut }: BulkReplayView): string {
  return Object.entries(leftOut)
    .map(([code, count]) => `${count} ${code}`)
    .join(", ");
}

export const replaysList: Command = {
  words: ["replays", "list"],
  summary: "the bulk replays, and how far each is",
  details: "Those of the last 90 days, newest first.",
  options: [SINCE, LIMIT, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay replays list"],
  async run(input, world) {
    const time = { of: (one: BulkReplayView) => one.createdAt, ordered: true };
    const replays = await listItems(input, world, "/bulk-replays", {}, time);
    await sayList(input, world, replays, {
      columns: [
        { heading: "BEGAN", value: (one) => one.createdAt },
        { heading: "STATE", value: (one) => one.state, tone: true },
        { heading: "REPLAYED", value: (one) => `${one.replayed} of ${one.matched}` },
        { heading: "LEFT OUT", value: (one) => sayLeftOut(one) },
        {
          heading: "EVENTS",
          value: (one) =>
            Object.entries(one.filter)
              .map(([name, value]) => `${name} ${value}`)
              .join(", "),
        },
        { heading: "BY", value: (one) => one.by },
        { heading: "ID", value: (one) => one.id },
      ],
      none: "There was no bulk replay.",
    });
  },
};

export const replaysStop: Command = {
  words: ["replays", "stop"],
  summary: "stop a bulk replay; what it queued stays queued",
  arguments: [{ name: "replay id", help: "as relay replays list shows it, or its ending" }],
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay replays stop 5b1f00c2"],
  async run(input, world) {
    const replay = await withApi("write", input, world, async (api) => {
      const id = await wholeId(input.first(), "replays", (most, cursor) =>
        api.page<BulkReplayView>("/bulk-replays", {}, most, cursor),
      );
      const path = `/bulk-replays/${encodeURIComponent(id)}/stop`;
      return (await api.request<{ replay: BulkReplayView }>("POST", path)).replay;
    });
    if (input.on("json")) world.say(writeJson({ replay }, 2));
    world.tell(writeReplay(replay));
  },
};
