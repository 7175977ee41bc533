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

/** What stands in the picture: the texts and fields of the page that are visible. */
const shownText = (of: Page): Promise<string> =>
  of.evaluate(() =>
    [...document.querySelectorAll("body *")]
      .filter((one) => one.checkVisibility({ visibilityProperty: true }) && (one.childElementCount === 0 || one.closest("p, li, button") !== null))
      .map((one) => (one instanceof HTMLInputElement ? one.value : one.textContent))
      .join("\n"),
  );

test("the first set-up link makes the owner and signs in", async () => {
  await page.getByRole("heading", { name: "Set up this server" }).waitFor();
  expect(page.url()).not.toContain("#");
  await page.getByLabel("E-mail").fill(EMAIL);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Create the owner and sign in" }).click();
  await page.getByRole("heading", { name: "No relays yet" }).waitFor();
  expect(page.url()).toContain(`/apps/${APP}/development/home`);
});

test("production is unmistakable, and the environment is a part of every address", async () => {
  const band = (): Promise<string> => page.evaluate(() => getComputedStyle(document.querySelector(".shell") as Element, "::before").height);
  expect(await band()).toBe("auto");
  await page.getByRole("button", { name: /Development: app and environment/ }).click();
  await page.getByRole("link", { name: "Production" }).click();
  await page.waitForURL(/\/production\/home$/);
  await page.getByRole("button", { name: /Production: app and environment/ }).waitFor();
  expect(await band()).toBe("4px");
});

test("a key is shown once, listed by its hint, and refused once it is revoked", async () => {
  await page.goto(at("settings?tab=keys"));
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByLabel("Name").fill("deploy script");
  await page.getByRole("button", { name: "Make key" }).click();
  const token = await page.locator('[data-secret="Key"]').innerText();
  await page.getByRole("button", { name: "I have stored it" }).click();
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

test("who signs in to the app is switched in the settings, and stays so", async () => {
  await page.goto(at("settings"));
  const invitedOnly = page.getByLabel("Invited people only");
  expect(await invitedOnly.isChecked()).toBe(false);
  await invitedOnly.check();
  await page.getByText("Only invited people sign in now.").waitFor();
  const rows = await running.rows<{ settings: string }>("SELECT settings FROM environment");
  expect(rows.filter(({ settings }) => settings.includes('"invitedOnly":true'))).toHaveLength(1);
  await page.reload();
  expect(await invitedOnly.isChecked()).toBe(true);
  await invitedOnly.uncheck();
  await page.getByText("Anyone may sign up now.").waitFor();
});

/** Presses it where it is there now. */
const press = (button: Locator): Promise<void> =>
  button.evaluateAll((found) => {
    for (const one of found) (one as HTMLElement).click();
  });

test("a session lost on the way is asked for in front of the page, and what was written is still there", async () => {
  await page.goto(at("relays/new"));
  await page.getByRole("button", { name: "Use this template" }).click();
  await writeEditor(page, '{"name":"kept"}');
  await page.context().clearCookies();
  // A refresh may have met the lost session first; the page is then locked already.
  const create = page.getByRole("button", { name: "Create relay" });
  await press(create);
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  expect(await shownText(page)).not.toMatch(/kept|Create relay|Production/);
  await page.getByLabel("E-mail").fill(EMAIL);
  await page.getByLabel("Password").fill("not the password");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("The e-mail address or the password is wrong").waitFor();
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor({ state: "detached" });
  expect(await readEditor(page)).toBe('{"name":"kept"}');
  await create.click();
  await page.getByRole("heading", { name: /problems to fix/ }).waitFor();
});

test("a page that another tab signed out shows nothing of what it had, nor does a dialog that was open, and both come back", async () => {
  await page.goto(at("settings?tab=keys"));
  await page.getByText("deploy script").first().waitFor();
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("half a name");
  await page.evaluate(() => fetch("/api/session", { method: "DELETE" }));
  // What a refresh meets, as the stream of the page does.
  await press(page.getByRole("button", { name: "Make key" }));
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

test("who signs in again in another tab finds this one signed in too", async () => {
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
  // A headless browser's tabs are never told that they are in front.
  await page.evaluate(() => dispatchEvent(new Event("focus")));
  await page.getByRole("heading", { name: "Sign in" }).waitFor({ state: "detached" });
  expect(await readEditor(page)).toBe('{"name":"held"}');
});

test("another owner who signs in where a session ran out is not shown the draft, and who wrote it finds it again", async () => {
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
  expect(await shownText(page)).not.toMatch(/mine|You have written/);
  await enter(EMAIL);
  expect(await readEditor(page)).toBe('{"name":"mine"}');
});

test("signing out leaves nothing, and signing in comes back to the address that was asked for", async () => {
  await page.goto(at("relays"));
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  // Local development's links open there; a server has none of them.
  await page.goto(`${running.service.url}/signin`);
  await page.getByLabel("Password").waitFor();
  await page.goto(at("events?state=dead"));
  await page.getByLabel("E-mail").fill(EMAIL);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "No event matches" }).waitFor();
  expect(page.url()).toEndWith("/events?state=dead");
});

test("an app is made from the dashboard, and opens in its development environment", async () => {
  await page.getByRole("button", { name: /Development: app and environment/ }).click();
  await page.getByRole("link", { name: "New app" }).click();
  await page.getByLabel("Name").fill("Shop");
  await page.getByRole("button", { name: "Create the app" }).click();
  await page.getByRole("button", { name: "Shop Development: app and environment, change" }).waitFor();
});

test("an unreachable service is told in a sentence, and the page mends itself", async () => {
  await page.goto(at("relays"));
  await page.getByRole("heading", { name: "No relays yet" }).waitFor();
  const mend = await cutOff(page, "**/api/**");
  await page.goto(at("relays")).catch(() => undefined);
  await page.getByText("The service cannot be reached").waitFor();
  mend();
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("heading", { name: "No relays yet" }).waitFor();
});

test("nothing of all this was refused by the page's policy or broke in its console", () => {
  expect(complaints.filter((text) => !text.includes("net::ERR_FAILED"))).toEqual([]);
});

test("the page and all it loads first is under 80 KB compressed", async () => {
  const paths = new Set(["/"]);
  let total = 0;
  for (const path of paths) {
    const url = running.service.url + path;
    const zipped = await fetch(url, { headers: { "accept-encoding": "gzip" }, decompress: false } as RequestInit);
    total += (await zipped.arrayBuffer()).byteLength;
    // What the page names, and what its scripts import before they run; what they import when asked is loaded later.
    const text = await (await fetch(url)).text();
    for (const [, found] of text.matchAll(/(?:src=|href=|from|import)"(\/[^"]+)"/g)) paths.add(found ?? "/");
  }
  expect(paths.size).toBeGreaterThan(2);
  expect(total).toBeLessThan(80 * 1024);
});
