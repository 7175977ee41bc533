/** Tests passkeys in the dashboard with a virtual authenticator of the browser: adding one, signing in with it, and confirming with it. */
import { afterAll, expect, test } from "bun:test";
import type { CDPSession, Page } from "playwright-core";
import { findBarriers } from "../kit/axe.ts";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";
import { APP } from "../kit/running-service.ts";

/** A passkey needs the address in the base URL, so the port must be known before the start. */
function findFreePort(): number {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port = 0 } = server;
  server.stop(true);
  return port;
}

const port = findFreePort();
const origin = `http://localhost:${port}`;
const dashboard = await openDashboard({ config: { mode: "server", port, baseUrl: origin }, environments: ["development", "production"] });
const { page, running, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const OWNER = "owner@example.com";
const PASSWORD = "a long enough password";
const SESSIONS = `${origin}/apps/${APP}/development/settings?tab=sessions`;

async function addAuthenticator(on: Page): Promise<{ session: CDPSession; id: string }> {
  const session = await on.context().newCDPSession(on);
  await session.send("WebAuthn.enable");
  const options = {
    protocol: "ctap2",
    transport: "internal",
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
    automaticPresenceSimulation: true,
  } as const;
  const { authenticatorId: id } = await session.send("WebAuthn.addVirtualAuthenticator", { options });
  return { session, id };
}

const { session, id } = await addAuthenticator(page);
const verify = (isUserVerified: boolean) => session.send("WebAuthn.setUserVerified", { authenticatorId: id, isUserVerified });

async function signOut(): Promise<void> {
  await page.goto(SESSIONS);
  await page.getByRole("button", { name: /^Sign out: / }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
}

test("a member adds a passkey, and gets ten recovery codes", async () => {
  await page.getByLabel("E-mail").fill(OWNER);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Create the owner and sign in" }).click();
  await page.waitForURL(/\/development\/home$/);
  await page.goto(SESSIONS);
  await page.getByRole("button", { name: "Add a passkey" }).click();
  await page.getByLabel("Name of the device").fill("Laptop");
  await shoot(page, "passkey-add");
  expect(await findBarriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Create the passkey" }).click();
  await page.locator('[data-secret="Recovery codes"]').waitFor();
  await page.getByRole("button", { name: "Copy Recovery codes" }).click();
  await page.getByRole("button", { name: "I stored the codes" }).click();
  await page.getByText("10 recovery codes are left.").waitFor();
  await page.getByText("Laptop", { exact: true }).waitFor();
  await shoot(page, "passkey-settings", { fullPage: true });
  expect(await findBarriers(page)).toEqual([]);
});

test("the passkey signs in by itself", async () => {
  await signOut();
  await shoot(page, "passkey-signin");
  expect(await findBarriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await page.waitForURL(/\/home$/);
});

test("a device that does not verify its user does not sign in, and the page says so", async () => {
  await signOut();
  await verify(false);
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await page.getByText(/The browser gave no passkey/).waitFor();
  await verify(true);
});

test("the passkey completes a sign-in with the password", async () => {
  await page.getByLabel("E-mail").fill(OWNER);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("heading", { name: "Use your passkey" }).waitFor();
  await shoot(page, "passkey-step");
  expect(await findBarriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Use a passkey", exact: true }).click();
  await page.waitForURL(/\/home$/);
});

test("the passkey confirms a sensitive action of an old session", async () => {
  await running.service.store.write("dashboard", (tx) => tx.run("UPDATE session SET authenticated_at = 1"));
  await page.goto(SESSIONS);
  await page.getByRole("button", { name: "New recovery codes" }).click();
  await page.getByRole("button", { name: "Confirm with a passkey" }).waitFor();
  await shoot(page, "passkey-confirm");
  expect(await findBarriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Confirm with a passkey" }).click();
  await page.getByRole("heading", { name: "New recovery codes" }).waitFor();
  await page.getByRole("button", { name: "Copy Recovery codes" }).click();
  await page.getByRole("button", { name: "I stored the codes" }).click();
});

test("a copy of the passkey, whose counter is lower, is refused", async () => {
  const { credentials } = await session.send("WebAuthn.getCredentials", { authenticatorId: id });
  const [credential] = credentials;
  if (credential === undefined) throw new Error("The authenticator has no passkey.");
  await session.send("WebAuthn.clearCredentials", { authenticatorId: id });
  await session.send("WebAuthn.addCredential", { authenticatorId: id, credential: { ...credential, signCount: 0 } });
  await signOut();
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await page.getByText(/a copy of it may exist/).waitFor();
  const rows = await running.rows<{ after: string }>("SELECT after FROM audit WHERE action = 'owner.factor_refused'");
  expect(rows.map(({ after }) => after)).toEqual(['{"method":"passkey","why":"counter"}']);
});

test("the page reported no error", () => {
  expect(complaints).toEqual([]);
});
