/** Tests pages of deleted items: each says so and links to its list, because a retry cannot help. */
import { afterAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";

const dashboard = await openDashboard();
const { page, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const GONE: [what: string, path: string, list: string, heading: string][] = [
  ["a relay", "relays/deleted", "Relays", "Relays"],
  ["a person", "people/per_00000000000000000000000000000000", "People", "People"],
  ["an event", "events/evt_00000000000000000000000000000000", "Events", "Events"],
  ["a collection", "collections/dropped", "Records", "Records"],
  ["a record", "collections/dropped/rec_00000000000000000000000000000000", "dropped", "dropped"],
];
test.each(GONE)("%s that was deleted links back to its list", async (_, path, list, heading) => {
  await page.goto(at(path));
  const alert = page.locator("main").getByRole("alert");
  await alert.waitFor();
  expect(await alert.getByRole("button", { name: "Try again" }).count()).toBe(0);
  await alert.getByRole("heading", { name: "Not found" }).waitFor();
  await alert.getByRole("link", { name: `Back to ${list}` }).click();
  await page.getByRole("heading", { name: heading, exact: true, level: 1 }).waitFor();
});

test("a missing approval links to the dashboard, and a person in a missing environment links to People", async () => {
  await page.goto(`${new URL(at("home")).origin}/approvals/apr_00000000000000000000000000000000`);
  const alert = page.getByRole("alert");
  await alert.getByRole("heading", { name: "Not found" }).waitFor();
  expect(await alert.getByRole("button", { name: "Try again" }).count()).toBe(0);
  expect(await alert.getByRole("link", { name: "Back to the dashboard" }).getAttribute("href")).toBe("/");
  await page.route("**/persons?find=**", (route) => route.fulfill({ status: 404, body: JSON.stringify({ code: "not_found", message: "No app." }) }));
  await page.goto(at("people/ann@example.com"));
  await alert.getByRole("link", { name: "Back to People" }).waitFor();
  await page.unroute("**/persons?find=**");
});

test("other errors of the service and a proxy's 404 still offer a retry", async () => {
  for (const [status, body] of [
    [503, JSON.stringify({ code: "unavailable", message: "The database cannot be used now." })],
    [404, "<h1>Not Found</h1>"],
  ] as const) {
    await page.route("**/api/apps/**/relays/another", (route) => route.fulfill({ status, body }));
    await page.goto(at("relays/another"));
    await page.locator("main").getByRole("button", { name: "Try again" }).waitFor();
    await page.unroute("**/api/apps/**/relays/another");
  }
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
