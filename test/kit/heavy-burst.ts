/** Calls whose work comes after their responses: capture of record changes, and the runs of many large events. */
import { TOKEN } from "./worst-body.ts";
import { type Ask, E } from "./worst-call.ts";
import type { Caller } from "./worst-caller.ts";

export interface HeavyBurst {
  name: string;
  relays: readonly string[];
  actions: unknown[];
  trigger: object;
  /** Lists the calls of a try. Their ids differ for each try. */
  listAsks(turn: number): Ask[];
}

const LOOKS = 2_400;
const LOOK_EVERY_MS = 50;

const writeTen = (template: string): unknown[] => {
  const data = { json: Object.fromEntries(Array.from({ length: 180 }, (_, at) => [`field${at}`, template])) };
  return Array.from({ length: 10 }, () => ({ type: "write_record", collection: "heavy", data }));
};
const eventOf = (turn: number, at: number): string =>
  JSON.stringify({ id: `${turn} ${at}`, wide: Array.from({ length: 2_500 }, () => "0123456789") });

export const HEAVY_BURSTS: readonly HeavyBurst[] = [
  {
    name: "40 large events whose relay writes much from each",
    relays: ["heavy"],
    actions: writeTen("{{event.wide}}"),
    trigger: { kind: "receiver", verify: { scheme: "shared_token", header: "x-token" }, map: { event_id: "id" } },
    listAsks: (turn) => Array.from({ length: 40 }, (_, at) => ({ method: "POST", path: "/hooks/shop/heavy", body: eventOf(turn, at) })),
  },
  {
    name: "8 changes of large records that three relays watch",
    relays: ["heavy1", "heavy2", "heavy3"],
    actions: writeTen("{{record.data.json}}"),
    trigger: { kind: "data_change", collection: "watched", on: ["created", "updated"] },
    listAsks: () =>
      Array.from({ length: 8 }, () => ({
        method: "POST",
        path: `${E}/collections/watched/records`,
        body: { data: { json: Array.from({ length: 15_000 }, () => 123456789), text: "x".repeat(50_000) } },
      })),
  },
];

async function must(ask: Caller, asked: Ask): Promise<string> {
  const { isExpected, status, text } = await ask(asked);
  if (!isExpected) throw new Error(`${asked.method ?? "GET"} ${asked.path} got status ${status}: ${text.slice(0, 500)}`);
  return text;
}

/** Creates the collection that all bursts write to. */
export async function createHeavyCollection(ask: Caller): Promise<void> {
  const body = { name: "heavy", kind: "shared", fields: { json: { type: "json" } } };
  await must(ask, { method: "POST", path: `${E}/collections`, body });
}

/** Creates the relays of a burst. */
export async function createHeavyRelays(ask: Caller, { relays, actions, trigger }: HeavyBurst): Promise<void> {
  for (const name of relays) {
    const secret = name === "heavy" ? { secret: TOKEN } : {};
    await must(ask, { method: "POST", path: `${E}/relays`, body: { definition: { name, trigger, actions }, ...secret } });
  }
}

/** Makes the calls of a try and waits until their events have run. */
export async function runBurst(ask: Caller, burst: HeavyBurst, turn: number): Promise<void> {
  for (const asked of burst.listAsks(turn)) await must(ask, asked);
  for (const relay of burst.relays) await untilRun(ask, relay);
}

async function untilRun(ask: Caller, relay: string): Promise<void> {
  const list = async (query: string): Promise<{ attempts: number }[]> =>
    JSON.parse(await must(ask, { path: `${E}/events?relay=${relay}&limit=1${query}` })).items;
  for (let looks = 0; looks < LOOKS; looks++) {
    const [newest] = await list("");
    if (newest !== undefined && newest.attempts > 0 && (await list("&state=queued")).length === 0) return;
    await Bun.sleep(LOOK_EVERY_MS);
  }
  throw new Error(`The events of ${relay} did not run.`);
}
