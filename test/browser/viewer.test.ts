/** The dashboard of members with a role: no button that the server would refuse, and no search in values that the role hides. */
import { afterAll, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import type { Role } from "../../src/platform/account/permission.ts";
import { openDashboard } from "../kit/browser.ts";
import { shoot } from "../kit/browser-shots.ts";
import { addMember, makeRole } from "../kit/member.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall, writeOrder } from "../kit/relay-definition.ts";
import { APP } from "../kit/running-service.ts";

const dashboard = await openDashboard({ environments: ["development", "production"], config: { mode: "server", baseUrl: null } });
const { page, context, running, at } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

const tokens = new Map<string, string>();

async function signIn(role: Role): Promise<void> {
  const token = tokens.get(role) ?? (await makeMember(role));
  tokens.set(role, token);
  await context.clearCookies();
  await context.addCookies([{ name: "relay_session", value: token, url: running.service.url }]);
}

/** Makes the member and returns the token of a session. */
async function makeMember(role: Role): Promise<string> {
  const made = await running.service.store.write("app", (tx) => addMember(tx, role, { nowMs: systemClock.now(), memberships: [makeRole(role)] }));
  return made.token;
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

test("a viewer reads the type of an event as its title, and the search says what it finds", async () => {
  await saveRelay(
    running,
    receiverDefinition({ name: "orders", map: { event_id: "id", event_type: "type", order: "order" }, actions: [writeOrder] }),
  );
  await running.hook("orders", signedCall({ id: "evt-1", type: "order.paid", order: "zebra-7731" }));
  await running.drain();
  for (const role of ["owner", "viewer"] as const) {
    await signIn(role);
    await page.goto(at("events"));
    const search = page.getByLabel(role === "owner" ? "Find text or an event id" : "Find an event id or the address of a person");
    await search.fill("zebra");
    await page.getByRole("link", { name: /order.paid/ }).waitFor();
    if (role === "viewer") {
      await search.press("Enter");
      await page.getByText("A search in payloads (q) would show values that you may not see").waitFor();
      await page.goto(at("events"));
    }
    const link = page.getByRole("link", { name: /order.paid/ });
    await page.goto(running.service.url + (await link.getAttribute("href")));
    await page.getByRole("heading", { name: "order.paid · orders event" }).waitFor();
    await shoot(page, `event-of-${role}`);
  }
});

test("a viewer reads whom to ask where an owner gets the link of a fix, on each page that has only this fix", async () => {
  const grants = receiverDefinition({
    name: "granter",
    map: { event_id: "id", person_email: "buyer" },
    actions: [{ type: "grant_access", entitlement: "access:nothing" }],
  });
  await saveRelay(running, grants);
  await running.hook("granter", signedCall({ id: "dead-1", buyer: "ada@example.com" }));
  await running.drain();
  const hold = async (held: boolean) => {
    const { version } = (await running.api("GET", "/settings")).body.settings;
    expect((await running.api("PUT", "/settings", { version, held })).status).toBe(200);
  };
  await hold(true);
  const rows: readonly [path: string, link: string, ask: string][] = [
    ["events", "Release it in Settings", "Your role cannot release it. Ask an owner."],
    ["home", "Create access slug nothing…", "Your role cannot fix this. Ask an owner."],
    ["relays/granter", "Create access slug nothing…", "Your role cannot fix this. Ask an owner."],
  ];
  const pages: readonly [path: string, ask: string][] = [
    ["mail?tab=domain", "Your role cannot change this. Ask an owner."],
    ["settings", "Your role cannot change settings. Ask an owner."],
    ["settings?tab=keys", "Your role cannot make or revoke keys. Ask an owner."],
    ["alerts?tab=channels", "Your role cannot change this. Ask an owner."],
    ["relays/new", "Your role cannot create a relay here. Ask an owner."],
  ];
  for (const role of ["owner", "viewer"] as const) {
    await signIn(role);
    const isOwner = role === "owner";
    for (const [path, link, ask] of rows) {
      await page.goto(at(path));
      const [way, words] = [page.getByRole("link", { name: link }).first(), page.getByText(ask).first()];
      await (isOwner ? way : words).waitFor();
      expect([role, path, await way.isVisible(), await words.isVisible()]).toEqual([role, path, isOwner, !isOwner]);
      await shoot(page, `fix-of-${role}`, { fullPage: true });
    }
    for (const [path, ask] of pages) {
      await page.goto(at(path));
      const words = page.getByText(ask).first();
      await words.waitFor({ state: "attached" });
      expect([role, path, await words.isVisible()]).toEqual([role, path, !isOwner]);
    }
  }
  await hold(false);
});

test("support acts on people and replays events, and gets no button to erase, to change settings or to make a key", async () => {
  const { person } = (await running.api("POST", "/persons", { email: "kim@example.com" })).body;
  await signIn("support");
  await page.goto(at(`people/${person.id}`));
  await page.getByRole("button", { name: "Grant access…" }).waitFor();
  expect(await page.getByRole("button", { name: "Erase…" }).isVisible()).toBe(false);
  await page.goto(at("events"));
  await page.getByRole("link", { name: /order.paid/ }).click();
  await page
    .getByRole("button", { name: /^Replay/ })
    .first()
    .waitFor();
  await page.goto(at("settings?tab=keys"));
  await page.getByText("New key", { exact: true }).waitFor({ state: "attached" });
  expect(await page.getByRole("button", { name: "New key" }).isVisible()).toBe(false);
});

test("an owner limits a new key to some permissions, which the list shows", async () => {
  await signIn("owner");
  await page.goto(at("settings?tab=keys"));
  await page.getByRole("button", { name: "New key" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("reader");
  await dialog.getByLabel("Limit what the key may do").check();
  expect(await dialog.getByLabel(/^read read everything/).isChecked()).toBe(true);
  await dialog.getByLabel(/^read read everything/).uncheck();
  expect(await dialog.getByRole("button", { name: "Create key" }).isDisabled()).toBe(true);
  await dialog.getByLabel(/^read read everything/).check();
  await dialog.getByLabel(/^replay /).check();
  await shoot(page, "key-scopes");
  await dialog.getByRole("button", { name: "Create key" }).click();
  await dialog.getByRole("button", { name: "I stored the secret" }).click();
  await page
    .getByRole("row", { name: /reader/ })
    .getByText("read, replay")
    .waitFor();
  await shoot(page, "key-list-scopes");
  expect(await running.rows("SELECT scopes FROM api_key WHERE name = 'reader'")).toEqual([{ scopes: '["read","replay"]' }]);
});

test("an owner lets production need a second person, and only there", async () => {
  await signIn("owner");
  const production = at("settings").replace("/development/", "/production/");
  await page.goto(production);
  const card = page.getByRole("region", { name: "Changes of production" });
  const change = card.getByRole("checkbox", { name: "Needs a second person" });
  await change.click();
  await page.getByRole("status").getByText("Changes of production need a second person now.").waitFor();
  await shoot(page, "second-person", { fullPage: true });
  await page.reload();
  await card.waitFor();
  expect(await change.isChecked()).toBe(true);
  await change.click();
  await page.getByRole("status").getByText("One owner can change production again.").waitFor();
  await page.goto(at("settings"));
  await page.getByRole("region", { name: "The processor secret" }).waitFor();
  expect(await card.count()).toBe(0);
});

test("a member of only development asks for no approvals of production", async () => {
  const asked: string[] = [];
  page.on("response", (response) => {
    if (response.status() === 403 || response.url().includes("/approvals")) asked.push(response.url());
  });
  const memberships = [makeRole("developer", APP, "development")];
  const { token } = await running.service.store.write("app", (tx) => addMember(tx, "dev", { nowMs: systemClock.now(), memberships }));
  await context.clearCookies();
  await context.addCookies([{ name: "relay_session", value: token, url: running.service.url }]);
  await page.goto(at("home"));
  await page.getByRole("heading", { name: "Home" }).waitFor();
  await page.goto(at("relays"));
  await page.getByRole("link", { name: "orders" }).first().waitFor();
  expect(asked).toEqual([]);
});
