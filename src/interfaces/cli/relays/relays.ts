/**
 * Lists relays, shows one in full, and pauses or resumes it (`relay relays …`). The full view has the trigger, the latest requests and what
 * would prevent a run. The funnel shows where requests stopped. A running service picks up the changes.
 */

import { writeJson } from "../../../base/json.ts";
import { HEALTH_STATES } from "../../../insight/overview/health.ts";
import { RELAY_SORTS } from "../../../insight/overview/relay-list.ts";
import { formatPickupDelay, withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import { openWebPage, WEB } from "../api/web-page.ts";
import type { Command, Input } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { BASE_URL } from "../service-option.ts";
import { LIMIT, readLimit } from "../terminal/listing.ts";
import { printList, printSheet } from "../terminal/terminal.ts";
import {
  listRelays,
  readRelay,
  readRelayChecklist,
  readRelayFunnel,
  readRelayStory,
  setRelayState,
} from "./request.ts";
import {
  formatCounts,
  stateOf,
  toneOfHealth,
  toneOfState,
  writeChecklist,
  writeFunnel,
  writeStory,
} from "./text.ts";

const DEFAULT_LIMIT = 50;
export const NAME = {
  name: "name",
  help: "the name, as relay relays list shows it",
  of: "relay",
} as const;
export const OF_RELAY = [JSON_OUTPUT, BASE_URL, ...ANYWHERE];

export const relaysList: Command = {
  words: ["relays", "list"],
  summary: "list relays with health and the last 24 hours",
  details:
    "The list has state, health, trigger, last event, event counts of the last 24 hours, next tick and problems. The relays in trouble come first, then those with the most events.",
  options: [
    {
      name: "sort",
      value: "<order>",
      otherwise: "trouble",
      help: "trouble, traffic (most events of 24 hours first), name or newest",
      of: RELAY_SORTS,
    },
    { name: "state", value: "<health>", help: HEALTH_STATES.join(", "), of: HEALTH_STATES },
    { name: "search", value: "<text>", help: "only relays with this text in the name or trigger" },
    { ...LIMIT, otherwise: String(DEFAULT_LIMIT) },
    ...OF_RELAY,
  ],
  examples: [
    "relay relays list",
    "relay relays list --state failing --sort traffic --search order",
    "relay relays list --environment production --json",
  ],
  async run(input, io) {
    const limit = readLimit(input, DEFAULT_LIMIT);
    const query = {
      sort: input.choice("sort", RELAY_SORTS),
      state: input.choice("state", HEALTH_STATES),
      search: input.text("search"),
    };
    const isFiltered = query.state !== null || query.search !== null;
    const { held, items, next } = await withApi("read", input, io, (api) => listRelays(api, query, limit));
    const listed = { items, of: null, isCut: next !== null, wantsCount: false };
    await printList(input, io, listed, {
      columns: [
        { heading: "NAME", value: (one) => one.name },
        { heading: "STATE", value: (one) => stateOf(one, held), tone: toneOfState },
        { heading: "HEALTH", value: (one) => one.health.word, tone: toneOfHealth },
        { heading: "TRIGGER", value: (one) => one.triggerInWords },
        { heading: "LAST EVENT", value: (one) => one.lastEventAt ?? "never" },
        { heading: "LAST 24 H", value: (one) => formatCounts(one.last24h) },
        { heading: "NEXT TICK", value: (one) => one.nextTick?.at ?? "" },
        {
          heading: "PROBLEMS",
          value: (one) => one.problems.map(({ code }) => code).join(", "),
          tone: () => "bad",
        },
      ],
      none: isFiltered
        ? "No relays match."
        : "There are no relays yet. relay init writes a first one for local development. The dashboard creates relays from templates.",
    });
  },
};

export const relaysShow: Command = {
  words: ["relays", "show"],
  summary: "show one relay: health, queue, last 24 hours",
  details:
    "The page has the health of the relay, what it waits for, and its latest rejected, ignored and duplicate requests. It also lists the problems that prevent a run.",
  arguments: [NAME],
  options: [WEB, ...OF_RELAY],
  examples: ["relay relays show checkout-completed", "relay relays show checkout-completed --web"],
  async run(input, io) {
    const name = input.first();
    if (input.on("web"))
      return await openWebPage(input, io, async (api) => ({
        path: ["relays", (await readRelay(api, name)).relay.name],
      }));
    const story = await withApi("read", input, io, (api) => readRelayStory(api, name));
    if (input.on("json")) return io.print(writeJson(story, 2));
    await printSheet(input, io, writeStory(story));
  },
};

export const relaysFunnel: Command = {
  words: ["relays", "funnel"],
  summary: "show where a relay's requests stopped, and why",
  details:
    "Use this to find out why nothing happened. It counts the requests of the last 24 hours at each step, and names what stopped the others.",
  arguments: [NAME],
  options: OF_RELAY,
  examples: ["relay relays funnel checkout-completed"],
  async run(input, io) {
    const name = input.first();
    const { funnel } = await withApi("read", input, io, (api) => readRelayFunnel(api, name));
    if (input.on("json")) return io.print(writeJson(funnel, 2));
    await printSheet(input, io, writeFunnel(funnel));
  },
};

export const relaysChecklist: Command = {
  words: ["relays", "checklist"],
  summary: "show the steps until a relay works live",
  details:
    "The list has the receiver URL, the event types, the secret, the first verified request and the first real event that is done. A step is done when Relay sees its result. A test event marks no step as done.\nExit codes:\n  0: every step is done\n  1: refused or failed\n  3: a step is left",
  arguments: [NAME],
  options: OF_RELAY,
  examples: [
    "relay relays checklist checkout-completed",
    "relay relays checklist checkout-completed --environment production --json",
  ],
  async run(input, io) {
    const name = input.first();
    const { checklist } = await withApi("read", input, io, (api) => readRelayChecklist(api, name));
    if (input.on("json")) io.print(writeJson(checklist, 2));
    else await printSheet(input, io, writeChecklist(checklist));
    // Without the profile, a command acts on the data directory of this folder.
    if (checklist.left > 0 && input.given("profile"))
      io.inform(`Add --profile ${input.text("profile")} to each command above.`);
    return checklist.left === 0 ? 0 : 3;
  },
};

export const relaysPause: Command = {
  words: ["relays", "pause"],
  summary: "pause a relay: new events wait",
  details:
    "Relay stores new events, and they wait until relay relays resume. Ticks of a schedule are not stored.",
  arguments: [NAME],
  options: OF_RELAY,
  examples: ["relay relays pause checkout-completed"],
  run: (input, io) => setState(input, io, "paused"),
};

export const relaysResume: Command = {
  words: ["relays", "resume"],
  summary: "resume a relay: waiting events run in order",
  arguments: [NAME],
  options: OF_RELAY,
  examples: ["relay relays resume checkout-completed"],
  run: (input, io) => setState(input, io, "resumed"),
};

async function setState(input: Input, io: Io, to: "paused" | "resumed"): Promise<void> {
  const { relay, held, foundSoon } = await withApi("write", input, io, async (api) => ({
    ...(await setRelayState(api, input.first(), to)),
    // A pause takes effect at once.
    foundSoon: to === "paused" ? "" : formatPickupDelay(api, input, io),
  }));
  if (input.on("json")) io.print(writeJson({ relay }, 2));
  const { waiting } = relay.last24h;
  const next =
    to === "paused"
      ? `new events wait until relay relays resume ${relay.name}.`
      : held
        ? "the environment is on hold, so nothing runs until relay settings set held off."
        : waiting === 0
          ? "no event of the last 24 hours waits."
          : `the waiting events (${waiting} in the last 24 hours) run now, in order.`;
  io.inform(`${relay.name} is ${to}: ${next}${foundSoon}`);
}
