/** The dashboard of a viewer: no button that the server would refuse, and no search in values that the role hides. */
import { afterAll, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { createOwner } from "../../src/platform/account/owner.ts";
import { EVERY } from "../../src/platform/account/permission.ts";
import { createSession } from "../../src/platform/account/session.ts";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";
import { makeOrders } from "../kit/relay-definition.ts";

const dashboard = await openDashboard({ environments: ["development", "production"], config: { mode: "server", baseUrl: null } });
const { page, context, running, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const tokens = new Map<string, string>();

async function signIn(role: "owner" | "viewer"): Promise<void> {
  const token = tokens.get(role) ?? (await makeMember(role));
  tokens.set(role, token);
  await context.clearCookies();
  await context.addCookies([{ name: "relay_session", value: token, url: running.service.url }]);
}

/** Makes the member and returns the token of a session. */
function makeMember(role: "owner" | "viewer"): Promise<string> {
  return running.service.store.write("app", async (tx) => {
    const nowMs = systemClock.now();
    const memberships = [{ appId: EVERY, name: EVERY, role, payloads: role === "owner" }];
    const person = await createOwner(tx, { email: `${role}@example.com`, passwordHash: null, memberships, nowMs });
    return (await createSession(tx, person.id, nowMs)).token;
  });
}

test("a viewer sees the state of a setting in words, and an owner can change it", async () => {
  for (const role of ["owner", "viewer"] as const) {
    await signIn(role);
    await page.goto(at("settings"));
    const card = page.getByRole("region", { name: "The processor secret" });
    await card.waitFor();
    const isOwner = role === "owner";
    await page.getByText("Create another app").waitFor({ state: "attached" });
    await card.getByLabel("Signing secret").waitFor({ state: "attached" });
    expect([role, await card.getByLabel("Signing secret").isVisible(), await page.getByText("Create another app").isVisible()]).toEqual([
      role,
      isOwner,
      isOwner,
    ]);
    const change = page.locator("label.switch").first();
    await change.waitFor();
    expect([role, await change.getByRole("checkbox").isVisible()]).toEqual([role, isOwner]);
    const said = await change.locator("span").evaluate((one) => getComputedStyle(one, "::after").content);
    expect([role, said]).toEqual([role, isOwner ? "none" : expect.stringMatching(/^": (on|off)"$/)]);
    await shoot(page, `settings-of-${role}`, { fullPage: true });
  }
});

test("a viewer gets no button to rename or delete the app, and no search in records, and an owner gets them", async () => {
  await makeOrders(running);
  for (const role of ["owner", "viewer"] as const) {
    await signIn(role);
    await page.goto(at("settings"));
    await page.getByRole("region", { name: "App", exact: true }).waitFor();
    const [rename, end] = [page.getByRole("button", { name: "Rename" }), page.getByRole("region", { name: "Delete this app" })];
    await page.getByText("Rename", { exact: true }).waitFor({ state: "attached" });
    if (role === "owner") await end.waitFor();
    expect([role, await rename.isVisible(), await end.isVisible()]).toEqual([role, role === "owner", role === "owner"]);
    await page.goto(at("records/orders"));
    await page.getByRole("heading", { name: "orders" }).waitFor();
    expect([role, await page.getByLabel("Text in a record").isVisible()]).toEqual([role, role === "owner"]);
  }
});
