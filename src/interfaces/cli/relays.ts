/**
 * `relay relays …`: how each relay stands, and one of them in full: what it waits for, what its last calls came to and what would keep an
 * event from acting, and where its calls stopped. Pausing and resuming. A running service takes up by itself what is changed here.
 */

import { type Clock, toIsoOrNull } from "../../base/clock.ts";
import { writeJson } from "../../base/json.ts";
import { listRecentRequests } from "../../engine/receiver/request.ts";
import { findManyRemembered } from "../../engine/receiver/signature-memory.ts";
import { recordDue, recordDueTicks, recordMissedTicks } from "../../engine/schedule/schedule.ts";
import type { AttentionContext } from "../../insight/overview/attention.ts";
import { showFunnel } from "../../insight/overview/funnel.ts";
import { addHealth } from "../../insight/overview/health.ts";
import { COMMAND_LINE } from "../../platform/account/api-key.ts";
import type { Environment } from "../../platform/account/environment.ts";
import { listOpenProblemsOfTarget } from "../../platform/audit/problem.ts";
import { checkDefinition, warnOwnHost } from "../../rules/relay/definition.ts";
import { relayTarget, requireRelay } from "../../rules/relay/relay.ts";
import { listReferenceWarnings } from "../../rules/relay/relay-problem.ts";
import { makeCatalogLookup } from "../../rules/relay/relay-reference.ts";
import { pauseRelay, resumeRelay } from "../../rules/relay/relay-save.ts";
import { listRelays, showRelay } from "../../rules/relay/relay-view.ts";
import { readPage } from "../../store/index-scan.ts";
import type { Store } from "../../store/port.ts";
import type { Command, Input } from "./command.ts";
import { JSON_OUTPUT, openSealerHere, readRunningUrl } from "./data-directory.ts";
import type { World } from "./io.ts";
import { LIMIT, readLimit } from "./listing.ts";
import { listThere, readFunnelThere, readStoryThere, setStateThere } from "./relay-remote.ts";
import {
  type ListedRelay,
  MAX_SHOWN_CALLS,
  type RelayStory,
  sayCounts,
  stateOf,
  toneOfHealth,
  toneOfState,
  writeFunnel,
  writeStory,
} from "./relay-text.ts";
import { BASE_URL, DEFAULT_PORT, readBaseUrl, readDataDir } from "./service-option.ts";
import { ANYWHERE, atPlace, sayFoundSoon } from "./target.ts";
import { sayList, saySheet } from "./terminal.ts";

const DEFAULT_LIMIT = 50;
/** Calls that became no event, of one relay that is shown. */
const LAST_CALLS = { limit: MAX_SHOWN_CALLS, after: null };
export const NAME = {
  name: "name",
  help: "the relay's name, as relay relays list shows it",
  of: "relay",
} as const;
export const OF_RELAY = [JSON_OUTPUT, BASE_URL, ...ANYWHERE];

export function contextOf(input: Input, world: World, environment: Environment) {
  const url = readBaseUrl(input) ?? readRunningUrl(readDataDir(input, world));
  const baseUrl = url ?? `http://127.0.0.1:${DEFAULT_PORT}`;
  const { clock } = world;
  return { environment, actor: COMMAND_LINE, nowMs: clock.now(), baseUrl, clock, recordDue };
}

/** Whether the server has a backup is no relay's. */
function needsHere(environment: Environment, clock: Clock): AttentionContext {
  return { environment, server: { dataDir: "", backupEveryMs: null, backsUp: false }, clock };
}

export const relaysList: Command = {
  words: ["relays", "list"],
  summary: "list relays: how each is, and its last 24 hours",
  details: "State, health, last event, the last 24 hours, next tick, problems.",
  options: [{ ...LIMIT, otherwise: String(DEFAULT_LIMIT) }, ...OF_RELAY],
  examples: ["relay relays list", "relay relays list --environment production --json"],
  async run(input, world) {
    const limit = readLimit(input, DEFAULT_LIMIT);
    const { held, items, next } = await atPlace(input, world, {
      here: (store, environment) => listHere(store, contextOf(input, world, environment), limit),
      there: (remote) => listThere(remote, limit),
    });
    const listed = { items, of: null, isCut: next !== null, wantsCount: false };
    await sayList(input, world, listed, {
      columns: [
        { heading: "NAME", value: (one) => one.name, cut: 16, keep: 1 },
        { heading: "STATE", value: (one) => stateOf(one, held), tone: toneOfState, keep: 4 },
        { heading: "HEALTH", value: (one) => one.health.word, tone: toneOfHealth, cut: 10, keep: 2 },
        { heading: "TRIGGER", value: (one) => one.triggerInWords, cut: 12, keep: 7 },
        { heading: "LAST EVENT", value: (one) => one.lastEventAt ?? "never", keep: 3 },
        { heading: "LAST 24 H", value: (one) => sayCounts(one.last24h), cut: 10, keep: 5 },
        { heading: "NEXT TICK", value: (one) => one.nextTick?.at ?? "", keep: 8 },
        {
          heading: "PROBLEMS",
          value: (one) => one.problems.map(({ code }) => code).join(", "),
          tone: () => "bad",
          cut: 14,
          keep: 6,
        },
      ],
      none: "No relays yet: relay init writes a first one for local development, and the dashboard makes them from templates.",
    });
  },
};

async function listHere(store: Store, context: ReturnType<typeof contextOf>, limit: number) {
  const { environment } = context;
  const page = await readPage(store, { limit, after: null }, (tx, part) => listRelays(tx, context, part));
  const judged = await addHealth(store, needsHere(environment, context.clock), page.items);
  const items = await store.read(async (tx) => {
    const shown: ListedRelay[] = [];
    for (const item of judged) {
      const rows = await listOpenProblemsOfTarget(tx, environment.id, relayTarget(item.name));
      shown.push({ ...item, problems: rows.map(({ code, message }) => ({ code, message })) });
    }
    return shown;
  });
  return { held: environment.heldAt !== null, items, next: page.next };
}

export const relaysShow: Command = {
  words: ["relays", "show"],
  summary: "one relay: how it is, and what it waits for",
  details: "How it stands, what it waits for, its last calls, and what keeps it from acting.",
  arguments: [NAME],
  options: OF_RELAY,
  examples: ["relay relays show checkout-completed"],
  async run(input, world) {
    const story = await atPlace<RelayStory>(input, world, {
      here: async (store, environment) => {
        const sealer = await openSealerHere(store, input, world).catch(() => undefined);
        const context = { ...contextOf(input, world, environment), ...(sealer && { sealer }) };
        return await readTimeline(store, context, input.first());
      },
      there: (remote) => readStoryThere(remote, input.first()),
    });
    if (input.on("json")) return world.say(writeJson(story, 2));
    await saySheet(input, world, writeStory(story));
  },
};

async function readTimeline(store: Store, context: ReturnType<typeof contextOf>, name: string) {
  const { environment, nowMs, baseUrl, clock } = context;
  const story = await store.read(async (tx) => {
    const row = await requireRelay(tx, environment.id, name);
    const checked = checkDefinition(row.definition, nowMs);
    const { items: calls } = await listRecentRequests(tx, environment.id, { relay: name }, LAST_CALLS);
    const warnings = [
      ...("problems" in checked ? [] : checked.warnings),
      ...warnOwnHost(row.definition, baseUrl),
      ...(await listReferenceWarnings(makeCatalogLookup(tx, environment.id), row.definition)),
    ];
    const remembered = await findManyRemembered(tx, { environmentId: environment.id, relayName: name });
    return { relay: await showRelay(tx, context, row), remembered, warnings, calls };
  });
  const [judged] = await addHealth(store, needsHere(environment, clock), [story.relay], true);
  if (judged === undefined) throw new Error("A relay was not judged.");
  const { relay, ...beside } = story;
  return { relay, health: judged.health, heldAt: toIsoOrNull(environment.heldAt), ...beside };
}

export const relaysFunnel: Command = {
  words: ["relays", "funnel"],
  summary: "why nothing happened: where its calls stopped",
  details: "How far a relay's calls of 24 hours came, and what stopped the others.",
  arguments: [NAME],
  options: OF_RELAY,
  examples: ["relay relays funnel checkout-completed"],
  async run(input, world) {
    const name = input.first();
    const { funnel } = await atPlace(input, world, {
      here: async (store, environment) => {
        const relay = await store.read((tx) => requireRelay(tx, environment.id, name));
        const context = { environmentId: environment.id, clock: world.clock };
        return { funnel: await showFunnel(store, context, relay) };
      },
      there: (remote) => readFunnelThere(remote, name),
    });
    if (input.on("json")) return world.say(writeJson(funnel, 2));
    await saySheet(input, world, writeFunnel(funnel));
  },
};

export const relaysPause: Command = {
  words: ["relays", "pause"],
  summary: "pause a relay: what arrives waits",
  details: "What arrives is recorded and waits; ticks are not recorded.",
  arguments: [NAME],
  options: OF_RELAY,
  examples: ["relay relays pause checkout-completed"],
  run: (input, world) => setState(input, world, "paused"),
};

export const relaysResume: Command = {
  words: ["relays", "resume"],
  summary: "resume a relay: what waited runs in order",
  arguments: [NAME],
  options: OF_RELAY,
  examples: ["relay relays resume checkout-completed"],
  run: (input, world) => setState(input, world, "resumed"),
};

async function setState(input: Input, world: World, to: "paused" | "resumed"): Promise<void> {
  const { relay, held, foundSoon } = await atPlace(input, world, {
    writes: true,
    here: async (store, environment) => {
      const context = contextOf(input, world, environment);
      const name = input.first();
      const settling = { environmentId: environment.id, name, nowMs: context.nowMs };
      if (to === "paused") await recordMissedTicks(store, settling);
      const relay = await store.write("dashboard", async (tx) => {
        if (to === "resumed") return await resumeRelay(tx, context, name);
        await recordDueTicks(tx, settling);
        return await pauseRelay(tx, context, name);
      });
      // A pause holds as soon as it is stored; a server looks once a second for what it may run again.
      const foundSoon = to === "resumed" ? sayFoundSoon(input, world) : "";
      return { relay, held: environment.heldAt !== null, foundSoon };
    },
    there: async (remote) => ({ ...(await setStateThere(remote, input.first(), to)), foundSoon: "" }),
  });
  if (input.on("json")) world.say(writeJson({ relay }, 2));
  const { waiting } = relay.last24h;
  const next =
    to === "paused"
      ? `what arrives waits until relay relays resume ${relay.name}.`
      : held
        ? "the environment is on hold, so nothing runs until relay settings set held off."
        : waiting === 0
          ? "nothing of the last 24 hours waits."
          : `what waits (${waiting} of the last 24 hours) runs now, in order.`;
  world.tell(`${relay.name} is ${to}: ${next}${foundSoon}`);
}
