/** Tests approvals in a real browser: a command on a laptop asks and an owner approves, or the owner promotes from the dashboard. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { findBarriers } from "../kit/axe.ts";
import { listen, startBrowser } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";
import { runCommand } from "../kit/cli-io.ts";
import { type CliProcess, startCli } from "../kit/cli-process.ts";
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

const receiver = (name: string, more: object, actions: object[]) => ({
  name,
  trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id", person_id: "user" }, ...more },
  actions,
});
const WRITES = { type: "write_record", collection: "notes", data: { text: "x" } };
const TOKEN = { verify: { scheme: "shared_token" }, trustUnsignedEvents: true };
const write = (...definitions: { name: string }[]): void => {
  const folder = join(laptop, "service", "relays");
  mkdirSync(folder, { recursive: true });
  for (const one of definitions) writeFileSync(join(folder, `${one.name}.json`), JSON.stringify(one, null, 2));
  const notes = { kind: "shared", fields: { text: { type: "text" } } };
  writeFileSync(join(laptop, "service", "catalog.json"), JSON.stringify({ collections: { notes } }));
};
const given = () => ({ cwd: laptop, env: { RELAY_KEY: key, RELAY_URL: base } });
const relay = (...line: string[]): CliProcess => startCli(line, given());
const urlIn = (line: string): string => /http:\S+\/approvals\/apr_[0-9a-f]{32}/.exec(line)?.[0] ?? "";
const text = async () => (await page.locator("main").innerText()).replaceAll(/\s+/g, " ");

beforeAll(async () => {
  stack.defer(() => rmSync(home, { recursive: true, force: true }));
  stack.defer(() => rmSync(laptop, { recursive: true, force: true }));
  ({ base, key } = await startShopServer(stack, home, { email: EMAIL, password: PASSWORD }));
  const context = await startBrowser(stack);
  page = await context.newPage();
  complaints = listen(page);
});
afterAll(() => stack.disposeAsync());

test("a signed-out owner signs in, returns to the page, sees the exact change, and approves it", async () => {
  write(receiver("orders", {}, [WRITES]), receiver("tokens", TOKEN, [{ type: "grant_credits", amount: 10 }]));
  await using run = relay("sync", "--live");
  const url = urlIn(await run.line("/approvals/"));
  await page.goto(url);
  await page.getByLabel("E-mail").fill(EMAIL);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Change production of shop?" }).waitFor();
  expect(page.url()).toBe(url);
  expect(await page.locator(".live-band").innerText()).toBe("PRODUCTION of shop");
  const shown = await text();
  expect(shown).toContain("a command with the key laptop (relay_dev_…");
  expect(shown).toContain("127.0.0.1");
  expect(shown).toContain("files from the command");
  expect(shown).toContain("3 changes of production");
  expect(shown).toContain("A captured request could give more than now, of tokens");
  expect(shown).toContain("In production this is not possible yet.");
  expect(shown).toContain("Production gets new secrets for orders, tokens. Only the command receives them");
  const diff = page.getByRole("group", { name: /Difference of orders/ });
  expect(await diff.innerText()).toContain('"collection": "notes"');
  await page.getByRole("button", { name: "Approve this change to production" }).click();
  await page.getByRole("heading", { name: "Production of shop was changed" }).waitFor();
  expect(await run.exited).toBe(0);
  expect(await page.getByRole("button", { name: /Approve/ }).count()).toBe(0);
  const secrets = JSON.parse(readFileSync(join(laptop, "service", ".secrets.json"), "utf8"));
  expect(await page.content()).not.toContain(secrets[`${base}/shop/production`].orders.receiverSecret);
  await page.reload();
  await page.getByRole("heading", { name: "Production of shop was changed" }).waitFor();
  expect(await text()).toContain(`Approved by ${EMAIL}`);
});

test("a refusal ends the waiting command, and the page says that nothing changed", async () => {
  write(receiver("orders", {}, [WRITES, WRITES]));
  await using run = relay("sync", "--live");
  await page.goto(urlIn(await run.line("/approvals/")));
  const diff = page.getByRole("group", { name: /Difference of orders/ });
  await diff.waitFor();
  expect(await diff.locator(".diff-right").count()).toBeGreaterThan(3);
  expect(await diff.locator(".diff-left").count()).toBeLessThan(3);
  await page.getByRole("button", { name: "Reject" }).click();
  await page.getByRole("heading", { name: "Rejected: production is unchanged" }).waitFor();
  expect(await run.exited).toBe(3);
});

test("an approved but unused request shows its remaining time, and never claims that no owner approved", async () => {
  const { items } = await (await page.request.get(`${base}/api/apps/shop/production/audit?limit=50`)).json();
  const id = items.map(({ target }: { target: string }) => target.replace(/^approval:/, "")).find((one: string) => one.startsWith("apr_"));
  const { approval } = await (await page.request.get(`${base}/api/approvals/${id}`)).json();
  let as = {};
  // Only this approval's response changes, because the test later requests another one.
  await page.route(new RegExp(`/api/approvals/${id}$`), (route) =>
    route.fulfill({ json: { approval: { ...approval, decidedBy: `owner:${EMAIL}`, ...as } } }),
  );
  as = { state: "approved", secondsLeft: 125, isMine: false };
  await page.goto(`${base}/approvals/${id}`);
  await page.getByText("If the command has ended, run it again. This approval expires in 2:05.").waitFor();
  as = { state: "expired", why: null };
  await page.getByRole("heading", { name: "Expired: the change was approved but not made in time" }).waitFor();
  as = { ...as, decidedBy: null };
  await page.reload();
  await page.getByRole("heading", { name: "Expired: the change was not approved in time" }).waitFor();
});

test("an open page updates itself when its approval becomes void", async () => {
  await using run = relay("sync", "--live");
  const url = urlIn(await run.line("/approvals/"));
  for (const room of ["development", "production", "production/relays"]) {
    await page.goto(`${base}/apps/shop/${room}`);
    await page.getByText("A change to production waits for approval").waitFor();
    expect(await page.getByText("Nothing needs attention").count()).toBe(0);
    await shoot(page, `approval-waits-${room.replace("/", "-")}`);
  }
  await page.getByRole("link", { name: "Review change" }).click();
  await page.getByRole("button", { name: "Approve this change to production" }).waitFor();
  expect(page.url()).toBe(url);
  run.kill("SIGINT");
  expect(await run.exited).toBe(1);
  await page.getByRole("heading", { name: "Withdrawn: there is nothing to approve" }).waitFor();
  expect(await page.getByRole("button", { name: /Approve/ }).count()).toBe(0);
});

test("the dashboard promotes development's state: a dry run, the approval page, and the secrets shown once", async () => {
  write(receiver("refunds", {}, [WRITES]));
  expect((await runCommand(["sync", "--yes"], given())).code).toBe(0);
  await page.goto(`${base}/apps/shop/development/relays`);
  await page.getByRole("link", { name: "Promote to production…" }).click();
  await page.getByText("This is a dry run").waitFor();
  expect(await findBarriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Continue to approve 2 changes…" }).click();
  await page.waitForURL(/\/approvals\//);
  await page.getByRole("heading", { name: "Change production of shop?" }).waitFor();
  expect(await findBarriers(page)).toEqual([]);
  const asked = page.url();
  await page.goto(`${base}/apps/shop/production/relays`);
  await page.getByText(/^A change to production waits for approval, requested .+ by ann@example\.com\. Review change$/).waitFor();
  await page.goto(asked);
  await page.getByRole("heading", { name: "Change production of shop?" }).waitFor();
  expect(await text()).toContain("the definitions in development");
  // The service makes the change, and its response is lost.
  const once = { times: 1 };
  await page.route(
    /\/apply$/,
    async (route) => {
      await route.fetch();
      await route.abort();
    },
    once,
  );
  const before = complaints.length;
  await page.getByRole("button", { name: "Approve and change production" }).click();
  await page.getByRole("heading", { name: "Production of shop was changed" }).waitFor();
  await page.getByText("The response with the new production secrets was lost.").waitFor();
  expect(complaints.splice(before).join("\n")).toContain("ERR_FAILED");
  expect(await findBarriers(page)).toEqual([]);
  await shoot(page, "approval-lost-secrets");
  await page.getByRole("button", { name: "Show the secrets" }).click();
  await page.locator('[data-secret="refunds: Receiver secret"]').waitFor();
  const secret = await page.locator('[data-secret="refunds: Receiver secret"]').innerText();
  expect(secret).toStartWith("whsec_");
  const lost = page.getByText("New production secrets were created and shown here once");
  expect(await lost.count()).toBe(0);
  await page.reload();
  await lost.waitFor();
  expect(await page.content()).not.toContain(secret);
  expect(await page.getByRole("link", { name: "refunds", exact: true }).getAttribute("href")).toBe("/apps/shop/production/relays/refunds");
  await page.goto(`${base}/apps/shop/production/relays/refunds`);
  await page.getByRole("region", { name: "Source" }).getByText("promoted from development").waitFor();
  await page.goto(`${base}/apps/shop/development/relays/to/production`);
  await page.getByRole("heading", { name: "Production is up to date" }).waitFor();
  expect(await page.content()).not.toContain(secret);
});

test("the page begins with warnings about captured requests and payment links", async () => {
  const sells = receiver("sells", TOKEN, [{ type: "fulfil_product", product: "book" }]);
  const files = (book: object, pen: object) => {
    write(sells);
    const products = { book: { ...book, soldThrough: { kind: "relay", relay: "sells" } }, pen };
    writeFileSync(join(laptop, "service", "catalog.json"), JSON.stringify({ products }));
  };
  files({ credits: 5 }, {});
  await using first = relay("sync", "--live", "--yes");
  await page.goto(urlIn(await first.line("/approvals/")));
  await page.getByRole("button", { name: "Approve this change to production" }).click();
  expect(await first.exited).toBe(0);
  files({ credits: 5_000 }, { soldThrough: { kind: "payment_link", url: "https://pay.example.com/test" } });
  await using run = relay("sync", "--live");
  await page.goto(urlIn(await run.line("/approvals/")));
  await page.getByText("A captured request could give more than now, of book").waitFor();
  await page.getByText("new payment links for pen").waitFor();
  const card = page.getByRole("region", { name: "product book" });
  expect(await card.innerText()).toContain("anyone who captures one request can give book to any person");
  await page.getByRole("button", { name: "Reject" }).click();
  expect(await run.exited).toBe(3);
});

test("a change deep inside a long value is marked and visible, and look-alike letters are escaped, also on the Promote page", async () => {
  const words = Array.from({ length: 1_200 }, (_, n) => `word${n}`);
  const long = (text: string, url: string) =>
    receiver("texts", {}, [
      { ...WRITES, data: { text } },
      { type: "call_url", url },
    ]);
  write(long(words.join(" "), "https://paypal.example/hook"));
  await using first = relay("sync", "--live", "--yes");
  await page.goto(urlIn(await first.line("/approvals/")));
  await page.getByRole("button", { name: "Approve this change to production" }).click();
  expect(await first.exited).toBe(0);
  const changed = long(words.join(" ").replace("word900", "evil900"), "https://p\u0430yp\u0430l.example/ho\u200bok");
  write(changed);
  const look = async (name: string): Promise<void> => {
    const diff = page.getByRole("group", { name: /Differences? of texts/ });
    await diff.waitFor();
    for (const width of [390, 1280]) {
      await page.setViewportSize({ width, height: 900 });
      const seen = await diff.evaluate((box) => {
        const { top, bottom, left, right } = box.getBoundingClientRect();
        const mark = box.querySelector(".diff-mark")?.getBoundingClientRect();
        return {
          wide: box.scrollWidth - box.clientWidth,
          isInSight: mark !== undefined && mark.top >= top && mark.bottom <= bottom && mark.left >= left && mark.right <= right,
        };
      });
      expect(seen).toEqual({ wide: 0, isInSight: true });
    }
    expect(await diff.locator(".diff-mark").allInnerTexts()).toContain("evil900");
    expect(await diff.locator(".escaped").allInnerTexts()).toEqual(["\\u0430", "\\u0430", "\\u200b"]);
    expect(await diff.locator(".escaped").first().getAttribute("title")).toBe("U+0430, a Cyrillic letter that looks like a");
    for (const colorScheme of ["dark", "light"] as const) {
      await page.emulateMedia({ colorScheme });
      // Colors of buttons change over several frames.
      await page.evaluate(async () => {
        await new Promise(requestAnimationFrame);
        await Promise.allSettled(document.getAnimations().map(({ finished }) => finished));
      });
      expect(await findBarriers(page)).toEqual([]);
    }
    await shoot(page, name, { fullPage: true });
  };
  await using run = relay("sync", "--live");
  await page.goto(urlIn(await run.line("/approvals/")));
  await look("approval-hidden-change");
  await page.getByRole("button", { name: "Reject" }).click();
  expect(await run.exited).toBe(3);
  expect((await runCommand(["sync", "--yes"], given())).code).toBe(0);
  await page.goto(`${base}/apps/shop/development/relays/to/production`);
  await page.getByText("This is a dry run").waitFor();
  await look("promote-hidden-change");
});

test("shows the commit of the files and a renamed relay, and the history of the relay shows the commit", async () => {
  const git = (...words: string[]): string => {
    const settings = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
    const done = Bun.spawnSync(["git", ...settings, ...words], { cwd: laptop, stderr: "pipe" });
    expect([done.exitCode, done.stderr.toString()]).toEqual([0, expect.any(String)]);
    return done.stdout.toString().trim();
  };
  rmSync(join(laptop, "service", "relays", "tokens.json"));
  write(receiver("after", TOKEN, [{ type: "grant_credits", amount: 10 }]));
  git("init", "--quiet");
  git("add", "service");
  git("commit", "--quiet", "--message", "rename");
  const commit = git("rev-parse", "HEAD");
  await using run = relay("sync", "--live", "--yes");
  await page.goto(urlIn(await run.line("/approvals/")));
  await page.getByRole("heading", { name: "Change production of shop?" }).waitFor();
  expect(await page.locator(".facts").innerText()).toContain(commit.slice(0, 7));
  const renamed = await page.getByLabel("relay after").innerText();
  expect(renamed).toContain("Renamed from tokens.");
  expect(renamed).toContain(`${base}/hooks/shop/after`);
  expect(await findBarriers(page)).toEqual([]);
  await shoot(page, "approval-commit", { fullPage: true });
  await page.getByRole("button", { name: "Approve this change to production" }).click();
  expect(await run.exited).toBe(0);
  await page.goto(`${base}/apps/shop/production/relays/after?tab=history`);
  await page.getByLabel("Version 1", { exact: true }).waitFor();
  const version = await page.getByLabel("Version 1", { exact: true }).innerText();
  expect(version.replaceAll(/\s+/g, " ")).toContain(`laptop, from a file of commit ${commit.slice(0, 7)}`);
  await shoot(page, "history-commit");
});

test("a name in a request never becomes markup, and the pages log no error", async () => {
  const nasty = '<img src=x onerror="document.title=1">\u202e';
  write(receiver("orders", { when: { event_id: nasty } }, [WRITES]));
  await using run = relay("sync", "--live");
  await page.goto(urlIn(await run.line("/approvals/")));
  await page.getByRole("group", { name: /Difference of orders/ }).waitFor();
  expect(await page.locator("main img").count()).toBe(0);
  expect(await text()).toContain("\\u202e");
  run.kill("SIGINT");
  await run.exited;
  expect(complaints).toEqual([]);
});
