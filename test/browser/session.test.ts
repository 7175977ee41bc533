import { afterAll, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { createOwner, hashPassword } from "../../src/platform/account/owner.ts";
import { cutOff, openDashboard } from "../kit/browser.ts";
import { readEditor, writeEditor } from "../kit/browser-editor.ts";
import { APP } from "../kit/running-service.ts";

const dashboard = await openDashboard({
  config: { mode: "server" },
  environments: ["development", "production"],
});
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const EMAIL = "owner@example.com";
const PASSWORD = "a long enough password";

/** Returns the visible texts and field values of the page. */
const shownText = (of: Page): Promise<string> =>
  of.evaluate(() =>
    [...document.querySelectorAll("body *")]
      .filter((one) => one.checkVisibility({ visibilityProperty: true }) && (one.childElementCount === 0 || one.closest("p, li, button") !== null))
      .map((one) => (one instanceof HTMLInputElement ? one.value : one.textContent))
      .join("\n"),
  );

test("the first set-up link creates the owner and signs in", async () => {
  await page.getByRole("heading", { name: "Set up this server" }).waitFor();
  expect(page.url()).not.toContain("#");
  await page.getByLabel("E-mail").fill(EMAIL);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Create the owner and sign in" }).click();
  await page.getByRole("heading", { name: "No relays yet" }).waitFor();
  expect(page.url()).toContain(`/apps/${APP}/development/home`);
});

test("production has a distinct look, and every address contains the environment", async () => {
  const band = (): Promise<string> => page.evaluate(() => getComputedStyle(document.querySelector(".shell") as Element, "::before").height);
  expect(await band()).toBe("auto");
  await page.getByRole("button", { name: /Development: app and environment/ }).click();
  await page.getByRole("link", { name: "Production" }).click();
  await page.waitForURL(/\/production\/home$/);
  await page.getByRole("button", { name: /Production: app and environment/ }).waitFor();
  expect(await band()).toBe("4px");
});

test("a key is shown once, listed by its hint, and rejected after its revocation", async () => {
  await page.goto(at("settings?tab=keys"));
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByLabel("Name").fill("deploy script");
  await page.getByRole("button", { name: "Create key" }).click();
  const token = await page.locator('[data-secret="Key"]').innerText();
  await page.getByRole("button", { name: "I stored the secret" }).click();
  const ask = async (): Promise<number> =>
    (
      await fetch(`${running.service.url}/api/apps/${APP}/development/relays`, {
        headers: { authorization: `Bearer ${token}` },
      })
    ).status;
  expect(await ask()).toBe(200);
  await page.getByRole("button", { name: "Revoke… deploy script" }).click();
  await page.getByRole("button", { name: "Revoke key" }).click();
  await page.getByText("Revoked deploy script.").waitFor();
  expect(await ask()).toBe(401);
  expect(await page.content()).not.toContain(token);
});

test("the settings select who can sign in to the app, and the choice persists", async () => {
  await page.goto(at("settings"));
  const invitedOnly = page.getByLabel("Invited people only");
  expect(await invitedOnly.isChecked()).toBe(false);
  await invitedOnly.check();
  await page.getByText("Only invited people can sign in now.").waitFor();
  const rows = await running.rows<{ settings: string }>("SELECT settings FROM environment");
  expect(rows.filter(({ settings }) => settings.includes('"invitedOnly":true'))).toHaveLength(1);
  await page.reload();
  expect(await invitedOnly.isChecked()).toBe(true);
  await invitedOnly.uncheck();
  await page.getByText("Anyone can sign up now.").waitFor();
});

/** Clicks the button at its current position. */
const press = (button: Locator): Promise<void> =>
  button.evaluateAll((found) => {
    for (const one of found) (one as HTMLElement).click();
  });

test("an expired session is renewed on top of the page, and written text is still there", async () => {
  await page.goto(at("relays/new"));
  await page.getByRole("button", { name: "Use this template" }).click();
  await writeEditor(page, '{"name":"kept"}');
  await page.context().clearCookies();
  // A refresh may have noticed the expired session first, and then the page is already locked.
  const create = page.getByRole("button", { name: "Create relay" });
  await press(create);
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  expect(await shownText(page)).not.toMatch(/kept|Create relay|Production/);
  await page.getByLabel("E-mail").fill(EMAIL);
  await page.getByLabel("Password").fill("not the password");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("The email address or the password is wrong").waitFor();
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor({ state: "detached" });
  expect(await readEditor(page)).toBe('{"name":"kept"}');
  await create.click();
  await page.getByRole("heading", { name: /problems to fix/ }).waitFor();
});

test("a page that another tab signed out hides its content and an open dialog, and both return after sign-in", async () => {
  await page.goto(at("settings?tab=keys"));
  await page.getByText("deploy script").first().waitFor();
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("half a name");
  await page.evaluate(() => fetch("/api/session", { method: "DELETE" }));
  // Any request that finds the session ended locks the page.
  await press(page.getByRole("button", { name: "Create key" }));
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  expect(await shownText(page)).not.toMatch(/deploy script|half a name|New key/);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await page.getByLabel("E-mail").fill(EMAIL);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor({ state: "detached" });
  expect(await page.getByRole("dialog").getByLabel("Name").inputValue()).toBe("half a name");
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await page.getByText("deploy script").first().waitFor();
});

test("a sign-in in one tab also signs in the other", async () => {
  await page.goto(at("relays/new"));
  await writeEditor(page, '{"name":"held"}');
  const other = await page.context().newPage();
  await other.goto(at("relays"));
  await page.context().clearCookies();
  await press(page.getByRole("button", { name: "Create relay" }));
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await other.reload();
  await other.getByLabel("E-mail").fill(EMAIL);
  await other.getByLabel("Password").fill(PASSWORD);
  await other.keyboard.press("Enter");
  await other.getByRole("heading", { name: "Relays", exact: true }).waitFor();
  await other.close();
  // Headless tabs get no focus event.
  await page.evaluate(() => dispatchEvent(new Event("focus")));
  await page.getByRole("heading", { name: "Sign in" }).waitFor({ state: "detached" });
  expect(await readEditor(page)).toBe('{"name":"held"}');
});

test("another owner who signs in after an expired session cannot see the draft, and its author finds it again", async () => {
  const passwordHash = await hashPassword(PASSWORD);
  await running.service.store.write("dashboard", (tx) => createOwner(tx, { email: "bob@example.com", passwordHash, nowMs: Date.now() }));
  const enter = async (email: string): Promise<void> => {
    await page.context().clearCookies();
    await page.evaluate(() => dispatchEvent(new Event("focus")));
    await page.goto(at("relays/new?step=write"));
    await page.getByLabel("E-mail").fill(email);
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor({ state: "detached" });
  };
  await page.goto(at("relays/new?step=write"));
  await writeEditor(page, '{"name":"mine"}');
  await enter("bob@example.com");
  await page.getByRole("button", { name: "Use this template" }).waitFor();
  expect(await shownText(page)).not.toMatch(/mine|unsaved draft/);
  await enter(EMAIL);
  expect(await readEditor(page)).toBe('{"name":"mine"}');
});

test("signing out hides everything, and signing in returns to the requested address", async () => {
  await page.goto(at("relays"));
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  // Local development opens its one-time links on this page. A server shows the password form.
  await page.goto(`${running.service.url}/signin`);
  await page.getByLabel("Password").waitFor();
  await page.goto(at("events?state=dead"));
  await page.getByLabel("E-mail").fill(EMAIL);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "No event matches" }).waitFor();
  expect(page.url()).toEndWith("/events?state=dead");
});

test("the dashboard creates an app, and opens its development environment", async () => {
  await page.getByRole("button", { name: /Development: app and environment/ }).click();
  await page.getByRole("link", { name: "New app" }).click();
  await page.getByLabel("Name").fill("Shop");
  await page.getByRole("button", { name: "Create the app" }).click();
  await page.getByRole("button", { name: "Shop Development: app and environment, change" }).waitFor();
});

test("an unreachable service is reported in a sentence, and the page recovers", async () => {
  await page.goto(at("relays"));
  await page.getByRole("heading", { name: "No relays yet" }).waitFor();
  const reconnect = await cutOff(page, "**/api/**");
  await page.goto(at("relays")).catch(() => undefined);
  await page.getByText("The service cannot be reached").waitFor();
  reconnect();
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("heading", { name: "No relays yet" }).waitFor();
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints.filter((text) => !text.includes("net::ERR_FAILED"))).toEqual([]);
});

test("the page and its initial files are under 80 KB compressed", async () => {
  const paths = new Set(["/"]);
  let total = 0;
  for (const path of paths) {
    const url = running.service.url + path;
    const zipped = await fetch(url, { headers: { "accept-encoding": "gzip" }, decompress: false } as RequestInit);
    total += (await zipped.arrayBuffer()).byteLength;
    // Follows the page's links and its scripts' static imports. Dynamic imports load later and do not count.
    const text = await (await fetch(url)).text();
    for (const [, found] of text.matchAll(/(?:src=|href=|from|import)"(\/[^"]+)"/g)) paths.add(found ?? "/");
  }
  expect(paths.size).toBeGreaterThan(2);
  expect(total).toBeLessThan(80 * 1024);
});
