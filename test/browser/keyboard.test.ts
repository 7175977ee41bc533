import { afterAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { sendSigned } from "../kit/browser-sender.ts";

const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const ids: string[] = [];

async function makeRelay(name: string): Promise<string> {
  const definition = {
    name,
    trigger: {
      kind: "receiver",
      verify: { scheme: "hooks" },
      map: { event_id: "id", person_email: "email" },
    },
    actions: [{ type: "grant_credits", amount: 1 }],
  };
  return (await running.api("POST", "/relays", { definition }, "local")).body.receiverSecret;
}

const focused = (): Promise<string> => page.evaluate(() => document.activeElement?.textContent?.slice(0, 60) ?? "");

test("setup: two relays and three events", async () => {
  const secret = await makeRelay("alpha");
  await makeRelay("beta");
  for (const id of ["one", "two", "three"]) {
    const sent = await sendSigned(running, "alpha", secret, id, `{"id":"${id}","email":"${id}@example.com"}`);
    ids.unshift(sent.body.eventId);
  }
  await running.drain();
  await page.goto(at("relays"));
  await page.getByRole("link", { name: "beta" }).waitFor();
});

test("j, k and the arrows move through the rows, and the focus is visible", async () => {
  // The relay without requests is first.
  await page.keyboard.press("j");
  expect(await focused()).toBe("beta");
  await page.keyboard.press("ArrowDown");
  expect(await focused()).toBe("alpha");
  await page.keyboard.press("k");
  expect(await focused()).toBe("beta");
  await page.keyboard.press("j");
  const row = page.locator("tr", { hasText: "alpha" }).locator("td").first();
  expect(await row.evaluate((cell) => getComputedStyle(cell).boxShadow)).not.toBe("none");
});

test("Enter opens a row, and Escape goes back", async () => {
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "alpha" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("heading", { name: "Relays" }).waitFor();
});

test("/ searches, the search is in the address, and after Escape the keys are shortcuts again", async () => {
  await page.keyboard.press("/");
  await page.keyboard.type("jbe");
  await page.keyboard.press("Home");
  await page.keyboard.press("Delete");
  await page.waitForURL(/\?q=be$/);
  expect(await page.locator("[data-row]").allInnerTexts()).toEqual(["beta"]);
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  expect(await focused()).toBe("beta");
});

test("g and a letter open a page, and the events' filters are in the address and survive a reload", async () => {
  await page.keyboard.press("g");
  await page.keyboard.press("e");
  await page.getByRole("heading", { name: "Events" }).waitFor();
  await page.getByLabel("Relay", { exact: true }).selectOption("beta");
  await page.waitForURL(/relay=beta/);
  await page.getByRole("heading", { name: "No event matches" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "No event matches" }).waitFor();
  await page.getByLabel("Relay", { exact: true }).selectOption("alpha");
  await page.getByRole("group", { name: "State" }).getByRole("button", { name: /^Done/ }).click();
  await page.getByLabel("Find text or an event id").fill("two@");
  await page.waitForURL(/q=two/);
  await page.waitForFunction(() => document.querySelectorAll("main [data-row]").length === 1);
  expect(await page.locator("main [data-row]").getAttribute("href")).toEndWith(String(ids[1]));
});

test("older events are paged by cursor and stay while the newest refresh", async () => {
  const path = "**/api/**/events?**";
  let isCut = true;
  await page.route(path, async (route) => {
    if (!isCut) return await route.fallback();
    const url = new URL(route.request().url());
    url.searchParams.set("limit", "2");
    await route.continue({ url: url.href });
  });
  await page.goto(at("events?relay=alpha"));
  await page.getByRole("button", { name: "Older" }).click();
  await page.getByText("No more events").waitFor();
  expect(await page.locator("main [data-row]").count()).toBe(3);
  await page.waitForResponse((response) => response.url().includes("limit=2"));
  expect(await page.locator("main [data-row]").count()).toBe(3);
  isCut = false;
});

test("? shows the shortcuts, and Escape closes them and returns the focus", async () => {
  await page.keyboard.press("j");
  const before = await focused();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await focused()).toBe(before);
});

test("the theme follows the system until a choice, and the choice persists", async () => {
  const ground = (): Promise<string> => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  await page.emulateMedia({ colorScheme: "light" });
  const light = await ground();
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await ground();
  expect(dark).not.toBe(light);
  await page.getByRole("button", { name: "Light" }).click();
  expect(await ground()).toBe(light);
  await page.reload();
  await page.getByRole("heading", { name: "Events" }).waitFor();
  expect(await ground()).toBe(light);
  await page.getByRole("button", { name: "System" }).click();
});

test("a narrow screen needs no sideways scrolling", async () => {
  await page.setViewportSize({ width: 390, height: 844 });
  for (const path of ["relays", "relays/alpha", "events", `events/${ids[0]}`, "settings?tab=keys", "relays/new"]) {
    await page.goto(at(path));
    await page.locator("main :is(table, .editor, .facts, .empty, .templates)").first().waitFor();
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect([path, width <= 390]).toEqual([path, true]);
  }
  await page.getByRole("button", { name: "Pages" }).click();
  await page.getByRole("link", { name: "Mail" }).click();
  await page.getByRole("heading", { name: "No mail yet" }).waitFor();
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
