/** Tests the frame around the pages: a page whose code loads later, and the message if it does not load. */
import { afterAll, expect, test } from "bun:test";
import { cutOff, openDashboard } from "../kit/browser.ts";

const dashboard = await openDashboard();
const { page, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

test("the pages are in groups, and each has its letter", async () => {
  await page.goto(at("relays"));
  const rooms = page.getByRole("navigation", { name: "Rooms" });
  await rooms.getByRole("list", { name: "What happens" }).getByRole("link", { name: "Events" }).waitFor();
  await rooms.getByRole("list", { name: "Look after" }).getByRole("link", { name: "Attention" }).waitFor();
});

test("a page whose code fails to load says so, and loads again", async () => {
  await page.goto(at("relays"));
  await page.getByRole("heading", { name: "Relays", exact: true }).waitFor();
  const mend = await cutOff(page, /\.js$/);
  await page.evaluate(() => {
    const link = document.body.appendChild(document.createElement("a"));
    link.href = `${location.pathname}/to/production`;
    link.click();
    link.remove();
  });
  await page.getByText("This page could not be loaded: the service cannot be reached, or it was updated since.").waitFor();
  await page.getByRole("heading", { name: "Promote to production" }).waitFor();
  mend();
  await page.getByRole("button", { name: "Load again" }).click();
  // The page has loaded, because its own message is visible.
  await page.getByText("Local development reads the files of its own service directory and takes no sync").waitFor();
  expect(complaints.splice(0).every((said) => said.includes("net::ERR_FAILED"))).toBe(true);
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
