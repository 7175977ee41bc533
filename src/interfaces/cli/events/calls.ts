/**
 * Lists the requests that created no event (`relay requests …`), each with its cause. The list includes requests to unknown receivers. The
 * commands show one request with advice, or print each new one. A running service writes them within a second.
 */
import { toIsoOrNull } from "../../../base/clock.ts";
import { findMeaning, listParts } from "../../../base/code/code.ts";
import { writeJson } from "../../../base/json.ts";
import { MAX_RECENT_CALLS } from "../../../base/limit.ts";
import { MAX_PAGE_SIZE } from "../../../base/page.ts";
import { plain } from "../../../base/text.ts";
import {
  REQUEST_OUTCOMES,
  type RecentRequestView,
  type RequestFilter,
} from "../../../engine/receiver/request.ts";
import { MAX_UNKNOWN_NAMES, type UnknownRequestView } from "../../../engine/receiver/unknown-request.ts";
import type { Api } from "../api/api.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import { openWebPage, WEB } from "../api/web-page.ts";
import { type Command, CommandFailure, type Input, type Option } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { expandId } from "../terminal/id-suffix.ts";
import { LIMIT, readLimit, readTime, SINCE } from "../terminal/listing.ts";
import { toneOf } from "../terminal/screen.ts";
import type { Column } from "../terminal/table.ts";
import { follow } from "../terminal/tail.ts";
import { printList, printSheet } from "../terminal/terminal.ts";

/** The size of one page of the API. */
const MAX_TAILED = MAX_PAGE_SIZE;

/** The refusal code of a request to an unknown receiver. */
const UNKNOWN = "unknown_receiver";

const CALL_FILTERS: readonly Option[] = [
  { name: "relay", value: "<name>", help: "only requests to this relay name", of: "relay" },
  { name: "outcome", value: "<outcome>", help: REQUEST_OUTCOMES.join(", "), of: REQUEST_OUTCOMES },
  { name: "code", value: "<code>", help: "only requests rejected with this code, such as bad_signature" },
  SINCE,
];

/** Throws UsageError. */
function readCallFilter(input: Input, io: Io): RequestFilter {
  return {
    relay: input.text("relay") ?? undefined,
    outcome: input.choice("outcome", REQUEST_OUTCOMES) ?? undefined,
    code: input.text("code") ?? undefined,
    sinceMs: readTime(input, "since", io),
  };
}

export const requestsList: Command = {
  words: ["requests", "list"],
  aliases: [["calls", "list"]],
  summary: "list requests that created no event",
  details:
    "The list has rejected requests, requests that a relay's when ignored, duplicates, answered handshakes, and requests to unknown receivers. Each has its cause. Newest first. Relay keeps the last 1,000 for 30 days.",
  options: [...CALL_FILTERS, LIMIT, JSON_OUTPUT, ...ANYWHERE],
  examples: [
    "relay requests list --relay checkout-completed",
    "relay requests list --outcome refused --json",
  ],
  async run(input, io) {
    const limit = readLimit(input);
    const filter = readCallFilter(input, io);
    // The retained requests are few, so the command counts all of them.
    const counts = io.screen.columns !== null && !input.on("json");
    const most = counts ? MAX_RECENT_CALLS + MAX_UNKNOWN_NAMES : limit + 1;
    const calls = await withApi("read", input, io, (api) => listCalls(api, filter, most));
    const isCut = calls.length > limit;
    const of = isCut && counts ? { total: calls.length, atLeast: false } : null;
    const listed = { items: calls.slice(0, limit), of, isCut, wantsCount: false };
    await printList(input, io, listed, { columns: CALL_COLUMNS, none: "No requests match." });
  },
};

async function readCall(api: Api, text: string): Promise<RecentRequestView> {
  const calls = await listCalls(api, {}, MAX_RECENT_CALLS);
  const id = await expandId(text, "requests", async () => ({ items: calls, next: null }));
  const call = calls.find((one) => one.id === id);
  if (call !== undefined) return call;
  throw new CommandFailure(
    "not_found",
    `There is no request ${JSON.stringify(id)} in this environment: relay requests list shows the latest ones.`,
  );
}

/** Returns the page that lists the request with those of the same relay and cause, because a request has no page. */
function findPage({ relay, outcome, code }: RecentRequestView) {
  return { path: ["requests"], query: outcome === "refused" ? { relay, code } : { relay, outcome } };
}

export const requestsShow: Command = {
  words: ["requests", "show"],
  aliases: [["calls", "show"]],
  summary: "show one request without an event: cause, fix",
  arguments: [{ name: "request id", help: "the id (or its ending) as relay requests list shows it" }],
  options: [WEB, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay requests show u1"],
  async run(input, io) {
    const read = (api: Api): Promise<RecentRequestView> => readCall(api, input.first());
    if (input.on("web")) return await openWebPage(input, io, async (api) => findPage(await read(api)));
    const call = await withApi("read", input, io, read);
    if (input.on("json")) return io.print(writeJson({ call }, 2));
    await printSheet(input, io, writeCall(call));
  },
};

export const requestsTail: Command = {
  words: ["requests", "tail"],
  aliases: [["calls", "tail"]],
  summary: "print each new request that creates no event",
  details: "The command runs until you stop it.",
  options: [...CALL_FILTERS, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay requests tail --relay checkout-completed"],
  async run(input, io) {
    const filter = readCallFilter(input, io);
    await withApi("read", input, io, (api) => {
      // A data directory is read every half second without a request, so one read can include every stored request.
      const most = api.isLocal ? MAX_RECENT_CALLS : MAX_TAILED;
      const read = () => listCalls(api, filter, most);
      return follow(api, input, io, { ...TAIL, read });
    });
  },
};

/** Returns the key that identifies a row. All requests to one unknown name share a row, and the row's count grows. */
function keyOf({ id, count }: RecentRequestView): string {
  return `${id} ${count}`;
}

/** Lists recent requests, including those to unknown receivers, newest first. */
async function listCalls(api: Api, filter: RequestFilter, limit: number): Promise<RecentRequestView[]> {
  const { relay, outcome, code, sinceMs = null } = filter;
  const query = { relay, outcome, code, since: toIsoOrNull(sinceMs) };
  const { items } = await api.list<RecentRequestView>("/calls", query, limit);
  if (!takesUnknown(filter)) return items;
  const unknown = await api.list<UnknownRequestView>("/unknown-calls", {}, MAX_UNKNOWN_NAMES);
  return mix(items, unknown.items, filter, limit);
}

function takesUnknown({ outcome, code }: RequestFilter): boolean {
  return (outcome ?? "refused") === "refused" && (code ?? UNKNOWN) === UNKNOWN;
}

function mix(
  items: readonly RecentRequestView[],
  names: readonly UnknownRequestView[],
  { relay, sinceMs = Number.NEGATIVE_INFINITY }: RequestFilter,
  limit: number,
): RecentRequestView[] {
  const unknown = names
    .filter(({ name, at }) => (relay === undefined || relay === name) && Date.parse(at) >= sinceMs)
    .map(({ id, name, at, firstAt, cause, source, count }): RecentRequestView => {
      const why = { outcome: "refused", code: UNKNOWN, cause } as const;
      return {
        id,
        at,
        firstAt,
        relay: name,
        ...why,
        source,
        eventId: null,
        event: null,
        claimed: null,
        count,
      };
    });
  return [...items, ...unknown]
    .sort((one, other) => (one.at < other.at ? 1 : one.at > other.at ? -1 : 0))
    .slice(0, limit);
}

const CALL_COLUMNS: readonly Column<RecentRequestView>[] = [
  { heading: "AT", value: ({ at }) => at },
  { heading: "ANSWER", value: answerOf, tone: ({ outcome }) => toneOf(outcome) },
  { heading: "RELAY", value: ({ relay }) => relay },
  { heading: "TIMES", value: ({ count }) => String(count), right: true },
  { heading: "EVENT", value: formatEvent },
  { heading: "FROM", value: ({ source }) => source, raw: true },
  { heading: "ID", value: ({ id }) => id },
  { heading: "CAUSE", value: ({ cause }) => cause, wrap: true, raw: true },
];

/** Formats what a rejected request claims, or the first event of a duplicate, such as `order.paid evt_… done`. A server of an earlier version sends only its id. */
function formatEvent({ eventId, event, claimed }: RecentRequestView): string {
  if (claimed != null)
    return `${plain([claimed.type, claimed.id].filter((word) => word !== null).join(" "))} (not verified)`;
  if (event == null) return eventId ?? "";
  return [event.eventType, event.id, event.state].filter((word) => word !== null).join(" ");
}

/** Formats the answer, such as `401 bad_signature` or `200 ignored`. */
function answerOf({ outcome, code }: RecentRequestView): string {
  return outcome === "refused"
    ? `${findMeaning(code, ["refusal"])?.status ?? ""} ${code}`.trim()
    : `200 ${outcome}`;
}

const TAIL = { columns: CALL_COLUMNS, keyOf, waiting: "Waiting for requests that create no event" };

function writeCall(call: RecentRequestView): string[] {
  const { id, at, firstAt, relay, code, cause, source, eventId, count } = call;
  const meaning = findMeaning(code, ["refusal", "request"]);
  const parts = meaning === null ? [] : listParts(meaning);
  const facts: Readonly<Record<string, string | null>> = {
    relay,
    at,
    from: source,
    times: count > 1 ? `${count}, the first at ${firstAt}, the last at the time above` : null,
    cause,
    ...Object.fromEntries(parts.map(({ label, text }) => [label, text])),
    event:
      eventId === null ? formatEvent(call) || null : `${formatEvent(call)}, see relay events show ${eventId}`,
  };
  const width = Math.max(...Object.keys(facts).map((name) => name.length));
  const lines = Object.entries(facts).flatMap(([name, words]) =>
    words === null ? [] : [`  ${name.padEnd(width)}  ${plain(words)}`],
  );
  return [`${id}  ${answerOf(call)}`, ...lines];
}
