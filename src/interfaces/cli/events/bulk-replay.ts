/** Replays the failed or dead events that a filter matches, or events of another person, as a job (`relay replays …`). */

import { sleep, toIso } from "../../../base/clock.ts";
import { writeJson } from "../../../base/json.ts";
import { formatCount, plain } from "../../../base/text.ts";
import { BULK_STATES, type BulkFilter } from "../../../engine/event/bulk-choice.ts";
import type { BulkPlan } from "../../../engine/event/bulk-plan.ts";
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
import type { Io } from "../io.ts";
import { expandId } from "../terminal/id-suffix.ts";
import { LIMIT, readTime, SINCE, UNTIL } from "../terminal/listing.ts";
import { printList } from "../terminal/terminal.ts";

/** The interval between two looks at a bulk replay that a command waits for. */
const LOOK_EVERY_MS = 1_000;

const FILTERS: readonly Option[] = [
  { name: "state", value: "<state>", otherwise: "dead", help: BULK_STATES.join(", "), of: BULK_STATES },
  { name: "relay", value: "<name>", help: "only events of this relay", of: "relay" },
  { name: "reason", value: "<code>", help: "only events whose last attempt failed with this code" },
  { name: "trigger", value: "<kind>", help: EVENT_TRIGGERS.join(", "), of: EVENT_TRIGGERS },
  { name: "person", value: "<address or id>", help: "only events of this person" },
  { ...SINCE, help: "only events since this time, or within this duration: 24h, 7d" },
  { ...UNTIL, help: "only events before this time, or older than this duration" },
];

/** Reads the filter. It names a person by address or id. Throws UsageError. */
function readFilter(input: Input, io: Io): BulkFilter {
  const [relay, reason, trigger, person] = [
    input.text("relay"),
    input.text("reason"),
    input.choice("trigger", EVENT_TRIGGERS),
    input.text("person"),
  ];
  const [sinceMs, untilMs] = [readTime(input, "since", io), readTime(input, "until", io)];
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

async function plan(input: Input, io: Io): Promise<BulkPlan> {
  const filter = readFilter(input, io);
  return await withApi(
    "read",
    input,
    io,
    async (api) => (await api.request<{ plan: BulkPlan }>("POST", "/bulk-replays/plan", filter)).plan,
  );
}

const WILL_WORDS = {
  run: "run",
  skip: "skipped, because their work is done",
  again: "sent again with the same id",
  edited: "skipped, because the action was edited after their work was done",
  other_person: "skipped, because their work was done for another person",
  settle: "checked first: they may have been sent",
} as const;

const LEFT_OUT_WORDS: Readonly<Record<string, string>> = {
  payload_expunged: "their payload was deleted",
  unsigned_event: "they arrived unsigned, and their relay now acts without trustUnsignedEvents",
  relay_deleted: "their relay was deleted",
  trigger_changed: "their relay now has another trigger",
  same_person: "their work was done for the right person",
  action_unknown: "their relay has an action that this version of Relay does not know",
  not_replayable: "they are queued or running",
  not_found: "they no longer exist",
};

const NONE_MATCHES =
  "No events match, so nothing is replayed. relay events list --state dead shows the dead events.";

function writePlan(
  { matched, isMore, planned, relays, actions, otherPerson, leftOut }: BulkPlan,
  move: boolean,
): string {
  if (matched === 0 && !isMore) return NONE_MATCHES;
  const scope = planned < matched ? `. The plan checked only the oldest ${formatCount(planned)}` : "";
  return [
    `${isMore ? "At least " : ""}${formatCount(matched)} ${matched === 1 ? "event matches" : "events match"}${scope}.`,
    ...relays.map(({ relay, events }) => `  ${plain(relay)}  ${formatCount(events)}`),
    ...actions.map(({ type, will, events }) => `  ${type}  ${formatCount(events)} ${WILL_WORDS[will]}`),
    ...formatOtherPeople(otherPerson, move),
    ...Object.entries(leftOut).map(
      ([code, count]) => `  ${formatCount(count)} left out: ${LEFT_OUT_WORDS[code] ?? code}`,
    ),
  ].join("\n");
}

/** Describes events whose work was for another person than they are about now. */
function formatOtherPeople(events: number, move: boolean): string[] {
  if (events === 0) return [];
  const start = `${formatCount(events)} did their work for a person other than their person now`;
  return [
    move
      ? `${start}: Relay does that work for the new person, and purchases move.`
      : `${start}: that work stays unchanged. With --move, Relay does it for the new person, and purchases move.`,
  ];
}

function writeReplay({ id, state, matched, replayed, leftOut, results }: BulkReplayView): string {
  const left = Object.values(leftOut).reduce((sum, count) => sum + count, 0);
  const skipped = left === 0 ? "" : `, ${formatCount(left)} left out (${Object.keys(leftOut).join(", ")})`;
  const ended = results == null ? "" : ` Results: ${formatResults(results)}.`;
  return `${id} is ${state}: ${formatCount(replayed)} of ${formatCount(matched)} replayed${skipped}.${ended}`;
}

function formatResults({ succeeded, failed, pending }: NonNullable<BulkReplayView["results"]>): string {
  return `${formatCount(succeeded)} succeeded, ${formatCount(failed)} failed${pending === 0 ? "" : `, ${formatCount(pending)} pending`}`;
}

const WAIT_DETAILS =
  "The exit code is 1 if an event failed. A retry can take hours: Ctrl-C ends only the command.";

/** Waits until each replayed event has its result. Returns 1 if one failed. */
async function waitForResults(begun: BulkReplayView, input: Input, io: Io): Promise<number> {
  const path = `/bulk-replays/${encodeURIComponent(begun.id)}`;
  const replay = await withApi("read", input, io, async (api) => {
    let now = begun;
    while (isPending(now)) {
      if (io.watched) io.redraw(writeReplay(now));
      await sleep(io.clock, LOOK_EVERY_MS);
      now = (await api.request<{ replay: BulkReplayView }>("GET", path)).replay;
    }
    return now;
  });
  if (io.watched) io.redraw(null);
  if (input.on("json")) io.print(writeJson({ replay }, 2));
  io.inform(writeReplay(replay));
  return (replay.results?.failed ?? 0) > 0 ? 1 : 0;
}

function isPending({ state, results }: BulkReplayView): boolean {
  return state === "running" || (results?.pending ?? 0) > 0;
}

export const replaysStart: Command = {
  words: ["replays", "start"],
  summary: "replay all dead events that match a filter",
  details:
    "--state failed replays failed events instead. --state done replays events that did their work for a person other than their person now: Relay does that work for the new person, and purchases move. --plan shows what would happen. The replay is a job of the service, oldest event first. It continues after this command ends and after a restart. Work that an event has done is not done twice.",
  options: [
    ...FILTERS,
    {
      name: "per-second",
      value: "<number>",
      otherwise: String(DEFAULT_PER_SECOND),
      help: "the most events to replay each second",
    },
    {
      name: "move",
      help: "do work again that was done for a person other than the event's person now; purchases move",
    },
    { name: "plan", help: "show what would happen, and replay nothing" },
    { name: "yes", help: "replay without a question" },
    { name: "wait", help: "wait until each event has its result" },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: [
    "relay replays start --relay checkout-completed --plan",
    "relay replays start --relay checkout-completed --since 2026-11-01T00:00:00Z",
    "relay replays start --state done --relay checkout-completed --plan",
  ],
  async run(input, io) {
    const perSecond = input.number("per-second", { from: 1, to: MAX_PER_SECOND }) ?? DEFAULT_PER_SECOND;
    const filter = readFilter(input, io);
    const move = input.on("move") || filter.state === "done";
    if (input.on("plan") || !input.on("yes")) {
      const planned = await plan(input, io);
      if (input.on("plan")) {
        io.print(input.on("json") ? writeJson({ plan: planned }, 2) : writePlan(planned, move));
        return 0;
      }
      io.inform(writePlan(planned, move));
      if (planned.matched === 0 && !planned.isMore) return 0;
      if (!(await io.confirm(`Replay ${planned.matched === 1 ? "this event" : "these events"}?`))) {
        const ask = io.interactive
          ? ""
          : " There is no terminal to ask at: add --yes to replay without a question.";
        io.inform(`Nothing was replayed.${ask}`);
        return 1;
      }
    }
    const replay = await withApi(
      "write",
      input,
      io,
      async (api) =>
        (
          await api.request<{ replay: BulkReplayView }>("POST", "/bulk-replays", {
            ...filter,
            perSecond,
            move,
          })
        ).replay,
    );
    if (input.on("wait")) return await waitForResults(replay, input, io);
    if (input.on("json")) io.print(writeJson({ replay }, 2));
    const { id, state, matched } = replay;
    const next = ` To follow it: relay replays wait ${id}. To stop it: relay replays stop ${id}`;
    io.inform(matched === 0 ? NONE_MATCHES : `${writeReplay(replay)}${state === "running" ? next : ""}`);
    return 0;
  },
};

function formatLeftOut({ leftOut }: BulkReplayView): string {
  return Object.entries(leftOut)
    .map(([code, count]) => `${count} ${code}`)
    .join(", ");
}

export const replaysList: Command = {
  words: ["replays", "list"],
  summary: "list bulk replays and their progress",
  details: "The list has the bulk replays of the last 90 days, newest first.",
  options: [SINCE, LIMIT, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay replays list"],
  async run(input, io) {
    const time = { of: (one: BulkReplayView) => one.createdAt, ordered: true };
    const replays = await listItems(input, io, "/bulk-replays", {}, time);
    await printList(input, io, replays, {
      columns: [
        { heading: "STARTED", value: (one) => one.createdAt },
        { heading: "STATE", value: (one) => one.state, tone: true },
        { heading: "REPLAYED", value: (one) => `${one.replayed} of ${one.matched}` },
        { heading: "LEFT OUT", value: (one) => formatLeftOut(one) },
        { heading: "RESULTS", value: (one) => (one.results == null ? "" : formatResults(one.results)) },
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
      none: "There are no bulk replays.",
    });
  },
};

export const replaysWait: Command = {
  words: ["replays", "wait"],
  summary: "wait until each event of a bulk replay has its result",
  details: WAIT_DETAILS,
  arguments: [{ name: "replay id", help: "the id (or its ending) as relay replays list shows it" }],
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay replays wait 5b1f00c2"],
  async run(input, io) {
    const replay = await withApi("read", input, io, async (api) => {
      const id = await expandId(input.first(), "replays", (most, cursor) =>
        api.page<BulkReplayView>("/bulk-replays", {}, most, cursor),
      );
      return (await api.request<{ replay: BulkReplayView }>("GET", `/bulk-replays/${encodeURIComponent(id)}`))
        .replay;
    });
    return await waitForResults(replay, input, io);
  },
};

export const replaysStop: Command = {
  words: ["replays", "stop"],
  summary: "stop a bulk replay; queued events stay queued",
  arguments: [{ name: "replay id", help: "the id (or its ending) as relay replays list shows it" }],
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay replays stop 5b1f00c2"],
  async run(input, io) {
    const replay = await withApi("write", input, io, async (api) => {
      const id = await expandId(input.first(), "replays", (most, cursor) =>
        api.page<BulkReplayView>("/bulk-replays", {}, most, cursor),
      );
      const path = `/bulk-replays/${encodeURIComponent(id)}/stop`;
      return (await api.request<{ replay: BulkReplayView }>("POST", path)).replay;
    });
    if (input.on("json")) io.print(writeJson({ replay }, 2));
    io.inform(writeReplay(replay));
  },
};
