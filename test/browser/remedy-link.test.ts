/** Tests that the page of a stopped relay or event states the cause correctly hours later, and links to its remedy. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Locator } from "playwright-core";
import { HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { type DashboardVisit, openDashboardVisit } from "../kit/dashboard-visit.ts";
import { HOOK_SECRET, receiverDefinition, signedCall } from "../kit/relay-definition.ts";

const CALLS = { type: "call_url", url: "https://shop.example.com/" };
const GRANTS = { type: "grant_credits", amount: 1 };
let visit: DashboardVisit;
afterAll(() => visit[Symbol.asyncDispose]());

const made = async (path: string, body?: unknown) => {
  const { status, body: answer } = await visit.api("POST", path, body);
  if (status >= 300) throw new Error(`${path}: ${status} ${JSON.stringify(answer)}`);
};
const relay = (name: string, map: Record<string, string>, action: { type: string }) =>
  made("/relays", { definition: receiverDefinition({ name, map, actions: [action] }), secret: HOOK_SECRET });
const hook = (name: string, event: object, secret = HOOK_SECRET) => visit.running.hook(name, signedCall(event, secret));

beforeAll(async () => {
  visit = await openDashboardVisit(5 * HOUR_MS, { mailer: { send: async () => ({ kind: "sent" }) } });
  await made("/collections", { name: "orders", kind: "shared", fields: { order: "text" } });
  await relay("refused", { event_id: "id" }, CALLS);
  await relay("rotated", { event_id: "id" }, { type: "write_record", collection: "orders", data: { order: "1" } } as { type: string });
  await hook("rotated", { id: "1" });
  await relay("paused", { event_id: "id" }, CALLS);
  await relay("mails", { event_id: "id", person_email: "email" }, { type: "email_person", subject: "Hi", text: "Hello" } as { type: string });
  await relay("nobody", { event_id: "id", person_id: "user" }, GRANTS);
  await relay("empties", { event_id: "id", order: "none" }, { type: "write_record", collection: "orders", data: { order: "{{mapped.order}}" } } as {
    type: string;
  });
  await relay("misfits", { event_id: "id" }, { type: "write_record", collection: "orders", data: { unheard: "x" } } as { type: string });
  await hook("misfits", { id: "1" });
  const watches = { kind: "data_change", collection: "orders", on: ["created"] };
  await made("/relays", { definition: { name: "watches", trigger: watches, actions: [CALLS] } });
  await relay("homeless", { event_id: "id" }, { type: "write_record", collection: "nowhere", data: {} } as { type: string });
  await made("/relays", { definition: { name: "ticks", trigger: { kind: "schedule", every: "15m" }, actions: [CALLS] } });
  await made("/relays", { definition: { name: "quiet", trigger: { kind: "schedule", every: "15m" }, actions: [CALLS] } });
  await made("/relays/quiet/pause");
  await relay("typed", { event_id: "id", event_type: "type" }, GRANTS);
  await hook("typed", { id: "1", type: "customer.subscription.trial_will_end.for_everybody_of_the_team" });
  await hook("homeless", { id: "1" });
  await made("/relays/paused/pause");
  await hook("paused", { id: "1" });
  await hook("mails", { id: "1", email: "ada@example.com" });
  await hook("nobody", { id: "1", user: "per_00000000000000000000000000000000" });
  await hook("empties", { id: "1" });
  for (let nth = 0; nth < 8; nth++) {
    await hook("refused", { id: String(nth) }, "the-secret-of-somebody-else");
    await hook("rotated", { id: String(nth) }, "the-secret-of-somebody-else");
    await visit.clock.leap(5 * MINUTE_MS);
  }
  await visit.running.drain();
  await visit.signIn();
});

const main = () => visit.page.locator("main");
const text = async () => (await main().innerText()).replaceAll(/\s+/g, " ");
const openEvent = async (name: string): Promise<void> => {
  const [event] = (await visit.api("GET", `/events?relay=${name}`)).body.items;
  await visit.page.goto(visit.at(`events/${event.id}`));
  await visit.page.locator(".reason").waitFor();
};

test("Home counts the items like the navigation, with the server's items next to them", async () => {
  await visit.page.goto(visit.at("home"));
  const needs = visit.page.getByRole("region", { name: "Needs attention" });
  const said = await needs.getByText(/^\d+ items? in production, 1 of the server$/).innerText();
  await visit.page
    .getByRole("navigation", { name: "Pages" })
    .getByLabel(`${Number.parseInt(said, 10)} open`)
    .waitFor();
});

test("an old problem shows the present count, not that of its alert", async () => {
  await visit.page.goto(visit.at("relays/rotated"));
  const health = visit.page.getByRole("region", { name: "Health" });
  await health.getByText(/has rejected every request since .+\. One was rejected because .+ 8 requests were rejected since/).waitFor();
  expect(await text()).not.toContain("so far");
  await health.getByRole("link", { name: "Paste its secret…" }).click();
  await visit.page.getByRole("dialog").getByLabel("The secret the sender shows").waitFor();
  await visit.page.getByRole("button", { name: "Cancel" }).click();
  await visit.page.getByRole("region", { name: "Secrets" }).waitFor();
});

test("a sentence links to the page for a terminal's command, and the whole command is shown next to the buttons", async () => {
  await visit.page.goto(visit.at("relays/refused"));
  const health = visit.page.getByRole("region", { name: "Health" });
  const way = health.getByRole("link", { name: "Requests › refused" });
  expect(await way.getAttribute("href")).toEndWith("/requests?relay=refused");
  expect(await way.getAttribute("title")).toBe("On the command line: relay requests list");
  expect(await health.locator("p code.command").count()).toBe(0);
  await health.getByText("On the command line").click();
  await health.locator("code.command", { hasText: /^relay relays set-secret$/ }).waitFor();
});

test("a button on the same page is named as one", async () => {
  await visit.page.goto(visit.at("relays/paused"));
  await visit.page.getByText("Resume it with Resume on this page.").waitFor();
});

test("setup steps do not claim that both sides have the secret while every request is rejected", async () => {
  await visit.page.goto(visit.at("relays/refused"));
  const steps = visit.page.getByRole("region", { name: "Set it up" });
  await steps.getByRole("heading", { name: "Register the receiver URL at the sender (done)" }).waitFor();
  await steps.getByRole("heading", { name: "Paste the secret here", exact: true }).waitFor();
  await steps.getByText(/No request has verified yet. The last one was rejected because the signature does not match/).waitFor();
  expect(await steps.getByRole("link", { name: "Paste its secret…" }).getAttribute("href")).toEndWith("/relays/refused?tab=secrets&change=paste");
});

test("if every attempt fails, the relay's page and Home link to the remedy and the newest event", async () => {
  await visit.page.goto(visit.at("relays/mails"));
  const health = visit.page.getByRole("region", { name: "Health" });
  await health.getByRole("link", { name: "Open the newest" }).waitFor();
  expect(await health.getByRole("link", { name: "Set a sender domain" }).getAttribute("href")).toEndWith("/mail?tab=domain");
  expect(await health.getByRole("link", { name: "Show waiting events" }).getAttribute("href")).toEndWith(
    "/events?relay=mails&state=queued&reason=any",
  );
  await health.getByRole("link", { name: "Open the newest" }).click();
  await visit.page.locator(".reason").waitFor();
});

const WAYS: [relay: string, link: string, to: string][] = [
  ["paused", "Open paused to resume it", "/relays/paused"],
  ["mails", "Set a sender domain", "/mail?tab=domain"],
  ["nobody", "Edit the map…", "/relays/nobody?tab=definition"],
  ["misfits", "Edit the definition…", "/relays/misfits?tab=definition"],
  ["empties", "Open definition", "/relays/empties?tab=definition"],
];
test.each(WAYS)("the event of %s links to its remedy: %s", async (name, link, to) => {
  await openEvent(name);
  expect(await main().getByRole("link", { name: link }).getAttribute("href")).toEndWith(to);
});

test("the remedy comes before the replay, on the relay's and the event's page, also for a done event", async () => {
  await visit.page.goto(visit.at("relays/homeless"));
  const health = visit.page.getByRole("region", { name: "Health" });
  await health.getByText("Still exists.").waitFor();
  const ways = (of: Locator) => of.locator("a.button, button").allInnerTexts();
  const inOrder = ["Create collection nowhere…", "Replay its dead events…", "Open the newest", "Show all"];
  expect(await ways(health)).toEqual(inOrder);
  await openEvent("homeless");
  const reason = main().locator(".reason");
  await reason.getByText("There is still no collection nowhere.").waitFor();
  expect(await ways(reason)).toEqual(["Create collection nowhere…", "Replay"]);
  await openEvent("misfits");
  await reason.getByText("Open definition").or(reason.getByText("Edit the definition…")).waitFor();
  expect((await ways(reason)).slice(-2)).toEqual(["Edit the definition…", "Replay"]);
  expect(await visit.page.locator(".page-actions").getByRole("button", { name: "Replay" }).count()).toBe(0);
});

test("a pause links to waiting events only if some wait", async () => {
  await visit.page.goto(visit.at("relays/paused"));
  const health = visit.page.getByRole("region", { name: "Health" });
  await health.getByRole("link", { name: "Show waiting events (1)" }).click();
  await visit.page.waitForURL(/events\?relay=paused&state=queued$/);
  await visit.page.goto(visit.at("relays/quiet"));
  await health.getByText("its ticks are not recorded").waitFor();
  await visit.page.waitForLoadState("networkidle");
  expect(await health.getByRole("link", { name: "Show waiting events" }).count()).toBe(0);
});

test("without a pointer, a link's command is shown below it: for an alert and for an event", async () => {
  await visit.page.goto(visit.at("alerts?tab=alerts"));
  const alert = visit.page.getByRole("row", { name: /^homeless/ });
  await alert.getByText("On the command line").click();
  await alert.locator("code.command", { hasText: /^relay events show evt_/ }).waitFor();
  await openEvent("mails");
  const reason = main().locator(".reason");
  await reason.getByText("On the command line").click();
  await reason.locator("code.command", { hasText: /^relay domain set$/ }).waitFor();
});

test("a long event type breaks only after a dot or an underscore, never inside a word", async () => {
  await visit.page.setViewportSize({ width: 360, height: 780 });
  await visit.page.goto(visit.at("events?relay=typed"));
  const LONG = "customer.subscription.trial_will_end.for_everybody_of_the_team";
  const lines = (element: Element): string[] => {
    const range = document.createRange();
    const found: string[] = [];
    const walk = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    let top = Number.NaN;
    for (let node = walk.nextNode(); node !== null; node = walk.nextNode())
      for (let at = 0; at < (node.textContent ?? "").length; at++) {
        range.setStart(node, at);
        range.setEnd(node, at + 1);
        const box = range.getBoundingClientRect();
        if (Math.abs(box.top - top) > 4 || Number.isNaN(top)) found.push("");
        top = box.top;
        found.push((found.pop() ?? "") + (node.textContent ?? "").charAt(at));
      }
    return found;
  };
  for (const where of [main().locator(".event-type").first(), main().getByRole("heading", { level: 1 })]) {
    await where.getByText("customer").or(where).first().waitFor();
    const said = await where.evaluate(lines);
    expect(said.length).toBeGreaterThan(1);
    expect(said.join("")).toStartWith(LONG);
    for (const line of said.slice(0, -1)) expect(line).toMatch(/[._ ]$/);
    if (said.join("") === LONG) await openEvent("typed");
  }
  await visit.page.setViewportSize({ width: 1280, height: 800 });
});

test("the funnel shows the most frequent cause of waiting events, and links to them", async () => {
  await visit.page.goto(visit.at("relays/mails"));
  const stop = visit.page.getByRole("region", { name: "Last 24 hours" }).locator(".funnel-stop", { hasText: "1 waits here" });
  await stop.getByText("After sender_domain_required").waitFor();
  await stop.getByRole("link", { name: "Show: 1 that wait after sender_domain_required" }).click();
  await visit.page.locator(".event-preview").first().waitFor();
  expect(visit.page.url()).toMatch(/events\?relay=mails&state=queued&since=[^&]+&reason=sender_domain_required/);
  await visit.page.getByRole("button", { name: "Without failed with sender_domain_required" }).waitFor();
});

test("a record-change relay says which changes do not count, and never that nothing changed", async () => {
  await visit.page.goto(visit.at("relays/watches"));
  await main().getByText("No change that the relay watches for came since the relay was created at").waitFor();
  await main()
    .getByText(/what a relay writes starts no relay\.$/)
    .first()
    .waitFor();
  const [record] = (await visit.api("GET", "/collections/orders/records")).body.items;
  await visit.page.goto(visit.at(`records/orders/${record.id}`));
  await main().getByRole("heading", { name: "Data" }).waitFor();
  expect(await text()).not.toContain("starts");
  await visit.page.goto(visit.at("records/orders"));
  await main().getByText("A change here starts").waitFor();
});

test("a tick's row shows its time in the reader's zone, with the complete time in its attribute", async () => {
  await visit.page.goto(visit.at("events?relay=ticks"));
  const times = visit.page.locator(".event-preview time");
  expect(await times.first().innerText()).toMatch(/^\d\d:\d\d$/);
  expect(await times.first().getAttribute("datetime")).toMatch(/T\d\d:\d\d:00\.000Z$/);
  expect(await main().innerText()).not.toMatch(/since \d{4}-/);
});

test.each([768, 1000, 1001, 1100])(
  "next to the navigation at %s px, relays show names, the audit shows actions, and a person shows the address",
  async (width) => {
    await visit.page.setViewportSize({ width, height: 900 });
    const widthOf = async (path: string, what: string): Promise<number> => {
      await visit.page.goto(visit.at(path));
      return (await main().locator(what).first().boundingBox())?.width ?? 0;
    };
    const room = await widthOf("relays", ".page-head");
    for (const path of ["relays", "home"]) {
      expect(await widthOf(path, ".list .cell-main")).toBeGreaterThan(150);
      expect(await widthOf(path, ".list")).toBeLessThan(room + 1);
    }
    expect(await widthOf("audit", ".audit-what")).toBeGreaterThan(200);
    const [person] = (await visit.api("GET", "/persons")).body.items;
    await visit.page.goto(visit.at(`people/${person.id}`));
    const title = await main().locator("h1").boundingBox();
    expect(title?.height ?? 0).toBeLessThan(45);
    await visit.page.setViewportSize({ width: 1280, height: 900 });
  },
);

test("a version shows its author, and a limit's variable is visible on a phone too", async () => {
  await visit.page.goto(visit.at("relays/paused?tab=history"));
  await main().getByText("key test").waitFor();
  await visit.page.setViewportSize({ width: 360, height: 800 });
  await visit.page.goto(visit.at("settings?tab=limits"));
  const longest = main().getByText("RELAY_LIMIT_CLIENT_EVENTS_PER_PERSON_PER_MINUTE");
  await longest.waitFor();
  for (const width of [360, 1440]) {
    await visit.page.setViewportSize({ width, height: 800 });
    expect(await longest.evaluate((one) => one.getBoundingClientRect().right <= (one.closest("table")?.getBoundingClientRect().right ?? 0))).toBe(
      true,
    );
  }
});

test("a replay of events whose cause still exists warns that they would fail again", async () => {
  await visit.page.goto(visit.at("relays/homeless"));
  await visit.page.getByRole("button", { name: "Replay its dead events…" }).click();
  const dialog = visit.page.getByRole("dialog");
  await dialog.getByText("There is still no collection nowhere. Fix it first, or the events fail again.").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
});

test("the environment switch fits its problem text, and an unknown address has a heading", async () => {
  await visit.page.setViewportSize({ width: 1280, height: 800 });
  await visit.page.goto(visit.at("home"));
  await visit.page.locator(".place-now").click();
  await visit.page.locator(".menu .trouble").waitFor();
  expect(await visit.page.locator(".menu").evaluate((menu) => menu.scrollWidth - menu.clientWidth)).toBe(0);
  await visit.page.goto(visit.at("nowhere"));
  await visit.page.getByRole("heading", { level: 1, name: "Page not found" }).waitFor();
});

test("printed pages have no navigation and no buttons", async () => {
  await visit.page.goto(visit.at("events"));
  const navigation = visit.page.getByRole("navigation", { name: "Pages" });
  await navigation.waitFor();
  await visit.page.emulateMedia({ media: "print" });
  await navigation.waitFor({ state: "hidden" });
  await visit.page.emulateMedia({ media: null });
  await openEvent("mails");
  const way = main().getByRole("link", { name: "Set a sender domain" });
  await way.waitFor();
  const arrived = main().locator(".facts time").first();
  const exact = await arrived.getAttribute("title");
  await visit.page.emulateMedia({ media: "print" });
  await way.waitFor({ state: "hidden" });
  await visit.page.getByRole("button", { name: "Find anything" }).waitFor({ state: "hidden" });
  expect(await arrived.evaluate((one) => getComputedStyle(one, "::after").content)).toBe(`" (${exact})"`);
  await visit.page.emulateMedia({ media: null });
});

test("with forced colors, the selected item has its own outline", async () => {
  await visit.page.emulateMedia({ forcedColors: "active" });
  await visit.page.goto(visit.at("relays/mails"));
  const style = (what: string, name: "outlineStyle" | "borderBottomColor") =>
    visit.page.locator(what).evaluate((one, property) => getComputedStyle(one)[property], name);
  await main().getByRole("link", { name: "Definition" }).waitFor();
  expect(await style(".navigation a[aria-current]", "outlineStyle")).toBe("solid");
  expect(await style("a.tab[aria-current]", "borderBottomColor")).not.toBe(await style("a.tab:not([aria-current]) >> nth=0", "borderBottomColor"));
  await visit.page.emulateMedia({ forcedColors: null });
});

test("a slow service shows a waiting message, and a proxy's error is named as the proxy's", async () => {
  let answer = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    answer = resolve;
  });
  let isHeld = true;
  let isAway = false;
  await visit.page.route(/\/api\//, async (route) => {
    if (isHeld && route.request().url().endsWith("/api/session")) await held;
    const isOfApp = route.request().url().includes("/api/apps/");
    await (isAway && isOfApp ? route.fulfill({ status: 502, contentType: "text/html", body: "<p>Bad Gateway</p>" }) : route.fallback());
  });
  await visit.page.goto(visit.at("relays/mails"));
  await visit.page.getByRole("heading", { name: "Waiting for the service" }).waitFor();
  isAway = true;
  isHeld = false;
  answer();
  await main().getByText("A proxy answered 502 instead of the service").first().waitFor();
  isAway = false;
  await main().getByRole("heading", { level: 1, name: "mails" }).waitFor();
});

test("a hold is shown on every page, with a link to release it", async () => {
  const { settings } = (await visit.api("GET", "/settings")).body;
  await visit.api("PUT", "/settings", { version: settings.version, held: true });
  await visit.page.goto(visit.at("relays/mails"));
  await visit.page.getByRole("link", { name: "Release it in Settings" }).click();
  await visit.page.getByRole("button", { name: /^Release/ }).waitFor();
  await openEvent("mails");
  await main().getByRole("link", { name: "Release the hold…" }).waitFor();
});

test("a user who creates a missing item returns to the event, by keyboard only", async () => {
  await openEvent("homeless");
  const { page } = visit;
  const came = page.url();
  await main().getByRole("link", { name: "Create collection nowhere…" }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Who can read the records").focus();
  await page.keyboard.type("private");
  await dialog.getByLabel("Field name").focus();
  await page.keyboard.type("note");
  await page.keyboard.press("Enter");
  await page.waitForURL(came);
  await main().getByText("The collection is there since").waitFor();
});

test("the pages violate no content policy and log no error", () => {
  expect(visit.complaints).toEqual([]);
});
