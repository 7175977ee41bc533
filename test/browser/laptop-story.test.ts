/**
 * Tests the path of a new user from a laptop to production and back. It uses two real processes, a real browser, and a provider's request at the end.
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { createHmac } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { listen, startBrowser } from "../kit/browser.ts";
import { startCli } from "../kit/cli-process.ts";
import { dependentSteps } from "../kit/dependent-steps.ts";
import { startShopServer } from "../kit/shop-server.ts";

const test = dependentSteps();
const EMAIL = "ann@example.com";
const PASSWORD = "correct horse battery";
const stack = new AsyncDisposableStack();
const home = mkdtempSync(join(tmpdir(), "relay-server-"));
const laptop = mkdtempSync(join(tmpdir(), "relay-laptop-"));
const service = join(laptop, "service");
let base = "";
let page: Page;
let complaints: string[] = [];

const orders = (text: string) => ({
  name: "orders",
  trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id" } },
  actions: [{ type: "write_record", collection: "notes", data: { text } }],
});
const NOTES = { collections: { notes: { kind: "shared", fields: { text: { type: "text" } } } } };
const fileOf = (name: string) => JSON.parse(readFileSync(join(service, "relays", `${name}.json`), "utf8"));
const start = (...line: string[]) => startCli(line, { cwd: laptop });
async function relay(...line: string[]): Promise<{ code: number; text: string }> {
  await using ran = start(...line);
  return { code: await ran.exited, text: ran.lines().join("\n") };
}
/** Sends a request like the dashboard's own pages. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads answers by their fields
const call = (method: string, path: string, body?: unknown): Promise<any> =>
  page.evaluate(
    async ([method, path, body]) => {
      const headers = { "content-type": "application/json" };
      const response = await fetch(path ?? "", { method: method ?? "", headers, ...(body === null ? {} : { body: body ?? "" }) });
      return response.json();
    },
    [method, path, body === undefined ? null : JSON.stringify(body)],
  );

async function signIn(environment: string): Promise<void> {
  await using login = start("login", "--url", base);
  const code = /[A-Z]{4}-[A-Z]{4}/.exec(await login.line("    "))?.[0] ?? "";
  await page.getByLabel("Code").fill(code);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByLabel("App and environment").selectOption(`shop/${environment}`);
  await page.getByRole("button", { name: "Allow login" }).click();
  expect(await login.exited).toBe(0);
}

beforeAll(async () => {
  stack.defer(() => rmSync(home, { recursive: true, force: true }));
  stack.defer(() => rmSync(laptop, { recursive: true, force: true }));
  ({ base } = await startShopServer(stack, home, { email: EMAIL, password: PASSWORD }));
  const context = await startBrowser(stack);
  page = await context.newPage();
  complaints = listen(page);
});
afterAll(() => stack.disposeAsync());

test("the laptop signs in through the browser and syncs its files to development", async () => {
  await page.goto(`${base}/login`);
  await page.getByLabel("E-mail").fill(EMAIL);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await signIn("development");
  mkdirSync(join(service, "relays"), { recursive: true });
  writeFileSync(join(service, "relays", "orders.json"), JSON.stringify(orders("of the laptop"), null, 2));
  writeFileSync(join(service, "catalog.json"), JSON.stringify(NOTES, null, 2));
  const synced = await relay("sync");
  expect([synced.code, synced.text.includes("2 changes made in")]).toEqual([0, true]);
  const status = await relay("status");
  expect([status.code, status.text.includes("production was not compared")]).toEqual([0, true]);
});

test("an edit in the dashboard is a difference, and a pull writes it to the file", async () => {
  const { version } = (await call("GET", "/api/apps/shop/development/relays/orders")).relay;
  await call("PUT", "/api/apps/shop/development/relays/orders", { definition: orders("of the dashboard"), version });
  const refused = await relay("sync");
  expect([refused.code, refused.text]).toEqual([1, expect.stringContaining("edited_in_dashboard")]);
  const drift = await relay("status");
  expect([drift.code, drift.text.includes(`owner:${EMAIL}`) || drift.text.includes(EMAIL)]).toEqual([3, true]);
  expect((await relay("pull")).code).toBe(0);
  expect(fileOf("orders")).toEqual(orders("of the dashboard"));
  expect((await relay("validate", "--strict")).code).toBe(0);
});

test("production changes when the owner approves in the browser, and a provider's request runs there with the laptop's secret", async () => {
  await using promote = start("promote");
  const url = /http:\S+\/approvals\/apr_[0-9a-f]{32}/.exec(await promote.line("/approvals/"))?.[0] ?? "";
  await page.goto(url);
  await page.getByRole("group", { name: /Difference of orders/ }).waitFor();
  await page.getByRole("button", { name: "Approve this change to production" }).click();
  await page.getByRole("heading", { name: "Production of shop was changed" }).waitFor();
  expect(await promote.exited).toBe(0);
  await page.getByText("New production secrets were created and sent once to the command").waitFor();
  const held = JSON.parse(readFileSync(join(service, ".secrets.json"), "utf8"));
  const secrets = ["development", "production"].map((name) => held[`${base}/shop/${name}`].orders.receiverSecret as string);
  expect(new Set(secrets).size).toBe(2);
  for (const [at, environment] of ["development", "production"].entries()) {
    const body = JSON.stringify({ id: `order-${environment}` });
    const seconds = Math.floor(Date.now() / 1_000);
    const signature = createHmac("sha256", Buffer.from((secrets[at] ?? "").slice("whsec_".length), "base64"))
      .update(`msg-${at}.${seconds}.${body}`)
      .digest("base64");
    const headers = { "hooks-id": `msg-${at}`, "hooks-timestamp": String(seconds), "hooks-signature": `v1,${signature}` };
    const taken = await fetch(`${base}/hooks/shop/orders`, { method: "POST", headers: { "content-type": "application/json", ...headers }, body });
    expect(taken.status).toBe(200);
    const { eventId } = (await taken.json()) as { eventId: string };
    const E = `/api/apps/shop/${environment}`;
    let state = "";
    while (state !== "done" && state !== "dead") state = (await call("GET", `${E}/events/${eventId}`)).event.state;
    expect(state).toBe("done");
    expect((await call("GET", `${E}/collections/notes/records`)).items.map(({ data }: { data: { text: string } }) => data.text)).toEqual([
      "of the dashboard",
    ]);
  }
});

test("a pull restores a laptop without its folder: the files validate, and there is nothing to sync or promote", async () => {
  const before = readFileSync(join(service, "catalog.json"), "utf8");
  rmSync(service, { recursive: true });
  expect((await relay("pull")).code).toBe(0);
  expect([fileOf("orders"), JSON.parse(readFileSync(join(service, "catalog.json"), "utf8"))]).toEqual([
    orders("of the dashboard"),
    JSON.parse(before),
  ]);
  expect(readdirSync(join(service, "relays"))).toEqual(["orders.json"]);
  expect((await relay("validate", "--strict")).text).toContain("2 files checked, no problems, no warnings.");
  for (const line of [["sync"], ["promote"], ["pull"]]) {
    const { code, text } = await relay(...line);
    expect([line[0], code, text.includes("Nothing to do.")]).toEqual([line[0] ?? "", 0, true]);
  }
  await page.goto(`${base}/login`);
  await signIn("production");
  const status = await relay("status", "--profile", "shop-development");
  expect([status.code, status.text]).toEqual([0, expect.stringContaining("All the same: 2 items in files, development, production.")]);
  expect(complaints).toEqual([]);
});
