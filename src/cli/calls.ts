/**
 * `relay calls …`: the receiver calls that became no event, each with its cause, those to names that no receiver has among them; one of them
 * with what to do, and a line for each as it comes. A running service writes them within a second.
 */
import { sleep, toIsoOrNull } from "../ground/clock.ts";
import { writeJson } from "../ground/json.ts";
import { MAX_RECENT_CALLS } from "../ground/limit.ts";
import { MAX_PAGE_SIZE } from "../ground/page.ts";
import { explainCode } from "../ground/result-code.ts";
import { plain } from "../ground/text.ts";
import { CALL_OUTCOMES, type CallFilter, listRecentCalls, type RecentCallView } from "../receiver/call.ts";
import { listUnknownCalls, MAX_UNKNOWN_NAMES, type UnknownCallView } from "../receiver/unknown-call.ts";
import type { Reader } from "../store/port.ts";
import { type Command, CommandFailure, type Input, type Option } from "./command.ts";
import { JSON_OUTPUT, LIMIT, readLimit, readTime } from "./data-directory.ts";
import { ANYWHERE, atPlace } from "./place.ts";
import { listRemote, type Remote } from "./remote.ts";
import { sayList } from "./terminal.ts";
import type { World } from "./world.ts";

const LOOK_EVERY_MS = 500;
const LOOK_THERE_EVERY_MS = 2_000;
/** One page of the API. */
const LOOK_THERE_AT = MAX_PAGE_SIZE;

/** What a call to a name that no receiver has is refused for. */
const UNKNOWN = "unknown_receiver";

const CALL_FILTERS: readonly Option[] = [
  { name: "relay", value: "<name>", help: "only calls to this name" },
  { name: "outcome", value: "<outcome>", help: CALL_OUTCOMES.join(", ") },
  { name: "code", value: "<code>", help: "what they were refused for, such as bad_signature" },
  { name: "since", value: "<time>", help: "not before this time" },
];

/** Throws UsageError. */
function readCallFilter(input: Input): CallFilter {
  return {
    relay: input.text("relay") ?? undefined,
    outcome: input.choice("outcome", CALL_OUTCOMES) ?? undefined,
    code: input.text("code") ?? undefined,
    sinceMs: readTime(input, "since"),
  };
}

export const callsList: Command = {
  words: ["calls", "list"],
  summary: "list receiver calls that became no event, newest first, with the cause",
  details:
    "Refused calls, those that a relay's when ignores, duplicates, and calls to names that no receiver has. The last 1,000 are kept, for 30 days.",
  options: [...CALL_FILTERS, LIMIT, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay calls list --relay checkout-completed", "relay calls list --outcome refused --json"],
  async run(input, world) {
    const limit = readLimit(input);
    const filter = readCallFilter(input);
    const calls = await atPlace(input, world, {
      here: (store, { id }) => store.read((tx) => listCalls(tx, id, filter, limit)),
      there: (remote) => listThere(remote, filter, limit),
    });
    sayList(input, world, calls, { headings: CALL_HEADINGS, row: callRow, none: "No calls match." });
  },
};

export const callsShow: Command = {
  words: ["calls", "show"],
  summary: "one call that became no event: why, and what to do",
  arguments: [{ name: "call id", help: "as relay calls list shows it" }],
  options: [JSON_OUTPUT, ...ANYWHERE],
  async run(input, world) {
    const id = input.first();
    const calls = await atPlace(input, world, {
      here: (store, environment) => store.read((tx) => listCalls(tx, environment.id, {}, MAX_RECENT_CALLS)),
      there: (remote) => listThere(remote, {}, MAX_RECENT_CALLS),
    });
    const call = calls.find((one) => one.id === id);
    if (call === undefined) {
      throw new CommandFailure(
        "not_found",
        `There is no call ${JSON.stringify(id)} in this environment: relay calls list shows the last ones.`,
      );
    }
    world.say(input.on("json") ? writeJson({ call }, 2) : writeCall(call));
  },
};

export const callsTail: Command = {
  words: ["calls", "tail"],
  summary: "a line for each call that becomes no event, until stopped",
  options: [...CALL_FILTERS, JSON_OUTPUT, ...ANYWHERE],
  async run(input, world) {
    const filter = readCallFilter(input);
    await atPlace(input, world, {
      here: (store, { id }) => {
        const look = () => store.read((tx) => listCalls(tx, id, filter, MAX_RECENT_CALLS));
        return follow(look, LOOK_EVERY_MS, input, world);
      },
      there: (remote) => {
        const look = () => listThere(remote, filter, LOOK_THERE_AT);
        return follow(look, LOOK_THERE_EVERY_MS, input, world);
      },
    });
  },
};

async function follow(
  look: () => Promise<RecentCallView[]>,
  everyMs: number,
  input: Input,
  world: World,
): Promise<void> {
  const stop = { now: false };
  const stopped = world.untilStopped().then(() => {
    stop.now = true;
  });
  let seen = new Set((await look()).map(keyOf));
  world.tell("Waiting for calls that become no event; press Ctrl+C to stop.");
  while (!stop.now) {
    const calls = await look();
    for (const call of calls.toReversed()) {
      if (!seen.has(keyOf(call)))
        world.say(input.on("json") ? writeJson(call) : callRow(call).map(plain).join("  "));
    }
    seen = new Set(calls.map(keyOf));
    await Promise.race([stopped, sleep(world.clock, everyMs)]);
  }
}

/** A name that no receiver has is one row, called again and again. */
function keyOf({ id, count }: RecentCallView): string {
  return `${id} ${count}`;
}

/** The ring, and the names that no receiver has, newest first. */
async function listCalls(
  tx: Reader,
  environmentId: number,
  filter: CallFilter,
  limit: number,
): Promise<RecentCallView[]> {
  const { items } = await listRecentCalls(tx, environmentId, filter, { limit, after: null });
  if (!takesUnknown(filter)) return items;
  const every = { limit: MAX_UNKNOWN_NAMES, after: null };
  return mix(items, (await listUnknownCalls(tx, environmentId, every)).items, filter, limit);
}

/** The same of a server. */
async function listThere(remote: Remote, filter: CallFilter, limit: number): Promise<RecentCallView[]> {
  const { relay, outcome, code, sinceMs = null } = filter;
  const query = { relay, outcome, code, since: toIsoOrNull(sinceMs) };
  const { items } = await listRemote<RecentCallView>(remote, "/calls", query, limit);
  if (!takesUnknown(filter)) return items;
  const unknown = await listRemote<UnknownCallView>(remote, "/unknown-calls", {}, MAX_UNKNOWN_NAMES);
  return mix(items, unknown.items, filter, limit);
}

function takesUnknown({ outcome, code }: CallFilter): boolean {
  return (outcome ?? "refused") === "refused" && (code ?? UNKNOWN) === UNKNOWN;
}

function mix(
  items: readonly RecentCallView[],
  names: readonly UnknownCallView[],
  { relay, sinceMs = Number.NEGATIVE_INFINITY }: CallFilter,
  limit: number,
): RecentCallView[] {
  const unknown = names
    .filter(({ name, at }) => (relay === undefined || relay === name) && Date.parse(at) >= sinceMs)
    .map(({ id, name, at, firstAt, cause, source, count }): RecentCallView => {
      const why = { outcome: "refused", code: UNKNOWN, cause } as const;
      return { id, at, firstAt, relay: name, ...why, source, eventId: null, count };
    });
  return [...items, ...unknown]
    .sort((one, other) => (one.at < other.at ? 1 : one.at > other.at ? -1 : 0))
    .slice(0, limit);
}

const CALL_HEADINGS = ["AT", "ANSWER", "RELAY", "TIMES", "FROM", "ID", "CAUSE"] as const;

/** The call under CALL_HEADINGS. */
function callRow(call: RecentCallView): string[] {
  const { at, relay, count, source, id, cause } = call;
  return [at, answerOf(call), relay, String(count), source, id, cause];
}

/** `401 bad_signature`, `200 ignored`. */
function answerOf({ outcome, code }: RecentCallView): string {
  return outcome === "refused" ? `${explainCode(code)?.status ?? ""} ${code}`.trim() : `200 ${outcome}`;
}

function writeCall(call: RecentCallView): string {
  const { id, at, firstAt, relay, outcome, code, cause, source, eventId, count } = call;
  const meaning = outcome === "refused" ? explainCode(code) : null;
  const facts: Readonly<Record<string, string | null>> = {
    relay,
    at,
    from: source,
    times: count > 1 ? `${count}, the first at ${firstAt}, the last one then` : null,
    cause,
    means: meaning?.when ?? null,
    do: meaning?.todo ?? null,
    event: eventId === null ? null : `${eventId}, see relay events show ${eventId}`,
  };
  const lines = Object.entries(facts).flatMap(([name, words]) =>
    words === null ? [] : [`  ${name.padEnd(8)}  ${plain(words)}`],
  );
  return [`${id}  ${answerOf(call)}`, ...lines].join("\n");
}
