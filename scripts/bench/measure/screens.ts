/**
 * Measures the dashboard in a browser on a full shop's store. It times the first screens from navigation to painted content. It also measures
 * what an open page costs the page and the service while a thousand events a second arrive.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium, type Page } from "playwright-core";
import { BROWSER_ARGS, findBrowser } from "../../../test/kit/browser-program.ts";
import { readSlowness } from "../calibration.ts";
import { compareCount, compareWithBar, type Figure, median } from "../figure.ts";
import { LeftOut, type Measure, type Run } from "../measure.ts";
import { load } from "../process.ts";
import { findDeadEvent, openShop, type Shop } from "../shop.ts";
import { BUSY } from "../shop-fill.ts";

const TRIES = 7;
const SCREEN_BAR_MS = 500;
const TASK_BAR_MS = 100;
const SOON_BAR_MS = 2_500;
const LIVE_SECONDS = 15;
const RATE = 1_000;
/** Largest share of the service's main thread that an open page may take, because it is lost for receiving events. */
const MOST_SHARE = 0.05;
const HIDDEN_MS = 5_000;

/** Each first screen with the selector of its content. */
const SCREENS = (event: string): [name: string, path: string, content: string][] => [
  ["Home", "", "main .figures .figure"],
  ["Events", "events", "main [data-row]"],
  ["Event", `events/${event}`, "main .json[role=group]"],
  ["Person", `people/${BUSY}`, "main .story-line"],
  ["Relay", "relays/signups", "main .column-main"],
];

export const screens: Measure = {
  name: "screens",
  what: "the dashboard in a browser: first screens, and pages that stay open under load",
  // The browser needs more processes than there are processors.
  pinned: false,
  async measure(run) {
    await using stack = new AsyncDisposableStack();
    const program = await findBrowser();
    if (!program.ok) throw new LeftOut(`no browser: ${program.why}`);
    const shop = stack.use(await openShop(run));
    const context = await openBrowser(stack, shop, program.browser);
    const at = `${shop.ready.url}/apps/shop/production/`;
    const event = await findDeadEvent(shop);
    const figures: Figure[] = [];
    for (const [name, path, content] of SCREENS(event))
      figures.push(await measureScreen(shop, context, { name, url: at + path, content }, run));
    return [...figures, ...(await measureLive(shop, context, at, run))];
  },
};

type FoundBrowser = Extract<Awaited<ReturnType<typeof findBrowser>>, { ok: true }>["browser"];

async function openBrowser(
  stack: AsyncDisposableStack,
  { ready }: Shop,
  browser: FoundBrowser,
): Promise<BrowserContext> {
  const profile = mkdtempSync(join(tmpdir(), "relay-bench-browser-"));
  stack.defer(() => rmSync(profile, { recursive: true, force: true, maxRetries: 3 }));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: browser.path,
    headless: true,
    args: BROWSER_ARGS,
    env: { ...process.env, ...browser.env } as Record<string, string>,
    viewport: { width: 1280, height: 860 },
  });
  stack.defer(() => context.close());
  await context.addCookies([
    { name: "relay_session", value: ready.session, url: ready.url, httpOnly: true, sameSite: "Strict" },
  ]);
  return context;
}

interface Seen {
  paintedMs: number | null;
  longestMs: number;
  tasks: number;
}

declare global {
  var seen: Seen;
}

/** Runs in the page. Records when the content was first painted and how long the longest task was. */
function watchPage(content: string): void {
  const seen: Seen = { paintedMs: null, longestMs: 0, tasks: 0 };
  globalThis.seen = seen;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) {
      seen.tasks++;
      seen.longestMs = Math.max(seen.longestMs, duration);
    }
  }).observe({ type: "longtask" });
  const look = (): void => {
    if (document.querySelector(content) === null) requestAnimationFrame(look);
    // The content is painted when the next frame begins.
    else
      requestAnimationFrame(() => {
        seen.paintedMs = performance.now();
      });
  };
  requestAnimationFrame(look);
}

const seenIn = (page: Page): Promise<Seen> => page.evaluate(() => globalThis.seen);

async function paintedMs(page: Page): Promise<number> {
  for (;;) {
    const { paintedMs } = await seenIn(page);
    if (paintedMs !== null) return paintedMs;
    await page.waitForTimeout(20);
  }
}

async function measureScreen(
  shop: Shop,
  context: BrowserContext,
  { name, url, content }: { name: string; url: string; content: string },
  { tiny }: Run,
): Promise<Figure> {
  const [painted, services, slowness]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round <= (tiny ? 1 : TRIES); round++) {
    const page = await context.newPage();
    await page.addInitScript(watchPage, content);
    const before = await shop.tell("cpu");
    await page.goto(url);
    await page.waitForSelector(content);
    const ms = await paintedMs(page);
    // The first round fills the browser's cache.
    if (round > 0) {
      painted.push(ms);
      services.push((await shop.tell("cpu")) - before);
      slowness.push(readSlowness().wall);
    }
    await page.close();
  }
  const what = `first screen of ${name}, painted (service CPU ${median(services).toFixed(0)} ms)`;
  return compareWithBar(what, median(painted), SCREEN_BAR_MS, median(slowness));
}

/** Measures a page that stays open while events arrive, and the service without and with it. */
async function measureLive(
  shop: Shop,
  context: BrowserContext,
  at: string,
  { tiny }: Run,
): Promise<Figure[]> {
  const port = Number(new URL(shop.ready.url).port);
  const seconds = tiny ? 0.5 : LIVE_SECONDS;
  const send = async () => {
    const before = await shop.tell("cpu");
    const options = { seconds, connections: 16, rate: RATE };
    const { perSecond } = await load(port, ["/hooks/shop/newsletter"], shop.ready.secret, options);
    return { perSecond, cpuMs: ((await shop.tell("cpu")) - before) / seconds };
  };
  const without = await send();
  const figures: Figure[] = [];
  for (const [name, path, content] of SCREENS("").slice(0, 2)) {
    const page = await context.newPage();
    await page.addInitScript(watchPage, content);
    await page.goto(at + path);
    await page.waitForSelector(content);
    await page.evaluate(() => {
      globalThis.seen.longestMs = 0;
    });
    const during = await send();
    const { longestMs } = await seenIn(page);
    const slowness = readSlowness();
    const share = (during.cpuMs - without.cpuMs) / 1_000;
    figures.push(
      compareWithBar(
        `longest task of the open page ${name}, ${RATE} events a second`,
        longestMs,
        TASK_BAR_MS,
        longestMs <= TASK_BAR_MS ? 1 : slowness.wall,
      ),
      {
        what: `service's main thread for the open page ${name}`,
        value: `${(100 * share).toFixed(1)} %`,
        limit: `events stored without the page: ${without.perSecond}/s, with it: ${during.perSecond}/s`,
        goal: `≤ ${(100 * MOST_SHARE * slowness.cpu).toFixed(1)} %`,
        met: share <= MOST_SHARE * slowness.cpu,
      },
      compareCount(`requests of the page ${name} while it is hidden`, await askedHidden(page, tiny), 0),
    );
    if (name === "Events") figures.push(await measureSoon(shop, page, tiny));
    await page.close();
  }
  return figures;
}

/** Measures the time from a webhook's arrival to its row on the open list of events. Returns the best of several tries. */
async function measureSoon(shop: Shop, page: Page, tiny: boolean): Promise<Figure> {
  const port = Number(new URL(shop.ready.url).port);
  const newest = page.locator("main [data-row]").first();
  const took: number[] = [];
  const slowness: number[] = [];
  await page.reload();
  await newest.waitFor();
  for (let turn = 0; turn < (tiny ? 1 : TRIES); turn++) {
    const before = await newest.getAttribute("href");
    slowness.push(readSlowness().wall);
    const begunMs = performance.now();
    await load(port, ["/hooks/shop/newsletter"], shop.ready.secret, {
      seconds: 60,
      connections: 1,
      limit: 1,
    });
    await page.waitForFunction(
      (href) => document.querySelector("main [data-row]")?.getAttribute("href") !== href,
      before,
    );
    took.push(performance.now() - begunMs);
  }
  const what = "from a webhook's arrival to its row on the open list of events";
  return compareWithBar(what, Math.min(...took), SOON_BAR_MS, median(slowness));
}

/** Counts the requests of a hidden page. A headless page is never covered, so a script marks it as hidden. */
async function askedHidden(page: Page, tiny: boolean): Promise<number> {
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { get: () => true });
    Object.defineProperty(document, "visibilityState", { get: () => "hidden" });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await page.waitForTimeout(1_000);
  let asked = 0;
  page.on("request", () => {
    asked += 1;
  });
  await page.waitForTimeout(tiny ? 100 : HIDDEN_MS);
  return asked;
}
