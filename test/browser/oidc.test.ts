/** Sign-in at an OpenID provider in a real browser: set-up, sign-in, confirmation, sign-out and refusals. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { systemClock } from "../../src/base/clock.ts";
import { createOwner } from "../../src/platform/account/owner.ts";
import { createSigninLink } from "../../src/platform/account/session.ts";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";
import { CLIENT_ID, CLIENT_SECRET, type OidcDouble, startOidcProvider } from "../kit/oidc-provider.ts";
import { APP } from "../kit/running-service.ts";

const dashboard = await openDashboard({
  config: { mode: "server", allowPrivate: ["127.0.0.1"] },
  environments: ["development", "production"],
});
const { page, running, context, at, complaints } = dashboard;
let provider: OidcDouble;
beforeAll(async () => {
  const base = running.service.url;
  provider = await startOidcProvider({ redirectUrl: `${base}/signin/oidc`, after: `${base}/` });
  provider.accounts.set("kim", { email: "kim@example.com", email_verified: true, groups: ["admins"] });
  provider.accounts.set("lee", { email: "lee@example.com", email_verified: true, groups: ["staff"] });
});
afterAll(async () => {
  await provider[Symbol.asyncDispose]();
  await dashboard[Symbol.asyncDispose]();
});

/** Makes the last authentication of every session 15 minutes old. */
const ageSessions = () => running.service.store.write("dashboard", (tx) => tx.run("UPDATE session SET authenticated_at = authenticated_at - 900000"));

async function signInAtProvider(of: Page, name: string): Promise<void> {
  await of.getByLabel("Name").fill(name);
  await of.getByRole("button", { name: "Continue" }).click();
}

test("an owner sets the provider and tests it", async () => {
  await page.getByLabel("E-mail").fill("owner@example.com");
  await page.getByLabel("Password").fill("a long enough password");
  await page.getByRole("button", { name: "Create the owner and sign in" }).click();
  await page.getByRole("heading", { name: "No relays yet" }).waitFor();
  await page.goto(at("settings?tab=members"));
  const card = page.getByRole("region", { name: "Single sign-on" });
  expect(await card.innerText()).toContain(`${running.service.url}/signin/oidc`);
  await card.getByLabel("Issuer URL").fill(provider.issuer);
  await card.getByLabel("Client ID").fill(CLIENT_ID);
  await card.getByLabel("Client secret").fill(CLIENT_SECRET);
  await card.getByLabel("Name on the button").fill("Example ID");
  await card.getByRole("button", { name: "Add a group" }).click();
  await card.getByRole("group", { name: "Group 1" }).getByRole("textbox").fill("admins");
  await card.getByLabel("Role").first().selectOption("owner");
  await card.getByRole("button", { name: "Save provider" }).click();
  await page.getByText("The provider is saved.").waitFor();
  await card.getByRole("button", { name: "Test the provider" }).click();
  await page.getByText("The provider answers. A sign-out here also ends the session there.").waitFor();
  expect(await page.content()).not.toContain(CLIENT_SECRET);
  await card.getByLabel("Members can also sign in with passwords").click();
  await card.getByText("No owner of everything has signed in with Example ID yet").waitFor();
  expect(await card.getByLabel("Members can also sign in with passwords").isChecked()).toBe(true);
});

test("a person without a role is refused in one sentence", async () => {
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in with Example ID" }).click();
  await signInAtProvider(page, "lee");
  await page.getByText("No group of yours at Example ID gives a role on this server").waitFor();
  expect(new URL(page.url()).search).toBe("");
  await context.clearCookies();
  await page.getByRole("link", { name: "Sign in again" }).click();
});

test("a member signs in at the provider, and returns to the page that was asked for", async () => {
  await page.goto(at("settings?tab=members"));
  await page.getByRole("button", { name: "Sign in with Example ID" }).click();
  await signInAtProvider(page, "kim");
  await page.getByRole("region", { name: "Single sign-on" }).waitFor();
  expect(page.url()).toBe(at("settings?tab=members"));
  await page.getByText("owner of every app by a group").waitFor();
});

test("a sensitive change asks to confirm at the provider in a new tab, and then continues", async () => {
  await ageSessions();
  await page.getByLabel("Members can also sign in with passwords").click();
  const link = page.getByRole("dialog").getByRole("link", { name: "Confirm with Example ID" });
  await link.waitFor();
  const [tab] = await Promise.all([context.waitForEvent("page"), link.click()]);
  await signInAtProvider(tab, "kim");
  await tab.getByRole("heading", { name: "You are confirmed" }).waitFor();
  await tab.close();
  await page.getByText("Members sign in only at the provider.").waitFor();
  expect(await running.rows("SELECT one FROM oidc_provider WHERE passwords = 0")).toHaveLength(1);
});

test("a member without a password sets none here, because the server takes none", async () => {
  await page.goto(at("settings?tab=sessions"));
  await page.getByRole("region", { name: "Second factor" }).waitFor();
  await page.getByText("You sign in without a password").waitFor();
  expect(await page.getByRole("region", { name: "New password" }).count()).toBe(0);
  await running.service.store.write("app", (tx) => tx.run("UPDATE oidc_provider SET passwords = 1"));
  await page.reload();
  await page.getByRole("region", { name: "New password" }).waitFor();
  expect(await page.getByLabel("Current password").count()).toBe(0);
  await shoot(page, "sessions-no-password", { fullPage: true });
  await running.service.store.write("app", (tx) => tx.run("UPDATE oidc_provider SET passwords = 0"));
  await page.goto(at("settings?tab=members"));
});

test("an invitation leads to the provider while passwords are off", async () => {
  const nowMs = systemClock.now();
  const { token } = await running.service.store.write("app", async (tx) => {
    const { id } = await createOwner(tx, { email: "max@example.com", passwordHash: null, nowMs });
    return await createSigninLink(tx, { kind: "reset", ownerId: id, nowMs });
  });
  const other = await context.browser()?.newPage();
  if (other === undefined) throw new Error("There is no browser.");
  await other.goto(`${running.service.url}/reset#${token}`);
  await other.getByText("This server takes no password.").waitFor();
  await shoot(other, "invitation-provider");
  await other.getByRole("button", { name: "Sign in with Example ID" }).click();
  await signInAtProvider(other, "kim");
  await other.waitForURL((url) => url.pathname.startsWith(`/apps/${APP}/`));
  await other.close();
  const newest = "DELETE FROM session WHERE created_at = (SELECT max(created_at) FROM session)";
  await running.service.store.write("app", (tx) => tx.run(newest));
});

test("a sign-out ends the session here and at the provider, and no password is asked for", async () => {
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign out of the provider" }).click();
  await page.getByRole("button", { name: "Sign in with Example ID" }).waitFor();
  expect(page.url()).toBe(`${running.service.url}/`);
  expect(await page.getByLabel("Password").count()).toBe(0);
  expect(provider.paths).toContain("/session/end/confirm");
  expect(await running.rows("SELECT id FROM session WHERE id IN (SELECT session_id FROM oidc_session)")).toEqual([]);
  // The provider asks again, because its session has ended.
  await page.getByRole("button", { name: "Sign in with Example ID" }).click();
  await signInAtProvider(page, "kim");
  await page.waitForURL((url) => url.pathname.startsWith(`/apps/${APP}/`));
});

test("nothing broke and no policy was violated", () => {
  expect(complaints).toEqual([]);
});
