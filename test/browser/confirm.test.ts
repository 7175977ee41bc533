/** The dialog that confirms who is signed in before a sensitive action, and the buttons of a member whose role changes on an open page. */
import { afterAll, beforeEach, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { createOwner, hashPassword } from "../../src/platform/account/owner.ts";
import type { Role } from "../../src/platform/account/permission.ts";
import { createSession } from "../../src/platform/account/session.ts";
import { findBarriers } from "../kit/axe.ts";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";

const PASSWORD = "correct horse battery";
const SECRET = "whsec_processor1A2b3C4d5E6f7G8h";

const dashboard = await openDashboard({ environments: ["development", "production"], config: { mode: "server", baseUrl: null } });
const { page, context, running, complaints, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const write = running.service.store.write.bind(running.service.store);
const passwordHash = await hashPassword(PASSWORD);
const signUp = (name: string) =>
  write("app", async (tx) => {
    const nowMs = systemClock.now();
    const { id } = await createOwner(tx, { email: `${name}@example.com`, passwordHash, nowMs });
    return { id, token: (await createSession(tx, id, nowMs)).token };
  });
const ann = await signUp("ann");
const bea = await signUp("bea");
await context.addCookies([{ name: "relay_session", value: bea.token, url: running.service.url }]);

const dialog = page.getByRole("dialog", { name: "Confirm that it is you" });
const card = page.getByRole("region", { name: "The processor secret" });
const saveSecret = card.locator("form button").first();
const confirmButton = dialog.getByRole("button", { name: "Confirm" });
/** Makes the authentication of the session so old that a sensitive action needs a confirmation. */
const age = () => write("app", (tx) => tx.run("UPDATE session SET authenticated_at = ?1", systemClock.now() - 16 * 60_000));
const sent: string[] = [];
page.on("request", (request) => {
  if (request.method() !== "GET") sent.push(`${request.method()} ${new URL(request.url()).pathname.replace(/^.*development/, "")}`);
});

beforeEach(async () => {
  await page.setViewportSize({ width: 1280, height: 860 });
  await page.goto(at("settings"));
  await card.getByLabel(/igning secret/).fill(SECRET);
  await age();
  sent.length = 0;
});

test("a sensitive action asks for the password by keyboard, and is sent again once the password is right", async () => {
  await page.keyboard.press("Enter");
  await dialog.waitFor();
  const password = dialog.getByLabel("Password");
  expect(await password.evaluate((field) => field === document.activeElement)).toBe(true);
  expect(await findBarriers(page)).toEqual([]);
  await page.keyboard.type("a wrong password");
  await page.keyboard.press("Enter");
  await dialog.getByRole("alert").getByText("password is not your current password: type it again.").waitFor();
  await shoot(page, "confirm-wrong");
  await page.keyboard.type(PASSWORD);
  await page.keyboard.press("Enter");
  await card.getByText("It is never shown again.").waitFor();
  expect(await dialog.count()).toBe(0);
  expect(sent).toEqual(["PUT /settings", "POST /api/session/confirm", "POST /api/session/confirm", "PUT /settings"]);
});

test("Escape and Cancel change nothing, say so, and keep the input", async () => {
  for (const leave of [() => page.keyboard.press("Escape"), () => dialog.getByRole("button", { name: "Cancel" }).click()]) {
    await saveSecret.click();
    await dialog.waitFor();
    await leave();
    await card.getByRole("alert").getByText("Nothing was changed, because you did not confirm that it is you.").waitFor();
    expect(await card.getByLabel(/igning secret/).inputValue()).toBe(SECRET);
  }
  expect(sent).toEqual(["PUT /settings", "PUT /settings"]);
});

test("two tabs ask each for itself, and each sends its request again", async () => {
  const other = await context.newPage();
  await other.goto(at("settings"));
  const otherCard = other.getByRole("region", { name: "The processor secret" });
  await otherCard.getByLabel(/igning secret/).fill(SECRET);
  const otherDialog = other.getByRole("dialog", { name: "Confirm that it is you" });
  await otherCard.locator("form button").first().click();
  await otherDialog.waitFor();
  await saveSecret.click();
  await dialog.getByLabel("Password").fill(PASSWORD);
  await confirmButton.click();
  await dialog.waitFor({ state: "detached" });
  const repeated = other.waitForResponse((response) => response.request().method() === "PUT");
  await otherDialog.getByLabel("Password").fill(PASSWORD);
  await otherDialog.getByRole("button", { name: "Confirm" }).click();
  expect((await repeated).status()).not.toBe(403);
  await other.close();
});

test("a session that ended meanwhile closes the question and asks to sign in", async () => {
  await saveSecret.click();
  await dialog.waitFor();
  await write("app", (tx) => tx.run("UPDATE session SET expires_at = 0 WHERE owner_id = ?1", bea.id));
  await dialog.getByLabel("Password").fill(PASSWORD);
  await confirmButton.click();
  const signin = page.getByRole("dialog", { name: "Sign in" });
  await signin.getByLabel("E-mail").waitFor();
  expect(await dialog.count()).toBe(0);
  await signin.getByLabel("E-mail").fill("bea@example.com");
  await signin.getByLabel("Password").fill(PASSWORD);
  await signin.getByRole("button", { name: "Sign in" }).click();
  await signin.waitFor({ state: "detached" });
  await saveSecret.click();
  await page.getByRole("status").getByText("Processor secret saved.").first().waitFor();
});

test("the buttons of an open page follow a change of the member's role, without a request that is refused", async () => {
  const headers = { cookie: `relay_session=${ann.token}`, origin: running.service.url, "content-type": "application/json" };
  const become = async (role: Role): Promise<void> => {
    const body = JSON.stringify({ memberships: [{ role }] });
    expect((await fetch(`${running.service.url}/api/owners/${bea.id}`, { method: "PUT", headers, body })).status).toBe(200);
  };
  await age();
  await write("app", (tx) => tx.run("UPDATE session SET authenticated_at = ?1 WHERE owner_id = ?2", systemClock.now(), ann.id));
  const members = page.getByRole("navigation", { name: "Settings" }).getByRole("link", { name: "Members" });
  await members.waitFor();
  await become("viewer");
  await card.getByLabel(/igning secret/).waitFor({ state: "hidden" });
  await members.waitFor({ state: "detached" });
  await become("owner");
  await members.waitFor();
  await card.getByLabel(/igning secret/).waitFor();
  expect(sent).toEqual([]);
  expect(complaints).toEqual([]);
});
