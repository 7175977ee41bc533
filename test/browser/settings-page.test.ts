/** Tests the Settings page: each tab has an address, values appear as the service stored them, and secrets never show again. */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { recordCopy } from "../../src/operator/backup/copy-state.ts";
import { createApp } from "../../src/platform/account/app.ts";
import { createOwner, hashPassword } from "../../src/platform/account/owner.ts";
import { createSession } from "../../src/platform/account/session.ts";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";

const SECRET = "whsec_processor1A2b3C4d5E6f7G8h";
const backups: (() => void)[] = [];
const startBackup = () => ({ done: new Promise<void>((resolve) => backups.push(resolve)), stop: () => undefined });
const copies: { name: string | null; end: (message?: string) => Promise<void> }[] = [];
/** Starts a copy that ends when the test says so. */
const startCopy = (name: string | null) => {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const end = async (message?: string): Promise<void> => {
    if (message !== undefined) return reject(new Error(message));
    if (name !== null) await running.service.store.write("app", (tx) => recordCopy(tx, { name, bytes: 4_096, nowMs: systemClock.now() }));
    resolve();
  };
  copies.push({ name, end });
  return { done: promise, stop: () => reject(new Error("stopped")) };
};
const dashboard = await openDashboard({
  environments: ["development", "production"],
  config: { mode: "server", baseUrl: null },
  ports: { startBackup, startCopy },
});
const { page, context, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const passwordHash = await hashPassword("the old password");
const token = await running.service.store.write("app", async (tx) => {
  const nowMs = systemClock.now();
  const owner = await createOwner(tx, { email: "ann@example.com", passwordHash, nowMs });
  const agent = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0";
  await createSession(tx, owner.id, nowMs, { source: "192.0.2.7", agent });
  return (await createSession(tx, owner.id, nowMs)).token;
});
await context.addCookies([{ name: "relay_session", value: token, url: running.service.url }]);

const card = (name: string) => page.getByRole("region", { name });
const tab = (name: string) => page.getByRole("navigation", { name: "Settings" }).getByRole("link", { name });
const told = (text: string) => page.getByRole("status").getByText(text).first().waitFor();

test("g and the comma open the page, the app can be renamed, and all events can be held and released", async () => {
  await page.goto(at("home"));
  await page.getByRole("heading", { name: "Home" }).waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press(",");
  await page.getByRole("heading", { name: "Settings" }).waitFor();
  await card("App").getByLabel("Name").fill("The shop");
  await card("App").getByRole("button", { name: "Rename" }).click();
  await told("App renamed.");
  await page.getByRole("button", { name: /^The shop Development: / }).waitFor();
  await card("Hold").getByRole("button", { name: "Hold environment…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Hold environment" }).click();
  await page.getByText(/This environment has been on hold since .*\d\d:\d\d/).waitFor();
  await card("Hold").getByRole("button", { name: "Release the hold" }).click();
  await card("Hold").getByText("Not on hold. Events run when they arrive.").waitFor();
});

test("the processor's secret is rejected with a reason, set, and never shown again", async () => {
  const own = card("The processor secret");
  await own.getByLabel("Signing secret").fill("short");
  await own.getByRole("button", { name: "Set secret" }).click();
  await own.getByRole("alert").waitFor();
  await own.getByLabel("Signing secret").fill(SECRET);
  await own.getByRole("button", { name: "Set secret" }).click();
  await own.getByText("It is never shown again.").waitFor();
  expect(await page.content()).not.toContain(SECRET);
  expect(await own.getByLabel("New signing secret").inputValue()).toBe("");
});

test("limits show their source and the effect of reaching them, and server facts show how to change them", async () => {
  await tab("Limits").click();
  await page.waitForURL(/tab=limits/);
  await page.getByText("The sender gets 429").first().waitFor();
  await page.getByText("RELAY_LIMIT_RELAYS", { exact: true }).waitFor();
  await tab("Server").click();
  await page.getByText("--trusted-proxy or RELAY_TRUSTED_PROXY").waitFor();
  await page.getByText("The address is not https").waitFor();
});

test("limits show how much of them the environment uses, and Home names a limit from 60 % on", async () => {
  const actions = [{ type: "call_url", url: "https://example.com/notes" }];
  const create = (name: string) => running.api("POST", "/relays", { definition: { name, trigger: { kind: "schedule", every: "1d" }, actions } });
  for (let count = 0; count < 11; count++) expect((await create(`daily-${count}`)).status).toBe(201);
  await page.goto(at(""));
  await page.getByRole("heading", { name: "Home" }).waitFor();
  await page.getByText("Nothing has happened yet").waitFor();
  expect(await page.getByText("This environment has used 60 % or more of these limits:").count()).toBe(0);
  expect((await create("daily-11")).status).toBe(201);
  await page.reload();
  await page.getByText("12 of 20 (60 %): Relays of an environment.").waitFor();
  await page.getByRole("link", { name: "Show the limits" }).click();
  await page.locator("tr", { hasText: "Relays of an environment." }).getByText("60 %").waitFor();
  await page.locator("tr", { hasText: "in a minute" }).first().getByText("not measured").waitFor();
  for (let count = 0; count < 12; count++) await running.api("DELETE", `/relays/daily-${count}`);
});

test("a backup can be requested, shows its progress, and explains how to restore it", async () => {
  await tab("Backups").click();
  await page.getByText("No backup yet.").waitFor();
  await page.getByRole("button", { name: "Back up now" }).click();
  await page.getByText("A backup started").waitFor();
  backups[0]?.();
  await page.getByRole("button", { name: "Back up now" }).waitFor();
  await page.getByText("relay restore").first().waitFor();
});

test("a schedule of automatic backups is set and takes effect at once", async () => {
  await page.getByText("Automatic backups are off.").waitFor();
  await page.getByLabel("Make a backup").selectOption({ label: "every 6 hours" });
  await page.getByLabel("Backups to keep").fill("3");
  await page.getByRole("button", { name: "Save schedule" }).click();
  await page.getByText("The server creates a backup every 6 hours and keeps the newest 3 of them.").waitFor();
  while (backups[1] === undefined) await page.waitForTimeout(20);
  backups[1]?.();
  await shoot(page, "backup-schedule");
});

test("backups are copied to an S3 endpoint, which is tested and never shows its secrets", async () => {
  const folder = join(running.dataDir, "backups");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "by-hand-20260115T120000000Z.db"), "a backup");
  const own = card("Copies at an S3 endpoint");
  await own.getByLabel("Endpoint", { exact: true }).fill("http://10.0.0.7:9000");
  await own.getByLabel("Bucket", { exact: true }).fill("my-backups");
  await own.getByLabel("Folder", { exact: true }).fill("relay");
  await own.getByLabel("Access key ID").fill("AKIATEST");
  await own.getByLabel("Secret access key").fill("a-secret-access-key");
  await own.getByLabel("Passphrase").fill("correct horse battery staple");
  await own.getByRole("button", { name: "Save endpoint" }).click();
  await own.getByRole("alert").getByText("--allow-private").waitFor();
  await own.getByLabel("Endpoint", { exact: true }).fill("https://192.0.43.8");
  await own.getByRole("button", { name: "Save endpoint" }).click();
  await told("The endpoint was saved. Test the connection.");
  const content = await page.content();
  for (const secret of ["a-secret-access-key", "correct horse battery staple"]) expect(content).not.toContain(secret);
  expect(await own.getByLabel("Passphrase").inputValue()).toBe("");
  await own.getByText("No backup was copied yet.").waitFor();

  const next = async (index: number) => {
    while (copies[index] === undefined) await page.waitForTimeout(20);
    return copies[index];
  };
  await (await next(0))?.end("The bucket my-backups does not exist: create it, or check its name and the region.");
  await own.getByText("The last copy failed").waitFor();
  await shoot(page, "backup-copy-failed", { fullPage: true });
  await own.getByRole("button", { name: "Test the connection" }).click();
  await (await next(1))?.end();
  await told("The connection works: Relay wrote, read and deleted an object.");
  await own.getByLabel("Copies to keep").fill("5");
  await own.getByRole("button", { name: "Save endpoint" }).click();
  expect((await next(2))?.name).toBe("by-hand-20260115T120000000Z.db");
  await own.getByText("Copying by-hand-20260115T120000000Z.db, started").waitFor();
  await (await next(2))?.end();
  await own.getByText("Last copy:").waitFor();
  await page.getByText("relay restore s3://my-backups/relay/by-hand-20260115T120000000Z.db.enc --endpoint https://192.0.43.8").waitFor();
  await shoot(page, "backup-copy", { fullPage: true });
  await own.getByRole("button", { name: "Remove" }).click();
  await told("The endpoint was removed. The copies in the bucket stay.");
  expect(await own.getByLabel("Bucket", { exact: true }).inputValue()).toBe("");
});

test("a member is invited by a link that is shown once, and removed", async () => {
  await tab("Members").click();
  await page.getByRole("button", { name: "Invite a member" }).click();
  await page.locator(".role-fields select").first().selectOption("support");
  await page.getByLabel("E-mail address").fill("ann@example.com");
  await page.getByRole("button", { name: "Create link" }).click();
  await page.getByRole("dialog").getByRole("alert").waitFor();
  await page.getByLabel("E-mail address").fill("bea@example.com");
  await page.getByRole("button", { name: "Create link" }).click();
  const link = (await page.locator("[data-secret=Link]").textContent()) ?? "";
  expect(new URL(link).pathname).toBe("/reset");
  await page.getByRole("button", { name: "I copied the link" }).click();
  await page.getByText("support of every app").waitFor();
  await page.getByRole("button", { name: "Change roles of bea@example.com" }).click();
  await shoot(page, "member-roles");
  await page.locator(".role-fields select").last().selectOption("production");
  await page.getByRole("button", { name: "Save roles" }).click();
  await page.getByText("support of every app, only production").waitFor();
  await shoot(page, "members", { fullPage: true });
  await page.getByRole("button", { name: "Remove… bea@example.com" }).click();
  await page.getByRole("button", { name: "Remove member" }).click();
  await page.getByRole("button", { name: "Remove… bea@example.com" }).waitFor({ state: "detached" });
  expect(await running.rows("SELECT email FROM owner")).toEqual([{ email: "ann@example.com" }]);
});

test("sessions are distinguishable, the others end at once, and a wrong password ends none", async () => {
  await tab("Sessions").click();
  await page.getByText("Firefox on Linux").waitFor();
  await page.getByText("192.0.2.7").waitFor();
  await page.getByRole("button", { name: "Sign out everywhere else" }).click();
  await page.getByText("Firefox on Linux").waitFor({ state: "detached" });
  expect(await running.rows("SELECT 1 FROM session")).toHaveLength(1);
  await page.getByLabel("Current password").fill("a wrong password");
  await page.getByRole("textbox", { name: "New password" }).fill("a new password");
  await page.getByRole("button", { name: "Set password" }).click();
  await card("New password").getByRole("alert").waitFor();
  await page.getByLabel("Current password").fill("the old password");
  await page.getByRole("button", { name: "Set password" }).click();
  await told("Password changed");
});

test("the current tab stays in view when the window gets narrow", async () => {
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto(at("settings?tab=sessions"));
  await tab("Sessions").waitFor();
  await page.setViewportSize({ width: 390, height: 800 });
  await page.waitForFunction(() => {
    const box = document.querySelector(".tabs [aria-current]")?.getBoundingClientRect();
    return box !== undefined && box.left >= 0 && box.right <= innerWidth;
  });
});

test("a narrow screen needs no sideways scrolling, and the pages log no error", async () => {
  await page.setViewportSize({ width: 360, height: 800 });
  for (const name of ["", "keys", "limits", "server", "backups", "owners", "sessions"]) {
    await page.goto(at(`settings?tab=${name}`));
    await page.locator("main :is(.card, .tab-lead)").first().waitFor();
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect([name, width <= 360]).toEqual([name, true]);
  }
  expect(complaints).toEqual([]);
});

test("an app is deleted from its settings after its id is typed, with its contents announced before", async () => {
  await running.service.store.write("app", (tx) =>
    createApp(tx, { id: "trial", name: "Trial", environments: ["development", "production"], nowMs: systemClock.now() }),
  );
  await page.goto(`${running.service.url}/apps/trial/development/settings`);
  await card("Delete this app").getByRole("button", { name: "Delete trial…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("production: nothing").waitFor();
  const act = dialog.getByRole("button", { name: "Delete the app" });
  await dialog.getByLabel("Type trial to confirm").fill("trail");
  expect(await act.isDisabled()).toBe(true);
  await dialog.getByLabel("Type trial to confirm").fill("trial");
  await act.click();
  await told("The app trial is deleted.");
  await page.waitForURL((url) => !url.pathname.startsWith("/apps/trial/"));
});

test("an open page shows that a node has ended", async () => {
  let isLive = true;
  const node = { host: "b", pid: 2, url: null, answers: false, house: false, version: "1", startedAt: new Date().toISOString() };
  const nodes = () => [
    { ...node, live: isLive, environments: ["shop", "a-blog-with-a-name", "another"].map((app) => ({ app, environment: "production" })) },
  ];
  await page.route("**/api/nodes", (route) => route.fulfill({ json: { nodes: nodes() } }));
  await page.goto(at("settings?tab=server"));
  const shown = page.getByRole("region", { name: "Nodes" });
  const runs = shown.getByText("shop production");
  await runs.waitFor();
  await page.setViewportSize({ width: 360, height: 780 });
  expect(await runs.evaluate((words) => words.getBoundingClientRect().right <= innerWidth)).toBe(true);
  expect(await runs.evaluate((words) => (words.closest("td")?.scrollWidth ?? 0) <= (words.closest("td")?.clientWidth ?? 0))).toBe(true);
  await page.setViewportSize({ width: 1280, height: 860 });
  isLive = false;
  await shown.getByText("nothing: the node does not respond").waitFor();
});
