/**
 * What the dashboard asks of a service with a full shop's store: every call of each room's first screen and every filter, each with what it took
 * of the main thread, how long it was waited for, and the longest stretch in which the loop did not turn; then the first screens in a browser.
 */
import { join } from "node:path";
import { DAY_MS, HOUR_MS } from "../../src/ground/limit.ts";
import { type Figure, median } from "./figure.ts";
import { scratch } from "./process.ts";
import { measureScreens, type Shop } from "./screen.ts";
import { BUSY, rowId } from "./shop-fill.ts";
import type { ShopReady } from "./shop-service.ts";

const TRIES = 7;
const STRETCH_TRIES = 4;
const MOST_CPU_MS = 100;
const MOST_STRETCH_MS = 25;

async function openShop(folder: string, rows: number): Promise<Shop> {
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dir, "shop-service.ts"), folder, String(rows)],
    {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
    },
  );
  const lines = readLines(child.stdout);
  const ready = JSON.parse(await lines()) as ShopReady;
  const base = `${ready.url}/api/apps/shop/production`;
  return {
    ready,
    async ask(path) {
      const begun = performance.now();
      const answer = await fetch(path.startsWith("/api/") ? ready.url + path : base + path, {
        headers: path.startsWith("/api/")
          ? { cookie: `relay_session=${ready.session}` }
          : { authorization: `Bearer ${ready.key}` },
      });
      const text = await answer.text();
      return { status: answer.status, text, ms: performance.now() - begun };
    },
    async tell(word) {
      child.stdin.write(`${word}\n`);
      await child.stdin.flush();
      return Number(await lines());
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await child.exited;
    },
  };
}

function readLines(stream: ReadableStream<Uint8Array>): () => Promise<string> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let text = "";
  return async () => {
    while (!text.includes("\n")) {
      const { value, done } = await reader.read();
      if (done) throw new Error("the service ended");
      text += decoder.decode(value, { stream: true });
    }
    const end = text.indexOf("\n");
    const line = text.slice(0, end);
    text = text.slice(end + 1);
    return line;
  };
}

/** By room, what its first screen and its filters ask; `event`: of one that died. */
function listCalls(event: string): [room: string, path: string][] {
  const since = (ms: number): string => `since=${new Date(Date.now() - ms).toISOString()}`;
  const filters = [
    "",
    ...["queued", "running", "done", "failed", "dead"].map((state) => `state=${state}`),
    "relay=orders-paid",
    "relay=signups&state=dead",
    "relay=refunds&state=queued",
    "relay=nightly",
    "trigger=receiver",
    "trigger=schedule",
    "trigger=data_change&state=failed",
    `person=${BUSY}`,
    `person=${BUSY}&state=dead`,
    `person=${rowId("per", 777)}`,
    "q=cs_live_0000beef",
    "q=nowhere",
    "q=order",
    "mapped=order:cs_live_00",
    "mapped=order:nowhere",
    since(HOUR_MS),
    since(DAY_MS),
    `${since(20 * DAY_MS)}&until=${new Date(Date.now() - 15 * DAY_MS).toISOString()}`,
    `${since(7 * DAY_MS)}&relay=signups&trigger=receiver&state=done`,
  ];
  const events = (path: string): [string, string][] =>
    filters.map((filter) => ["Events", `/events${path}?${filter}`]);
  const ranges: [string, string][] = [HOUR_MS, DAY_MS, 7 * DAY_MS, 30 * DAY_MS].map((ms) => [
    "Home",
    `/events/histogram?${since(ms)}`,
  ]);
  const of = (room: string, ...paths: string[]): [string, string][] => paths.map((path) => [room, path]);
  return [
    ...of("Home", "/overview", "/api/overview"),
    ...ranges,
    ...ranges.map(([room, path]): [string, string] => [
      room,
      path.replace("/events/histogram", "/url-times"),
    ]),
    ...events(""),
    ...events("/counts").filter(([, path]) => !path.includes("state=")),
    ...events("/histogram"),
    ...of("Event", `/events/${event}`, `/events/${event}/cause`, `/events/${event}/replay`),
    ...of(
      "Relay",
      "/relays",
      "/relays/signups",
      ...Object.keys({ signups: 1, "orders-paid": 1, shipping: 1, refunds: 1 }).map(
        (name) => `/relays/${name}/funnel`,
      ),
    ),
    ...of(
      "Relay",
      "/relays/signups/versions",
      "/events?relay=signups&limit=5",
      "/calls?relay=orders-paid&limit=5",
    ),
    ...of(
      "People",
      "/persons",
      "/persons?q=customer7",
      "/persons?q=nobody",
      "/persons?status=invited",
      "/persons?status=suspended",
      "/persons?access=true",
      "/persons?access=false",
    ),
    ...of(
      "People",
      "/persons?find=customer77",
      "/persons?find=customer199999%40mail.example",
      "/persons?find=store-token-77",
      "/persons?find=nobody",
    ),
    ...[BUSY, rowId("per", 777)].flatMap((id) =>
      of(
        "Person",
        `/persons/${id}`,
        `/persons/${id}/story`,
        `/purchases?person=${id}`,
        `/events?person=${id}&state=dead`,
        `/events?person=${id}&state=failed`,
      ),
    ),
    ...of(
      "Person",
      "/events?q=customer777%40mail.example&state=failed",
      "/persons?email=customer777%40mail.example",
    ),
    ...of(
      "Records",
      "/collections",
      "/collections/orders/records",
      `/collections/notes/records?owner=${BUSY}`,
      `/collections/tickets/records?to=${BUSY}`,
    ),
    ...of("Calls", "/calls", "/calls?outcome=refused", "/calls?relay=orders-paid", "/unknown-calls"),
    ...of(
      "Audit",
      "/audit",
      "/audit?kind=change",
      "/audit?kind=run",
      "/audit?actor=owner:ann@example.com",
      "/audit?action=record.updated",
      "/audit?target=relay:signups",
      "/audit?actor=nobody",
    ),
    ...of("Attention", "/problems", "/problems?all=true", "/alerts", "/alerts?open=true"),
    ...of("Selling", "/products", "/plans", "/access", "/purchases", "/subscriptions", "/catalog-uses"),
    ...of("Mail", "/emails", "/emails?state=failed", "/mail/stops"),
    ...of("Palette", "/find?q=cust", "/find?q=customer777%40mail.example", `/find?q=${event}`, "/find?q=zzz"),
    ...of("Settings", "/settings", "/keys", "/bulk-replays", "/approvals"),
  ];
}

export async function measureDashboard(
  folder: string | null,
  rows: number,
  options: { browser: boolean },
): Promise<Figure[]> {
  using own = folder === null ? scratch() : null;
  console.error(`filling a shop's store with ${rows} events`);
  await using shop = await openShop(folder ?? own?.path ?? "", rows);
  const { items } = JSON.parse((await shop.ask("/events?state=dead&limit=1")).text) as {
    items: { id: string }[];
  };
  const event = items[0]?.id ?? "";
  const figures: Figure[] = [];
  for (const [room, path] of listCalls(event)) figures.push(...(await measureCall(shop, room, path)));
  if (options.browser) figures.push(...(await measureScreens(shop, event)));
  return figures;
}

async function measureCall(shop: Shop, room: string, path: string): Promise<Figure[]> {
  const first = await shop.ask(path);
  // A range that the overview has not, a list that is named otherwise.
  if (first.status !== 200)
    return [{ name: `${room}  ${path}`, value: `answers ${first.status}`, met: false, goal: "200" }];
  const [cpus, walls]: [number[], number[]] = [[], []];
  for (let round = 0; round < TRIES; round++) {
    const before = await shop.tell("cpu");
    walls.push((await shop.ask(path)).ms);
    cpus.push((await shop.tell("cpu")) - before);
  }
  const stretches: number[] = [];
  for (let round = 0; round < STRETCH_TRIES; round++) {
    await shop.tell("watch");
    await shop.ask(path);
    stretches.push(await shop.tell("worst"));
  }
  const [cpu, stretch] = [median(cpus), Math.min(...stretches)];
  const shown = path
    .replace(/=20\d\d-[^&]*/g, "=…")
    .replace(/(evt|per)_0*([0-9a-f]{0,4})[0-9a-f-]*/g, "$1_$2…");
  return [
    {
      name: `${room}  ${shown}`,
      value: `${cpu.toFixed(1)} ms`,
      limit: `wall ${median(walls).toFixed(0)}, first ${first.ms.toFixed(0)} ms`,
      ratio: `stretch ${stretch.toFixed(1)} ms`,
      goal: `≤ ${MOST_CPU_MS}, stretch ≤ ${MOST_STRETCH_MS}`,
      met: cpu <= MOST_CPU_MS && stretch <= MOST_STRETCH_MS,
    },
  ];
}
