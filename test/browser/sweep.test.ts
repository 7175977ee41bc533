/**
 * Checks every page of the navigation, its first item, and the tabs of both. axe must find no barrier in the dark and narrow view, and in the soak
 * also in the light and wide view. No page may be wider than 360 px or move under reduced motion, and the focus must follow navigation.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { findBarriers } from "../kit/axe.ts";
import { openDashboard } from "../kit/browser.ts";
import { putEvents, WRITE } from "../kit/event-flow.ts";
import { HOOK_SECRET, receiverDefinition } from "../kit/relay-definition.ts";
import { rounds } from "../kit/rounds.ts";

const dashboard = await openDashboard({ environments: ["local"] });
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

/** Lists paths below the environment's address. */
let pages: string[] = [];

async function open(path: string): Promise<void> {
  await page.goto(at(path));
  await page.locator("main h1").first().waitFor();
  // The content has loaded, or the page says that it is empty.
  await page.waitForFunction(() => document.querySelector("main [aria-busy]") === null);
}

/**
 * Follows a link on the shown page, so that the page's code and axe stay loaded, which saves time. Waits until nothing loads and no element comes or
 * goes. It polls by a timer, because a browser that draws no frame also calls no animation frame.
 */
async function follow(path: string): Promise<void> {
  const href = at(path);
  await page.evaluate((to) => {
    const link = document.body.appendChild(document.createElement("a"));
    link.href = to;
    link.click();
    link.remove();
  }, href);
  const steady = await page.evaluateHandle(() => ({ elements: 0, polls: 0 }));
  await page.waitForFunction(
    ([last, to]) => {
      const elements = document.querySelectorAll("main *").length;
      const isThere = location.href === to && document.querySelector("main h1") !== null && document.querySelector("main [aria-busy]") === null;
      last.polls = isThere && elements === last.elements ? last.polls + 1 : 0;
      last.elements = elements;
      return last.polls === 6;
    },
    [steady, href] as const,
    { polling: 20 },
  );
  await steady.dispose();
}

async function hrefs(selector: string): Promise<string[]> {
  const found = await page.locator(selector).evaluateAll((links) => links.map((link) => link.getAttribute("href") ?? ""));
  const { pathname } = new URL(at(""));
  return found.filter((href) => href.startsWith(pathname)).map((href) => href.slice(pathname.length));
}

beforeAll(async () => {
  const api = async (method: string, path: string, body?: object) => {
    const { status } = await running.api(method, path, body, "local");
    if (status >= 300) throw new Error(`${method} ${path} answered ${status}`);
  };
  const map = { event_id: "id", person_email: "email" };
  const definition = receiverDefinition({ map, actions: [{ ...WRITE, collection: "invoices" }] });
  await api("POST", "/relays", { definition, secret: HOOK_SECRET });
  await putEvents(running, ["one", "two"], { nowMs: systemClock.now(), email: "carol@example.com" });
  await running.drain();
  await running.hook("orders", { headers: {}, body: "{}" });
  await running.hook("ordesr", { headers: {}, body: "{}" });
  await api("POST", "/collections", { name: "invoices", kind: "shared", fields: { order: { type: "text" } } });
  await api("POST", "/collections/invoices/records", { data: { order: "1" } });
  await api("PUT", "/access/pro", {});
  await api("POST", "/persons", { email: "dave@example.com" });
  await open("home");
  const navigation = await hrefs("nav[aria-label=Pages] a");
  const rows: string[] = [];
  const tabs: string[] = [];
  const openWithTabs = async (path: string) => {
    await open(path);
    tabs.push(...(await hrefs(`main nav a, main a[href*="tab="]`)));
  };
  for (const path of navigation) {
    await openWithTabs(path);
    rows.push(...(await hrefs("main [data-row]")).slice(0, 1));
  }
  for (const path of ["relays/new", ...rows]) await openWithTabs(path);
  pages = [...new Set([...navigation, "relays/new", ...rows, ...tabs])];
});

const SCREENS = [
  { colorScheme: "dark", width: 390 },
  { colorScheme: "light", width: 1280 },
].slice(0, rounds({ slice: 1, soak: 2 })) as { colorScheme: "light" | "dark"; width: number }[];

test("no page has a barrier in any view, is wider than 360 px, or has a button smaller than 24 px", async () => {
  const found: string[] = [];
  await open("home");
  for (const path of pages) {
    await follow(path);
    for (const { colorScheme, width } of SCREENS) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.setViewportSize({ width, height: 860 });
      for (const barrier of await findBarriers(page)) found.push(`${path} ${colorScheme} ${barrier}`);
    }
    await page.setViewportSize({ width: 360, height: 780 });
    found.push(...(await measure()).map((words) => `${path} ${words}`));
  }
  expect(found).toEqual([]);
});

/** Lists elements that are too wide or too small on the page. */
function measure(): Promise<string[]> {
  return page.evaluate(() => {
    const { scrollWidth } = document.documentElement;
    const wide = [...document.querySelectorAll<HTMLElement>("main *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1);
    const small = [...document.querySelectorAll<HTMLElement>("button, select, input, summary")].filter((one) => {
      const { width, height } = (one.closest("label") ?? one).getBoundingClientRect();
      const isSeen = one.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !one.matches(".off-screen, .link");
      return isSeen && width > 0 && Math.min(width, height) < 23.5;
    });
    const name = (one: HTMLElement): string => `${one.tagName.toLowerCase()}.${one.className} ${one.textContent?.trim().slice(0, 30)}`;
    return [
      ...(scrollWidth > innerWidth ? [`wide: ${scrollWidth} by ${wide.slice(0, 3).map(name).join(", ")}`] : []),
      ...small.slice(0, 4).map((one) => `small: ${name(one)}`),
    ];
  });
}

test("navigation moves the focus into the page, and nothing moves under reduced motion", async () => {
  await page.setViewportSize({ width: 1280, height: 860 });
  await page.emulateMedia({ reducedMotion: "reduce" });
  await open("relays");
  const links = page.getByRole("navigation", { name: "Pages" }).getByRole("link");
  for (let nth = 0; nth < (await links.count()); nth++) {
    await links.nth(nth).focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement?.closest("main") !== null);
    expect(await page.evaluate(() => document.getAnimations().length)).toBe(0);
  }
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
