/** Tests the pages of one-time links: the message before the form, and what happens to the token. */
import { afterAll, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { createOwner } from "../../src/platform/account/owner.ts";
import { createSigninLink, type SigninLinkKind } from "../../src/platform/account/session.ts";
import { cutOff, openDashboard } from "../kit/browser.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const dashboard = await openDashboard({ config: { mode: "server" }, environments: ["development"] });
const { page, running, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const PASSWORD = "a long enough password";
let ownerId = "";

async function makeLink(kind: SigninLinkKind, { service }: RunningService = running, nowMs = systemClock.now()): Promise<string> {
  const { store, url } = service;
  const owner = kind === "reset" ? ownerId : null;
  const { token } = await store.write("app", (tx) => createSigninLink(tx, { kind, ownerId: owner, nowMs }));
  return `${url}/${kind}#${token}`;
}

test("a new set-up link works in the tab of an ended one, which says so before the form, and no token stays in the address", async () => {
  await page.getByRole("heading", { name: "Set up this server" }).waitFor();
  const ended = await makeLink("setup");
  const fresh = await makeLink("setup");
  await page.goto(ended);
  await page.getByRole("heading", { name: "This link does not work any more" }).waitFor();
  expect(page.url()).toEndWith("/setup");
  expect(await page.getByLabel("Password").count()).toBe(0);
  await page.getByText("relay admin create").waitFor();
  await page.goto(fresh);
  await page.getByLabel("E-mail").waitFor();
  expect(page.url()).toEndWith("/setup");
  await page.getByLabel("E-mail").fill("owner@example.com");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Create the owner and sign in" }).click();
  await page.getByRole("heading", { name: "No relays yet" }).waitFor();
});

test("a set-up link after the first owner's creation says that an owner exists", async () => {
  await page.goto(await makeLink("setup"));
  await page.getByText("This server already has an owner").waitFor();
  await page.getByRole("link", { name: "Sign in" }).waitFor();
});

test("an ended reset link says so before the form, and a new one in the same tab works, whatever was typed", async () => {
  const { store } = running.service;
  const nowMs = systemClock.now();
  const made = { email: "second@example.com", passwordHash: null, nowMs };
  ownerId = (await store.write("app", (tx) => createOwner(tx, made))).id;
  const first = await makeLink("reset");
  await page.goto(first);
  await page.getByLabel("Password").fill("typed under the old link");
  const second = await makeLink("reset");
  await page.goto(second);
  await page.waitForFunction(() => document.querySelector("input")?.value === "");
  expect(page.url()).toEndWith("/reset");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Set the password and sign in" }).click();
  await page.getByRole("heading", { name: "No relays yet" }).waitFor();
  await page.goto(second);
  await page.getByRole("heading", { name: "This link does not work any more" }).waitFor();
  await page.getByText("relay admin reset").waitFor();
});

test("a link page without a reachable service says so, and continues after the service returns", async () => {
  const link = await makeLink("reset");
  const reconnect = await cutOff(page, "**/api/**");
  await page.goto(link);
  await page.getByText("The service cannot be reached").waitFor();
  expect(page.url()).toEndWith("/reset");
  reconnect();
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByLabel("Password").waitFor();
});

test("on another host than the dashboard's, a link page names the right address and passes the token there", async () => {
  await using other = await startRunningService({
    config: { mode: "server", baseUrl: "https://relay.example.com" },
    environments: ["development"],
  });
  const link = await makeLink("setup", other, other.clock.now());
  const token = link.split("#").at(-1);
  await page.goto(link);
  await page.getByText("the dashboard of this server is at https://relay.example.com").waitFor();
  const goOn = page.getByRole("link", { name: "Continue at https://relay.example.com" });
  expect(await goOn.getAttribute("href")).toBe(`https://relay.example.com/setup#${token}`);
  expect(await page.locator("form").count()).toBe(0);
  expect(page.url()).toEndWith("/setup");
  await page.goto(other.service.url);
  await page.getByText("Set up this server").waitFor();
});

test("on the network without a base URL, where no machine can sign in, it names both remedies", async () => {
  await using other = await startRunningService({
    config: { mode: "server", baseUrl: null, host: "0.0.0.0" },
    environments: ["development"],
  });
  const link = new URL(await makeLink("setup", other, other.clock.now()));
  await page.goto(`http://127.0.0.1:${link.port}/setup${link.hash}`);
  await page.getByText("so you cannot sign in here").waitFor();
  expect(await page.locator("main p").last().innerText()).toBe(
    "Start it with --base-url https://…, the https address that browsers open. Or without --host, and open it on the machine it runs on.",
  );
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints.filter((text) => !text.includes("net::ERR_FAILED"))).toEqual([]);
});
