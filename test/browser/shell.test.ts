/** The frame around the rooms: a page whose code comes later, and what is told when it does not. */
import { afterAll, expect, test } from "bun:test";
import { cutOff, openDashboard } from "../kit/browser.ts";

const dashboard = await openDashboard();
const { page, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

test("the rooms stand in groups, and each has its letter", async () => {
  await page.goto(at("relays"));
  const rooms = page.getByRole("navigation", { name: "Rooms" });
  await rooms.getByRole("list", { name: "What happens" }).getByRole("link", { name: "Events" }).waitFor();
  await rooms.getByRole("list", { name: "Look after" }).getByRole("link", { name: "Attention" }).waitFor();
});

test("a page whose code cannot be loaded says so, and loads again", async () => {
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
  // The page itself, which says what it has nothing to do with here.
  await page.getByText("Local development reads the files of its own service directory and takes no sync").waitFor();
  expect(complaints.splice(0).every((said) => said.includes("net::ERR_FAILED"))).toBe(true);
});

test("nothing of all this was refused by the page's policy or broke in its console", () => {
  expect(complaints).toEqual([]);
});
