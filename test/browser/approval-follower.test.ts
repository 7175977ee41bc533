/** Tests the page of an approval whose plan saves a receiver and relays that follow it, and then makes a receiver follow it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { listen, startBrowser } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";
import { startCli } from "../kit/cli-process.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";
import { startShopServer } from "../kit/shop-server.ts";

const EMAIL = "ann@example.com";
const PASSWORD = "correct horse battery";
const stack = new AsyncDisposableStack();
const home = mkdtempSync(join(tmpdir(), "relay-server-"));
const laptop = mkdtempSync(join(tmpdir(), "relay-laptop-"));
let base = "";
let key = "";
let page: Page;
let complaints: string[] = [];

const follower = (name: string, type: string) =>
  receiverDefinition({ name, verify: { scheme: "receiver", receiver: "stripe" }, when: { event_type: type } });
const write = (...definitions: Record<string, unknown>[]): void => {
  const folder = join(laptop, "service", "relays");
  mkdirSync(folder, { recursive: true });
  for (const one of definitions) writeFileSync(join(folder, `${one["name"]}.json`), JSON.stringify(one, null, 2));
  const orders = { kind: "shared", fields: { order: { type: "text" }, amount: { type: "text" } } };
  writeFileSync(join(laptop, "service", "catalog.json"), JSON.stringify({ collections: { orders } }));
};
const text = async () => (await page.locator("main").innerText()).replaceAll(/\s+/g, " ");

beforeAll(async () => {
  stack.defer(() => rmSync(home, { recursive: true, force: true }));
  stack.defer(() => rmSync(laptop, { recursive: true, force: true }));
  ({ base, key } = await startShopServer(stack, home, { email: EMAIL, password: PASSWORD }));
  page = await (await startBrowser(stack)).newPage();
  complaints = listen(page);
});
afterAll(() => stack.disposeAsync());

/** Asks for an approval and opens its page. `signIn` signs the owner in first. `check` looks at the page before the approval. */
async function approve(name: string, check: () => Promise<void>, signIn = false): Promise<void> {
  await using run = startCli(["sync", "--live"], { cwd: laptop, env: { RELAY_KEY: key, RELAY_URL: base } });
  await page.goto(/http:\S+\/approvals\/apr_[0-9a-f]{32}/.exec(await run.line("/approvals/"))?.[0] ?? "");
  if (signIn) {
    await page.getByLabel("E-mail").fill(EMAIL);
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
  }
  await page.getByRole("heading", { name: "Change production of shop?" }).waitFor();
  await shoot(page, name, { fullPage: true });
  await check();
  await page.getByRole("button", { name: "Approve this change to production" }).click();
  await page.getByRole("heading", { name: "Production of shop was changed" }).waitFor();
  expect(await run.exited).toBe(0);
}

test("a plan with a receiver and two followers names one new secret, and is applied whole", async () => {
  write(receiverDefinition({ name: "stripe" }), receiverDefinition({ name: "single" }), follower("archive", "paid"), follower("refunds", "refunded"));
  const check = async () => {
    const shown = await text();
    expect(shown).toContain("5 changes of production");
    expect(shown).toContain("Production gets new secrets for single, stripe. Only the command receives them");
  };
  await approve("approval-followers", check, true);
});

test("a plan that makes a receiver a follower says that its URL ends, and which one to register", async () => {
  write(follower("single", "renewed"));
  const check = async () => {
    const shown = await text();
    expect(shown).toContain("1 change of production");
    expect(shown).toMatch(
      /single now follows stripe, so its own URL \S+\/single stops answering\. At the sender, register the URL of stripe instead: \S+\/stripe\./,
    );
  };
  await approve("approval-url-ends", check);
  expect(complaints).toEqual([]);
});
