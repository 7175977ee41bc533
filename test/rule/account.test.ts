import { describe, expect, test } from "bun:test";
import { type Actor, actorOrigin, COMMAND_LINE, formatActor } from "../../src/platform/account/api-key.ts";
import { createApp, listApps } from "../../src/platform/account/app.ts";
import {
  findEnvironment,
  findEnvironmentById,
  isAlertEnabled,
  listEnvironments,
  readSettingsSection,
  saveSettings,
  setHold,
  setProcessorSecret,
} from "../../src/platform/account/environment.ts";
import { createOwner, findOwnerByEmail, hashPassword, setOwnerPassword, verifyPassword } from "../../src/platform/account/owner.ts";
import { createSession, findSession } from "../../src/platform/account/session.ts";
import { openFreshStore, refusalOf } from "../kit/fresh-store.ts";

const { store, clock, environment } = await openFreshStore();

describe("an app", () => {
  const made: [string, { id?: string; name: string }, string][] = [
    ["takes an explicit id", { id: "shop_1", name: "Shop" }, "shop_1"],
    ["derives its id from its name", { name: "Büro & Söhne GmbH" }, "buro-sohne-gmbh"],
    ["numbers a derived id that is taken", { name: "Büro Söhne, GmbH" }, "buro-sohne-gmbh-2"],
    ["is app when its name has no Latin letter", { name: "食堂" }, "app"],
    ["does not begin its id with a digit", { name: "24 hours" }, "hours"],
  ];
  test.each(made)("%s", async (_rule, input, id) => {
    const { app, environments } = await store.write("app", (tx) =>
      createApp(tx, { ...input, environments: ["development", "production"], nowMs: clock.now() }),
    );
    expect(app.id).toBe(id);
    expect(environments.map((one) => one.name)).toEqual(["development", "production"]);
    expect(await store.read((tx) => listEnvironments(tx, id))).toEqual(environments);
    expect((await store.read(listApps)).map((one) => one.id)).toContain(id);
  });

  const refused: [string, { id?: string; name: string }, string, string][] = [
    ["refuses an id that exists", { id: "app_test", name: "x" }, "name_taken", "app_test"],
    ["refuses an id with a slash", { id: "a/b", name: "x" }, "invalid_input", "id"],
    ["refuses an id with capitals", { id: "App", name: "x" }, "invalid_input", "id"],
    ["refuses an empty name", { name: "  " }, "invalid_input", "name"],
  ];
  test.each(refused)("%s", async (_rule, input, code, field) => {
    const before = await store.read(listApps);
    const refusal = await refusalOf(() => store.write("app", (tx) => createApp(tx, { ...input, environments: [], nowMs: clock.now() })));
    expect([refusal.code as string, refusal.message]).toEqual([code, expect.stringContaining(field)]);
    expect(await store.read(listApps)).toEqual(before);
  });
});

describe("an environment", () => {
  test("is found by app and name, never by another app's id", async () => {
    const found = await environment("production");
    expect(await store.read((tx) => findEnvironmentById(tx, found.id))).toEqual(found);
    expect(await store.read((tx) => findEnvironment(tx, "other", "production"))).toBeNull();
    expect(await store.read((tx) => findEnvironment(tx, "app_test", "staging"))).toBeNull();
  });

  test("keeps the settings sections that a save does not name, and counts its version", async () => {
    const before = await environment("development");
    await store.write("app", (tx) => saveSettings(tx, before, { mail: { host: "m" } }, before.version));
    const second = await environment("development");
    await store.write("app", (tx) => saveSettings(tx, second, { alerts: { relay_failed: false } }, second.version));
    const after = await environment("development");
    expect(after.version).toBe(before.version + 2);
    expect(readSettingsSection(after, "mail")).toEqual({ host: "m" });
    expect(readSettingsSection(after, "nothing")).toEqual({});
    expect([isAlertEnabled(after, "relay_failed"), isAlertEnabled(before, "relay_failed"), isAlertEnabled(after, "toString")]).toEqual([
      false,
      true,
      true,
    ]);
  });

  test("refuses settings read at an older version, and says the current one", async () => {
    const current = await environment("development");
    const refusal = await refusalOf(() => store.write("app", (tx) => saveSettings(tx, current, { mail: null }, current.version - 1)));
    expect([refusal.code, refusal.extra.details]).toEqual(["version_conflict", { version: current.version }]);
    expect(await environment("development")).toEqual(current);
  });

  test("is put on hold once and released once", async () => {
    const { id } = await environment("production");
    const hold = (held: boolean, at: number) => store.write("app", (tx) => setHold(tx, id, held, { newestArrival: 0, nowMs: at }));
    expect([await hold(true, 5), await hold(true, 6), (await environment("production")).heldAt]).toEqual([true, false, 5]);
    expect([await hold(false, 7), await hold(false, 8), (await environment("production")).heldAt]).toEqual([true, false, null]);
  });

  test("refuses the processor secret of another environment of the same app", async () => {
    const secret = { sealed: Uint8Array.of(1), fingerprint: "f1", digest: Uint8Array.of(7, 7) };
    const [development, production] = [await environment("development"), await environment("production")];
    await store.write("app", (tx) => setProcessorSecret(tx, development, secret, 9));
    const refusal = await refusalOf(() => store.write("app", (tx) => setProcessorSecret(tx, production, { ...secret, sealed: Uint8Array.of(2) }, 9)));
    expect([refusal.code, refusal.message]).toEqual(["invalid_input", expect.stringContaining("development already uses this processor secret")]);
    expect((await environment("production")).processorSecret).toBeNull();
    await store.write("app", (tx) => setProcessorSecret(tx, development, null, 10));
    await store.write("app", (tx) => setProcessorSecret(tx, production, secret, 11));
    const after = await environment("production");
    expect([after.processorSecretFingerprint, after.processorSecretSetAt]).toEqual(["f1", 11]);
  });
});

describe("an owner", () => {
  test("signs in with the password whose argon2id hash is stored, and with no other", async () => {
    const passwordHash = await hashPassword("correct horse battery");
    expect(passwordHash).toStartWith("$argon2id$");
    await store.write("app", (tx) => createOwner(tx, { email: " Ada@Example.com ", passwordHash, nowMs: clock.now() }));
    const owner = await store.read((tx) => findOwnerByEmail(tx, "ada@example.COM"));
    expect(owner?.email).toBe("Ada@Example.com");
    const hash = owner?.passwordHash ?? null;
    expect(await verifyPassword("correct horse battery", hash)).toBe(true);
    expect(await verifyPassword("correct horse batterz", hash)).toBe(false);
  });

  test("who does not exist cannot sign in, not even with the password of the decoy hash", async () => {
    expect(await verifyPassword("nobody's password", null)).toBe(false);
    expect(await verifyPassword("x".repeat(1_000_000), null)).toBe(false);
  });

  test("loses every session when the password changes", async () => {
    const owner = await store.read((tx) => findOwnerByEmail(tx, "ada@example.com"));
    const ownerId = owner?.id ?? "";
    const { token } = await store.write("app", (tx) => createSession(tx, ownerId, clock.now()));
    const passwordHash = await hashPassword("another password");
    await store.write("app", (tx) => setOwnerPassword(tx, ownerId, passwordHash, clock.now()));
    expect(await store.read((tx) => findSession(tx, token, clock.now()))).toBeNull();
    const after = await store.read((tx) => findOwnerByEmail(tx, "ada@example.com"));
    expect(await verifyPassword("another password", after?.passwordHash ?? null)).toBe(true);
  });

  const create = (email: string) => () => store.write("app", (tx) => createOwner(tx, { email, passwordHash: null, nowMs: clock.now() }));
  const refused: [string, () => unknown, string, string][] = [
    ["has one account for each address, regardless of case", create("ADA@example.com"), "name_taken", "address"],
    ["needs an address", create("ada"), "invalid_input", "email"],
    ["needs an address of one line", create("a@b\nc@d"), "invalid_input", "email"],
    ["needs a password of ten characters", () => hashPassword("123456789"), "invalid_input", "password"],
    ["cannot fill the memory with a long password", () => hashPassword("x".repeat(257)), "invalid_input", "password"],
    ["must exist to get a new password", () => store.write("app", (tx) => setOwnerPassword(tx, "own_none", "h", clock.now())), "not_found", "owner"],
  ];
  test.each(refused)("%s", async (_rule, work, code, word) => {
    const refusal = await refusalOf(work);
    expect([refusal.code as string, refusal.message]).toEqual([code, expect.stringContaining(word)]);
  });
});

describe("an actor", () => {
  const rows: [Actor, string, string][] = [
    [{ kind: "key", id: "key_1", owner: null }, "key:key_1", "app"],
    [{ kind: "key", id: "key_1", owner: "ann@example.com" }, "owner:ann@example.com by key:key_1", "app"],
    [{ kind: "owner", id: "own_1", email: "a@b.c" }, "owner:a@b.c", "dashboard"],
    [COMMAND_LINE, "command line", "dashboard"],
  ];
  test.each(rows)("%p is %s in audit rows and writes as %s", (actor, words, origin) => {
    expect([formatActor(actor), actorOrigin(actor) as string]).toEqual([words, origin]);
  });
});
