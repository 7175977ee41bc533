import { describe, expect, test } from "bun:test";
import { hashToken } from "../../src/base/id.ts";
import {
  type ApiKeyKind,
  findApiKeyByToken,
  isApiKeyUseDue,
  listApiKeys,
  listSecretKeySpellings,
  mintApiKey,
  recordApiKeyUse,
  revokeApiKey,
} from "../../src/platform/account/api-key.ts";
import type { EnvironmentName } from "../../src/platform/account/environment.ts";
import { isKeyAllowedFrom } from "../../src/platform/account/key-origin.ts";
import { openFreshStore, refusalOf } from "../kit/fresh-store.ts";

const { store, clock, environment } = await openFreshStore();

async function mint(name: EnvironmentName, kind: ApiKeyKind, origins: string[] = []) {
  const bound = await environment(name);
  return store.write("app", (tx) => mintApiKey(tx, { environment: bound, kind, name: "my server", origins, nowMs: clock.now() }));
}
const find = (token: string) => store.read((tx) => findApiKeyByToken(tx, token, clock.now()));

describe("a key", () => {
  const rows: [EnvironmentName, ApiKeyKind, string][] = [
    ["development", "secret", "relay_dev_"],
    ["local", "secret", "relay_dev_"],
    ["production", "secret", "relay_live_"],
    ["development", "app", "ak_dev_"],
    ["local", "app", "ak_dev_"],
    ["production", "app", "ak_live_"],
  ];
  test.each(rows)("of %s, kind %s, begins with %s and is bound to that environment", async (name, kind, prefix) => {
    const { key, token } = await mint(name, kind, kind === "app" ? ["https://shop.example.com"] : []);
    expect(token).toMatch(new RegExp(`^${prefix}[A-Za-z0-9]{32}$`));
    expect(key.hint).toBe(`${prefix}…${token.slice(-4)}`);
    const found = await find(token);
    expect([found?.id, found?.kind, found?.environmentName, found?.appId]).toEqual([key.id, kind, name, "app_test"]);
  });

  test("is stored as a hash and listed by its hint, never as its token", async () => {
    const { token } = await mint("development", "secret");
    const { id } = await environment("development");
    const rows = await store.read((tx) => tx.all("SELECT * FROM api_key"));
    const page = await store.read((tx) => listApiKeys(tx, id));
    expect(JSON.stringify([rows, page])).not.toContain(token.slice(7));
    expect(page.items[0]?.hint).toEndWith(token.slice(-4));
  });

  test("of an earlier version, which begins with sk_, stays valid, is listed and can be revoked", async () => {
    const { key, token } = await mint("production", "secret");
    const [, earlier] = listSecretKeySpellings(token.slice("relay_live_".length), "production");
    expect(earlier).toMatch(/^sk_live_[A-Za-z0-9]{32}$/);
    await store.write("app", (tx) =>
      tx.run("UPDATE api_key SET key_hash = ?1, hint = ?2 WHERE id = ?3", hashToken(earlier), `sk_live_…${earlier.slice(-4)}`, key.id),
    );
    expect([(await find(earlier))?.id, await find(token)]).toEqual([key.id, null]);
    const { id } = await environment("production");
    expect((await store.write("app", (tx) => revokeApiKey(tx, id, key.id, clock.now()))).hint).toStartWith("sk_live_…");
    expect(await find(earlier)).toBeNull();
  });

  test("is found only by its token", async () => {
    const { token } = await mint("production", "secret");
    for (const wrong of ["", token.slice(0, -1), `${token} `, token.replace("relay_live", "relay_dev"), "relay_live_%"]) {
      expect(await find(wrong)).toBeNull();
    }
  });

  test("that is revoked stops working, stays listed, and is revoked once", async () => {
    const { key, token } = await mint("development", "secret");
    const { id } = await environment("development");
    await store.write("app", (tx) => revokeApiKey(tx, id, key.id, clock.now()));
    expect(await find(token)).toBeNull();
    const page = await store.read((tx) => listApiKeys(tx, id));
    expect(page.items.find((one) => one.id === key.id)?.revokedAt).toBe(clock.now());
    const again = await refusalOf(() => store.write("app", (tx) => revokeApiKey(tx, id, key.id, clock.now())));
    expect(again.code).toBe("not_found");
  });

  test("cannot be revoked from another environment", async () => {
    const { key, token } = await mint("development", "secret");
    const other = await environment("production");
    const refusal = await refusalOf(() => store.write("app", (tx) => revokeApiKey(tx, other.id, key.id, clock.now())));
    expect([refusal.code, (await find(token)) !== null]).toEqual(["not_found", true]);
  });

  test("stores its last use at most once a minute", async () => {
    const { key, token } = await mint("development", "secret");
    const touch = () => store.write("app", (tx) => recordApiKeyUse(tx, key.id, clock.now()));
    const first = clock.now();
    await touch();
    await clock.advance(59_999);
    const used = await find(token);
    expect(used === null ? null : isApiKeyUseDue(used, clock.now())).toBe(false);
    await touch();
    expect((await find(token))?.lastUsedAt).toBe(first);
    await clock.advance(1);
    expect(used === null ? null : isApiKeyUseDue(used, clock.now())).toBe(true);
    await touch();
    expect((await find(token))?.lastUsedAt).toBe(first + 60_000);
  });

  test("is listed newest first, in pages", async () => {
    const { id } = await environment("development");
    const all = await store.read((tx) => listApiKeys(tx, id));
    const first = await store.read((tx) => listApiKeys(tx, id, { limit: 2, after: null }));
    const after = Buffer.from(first.next ?? "", "base64url").toString();
    const second = await store.read((tx) => listApiKeys(tx, id, { limit: 2, after }));
    expect([...first.items, ...second.items]).toEqual(all.items.slice(0, 4));
  });

  const refused: [string, EnvironmentName, ApiKeyKind, string[], string][] = [
    ["a live app key without origins", "production", "app", [], "origins is missing"],
    ["a secret key with origins", "development", "secret", ["https://a.example"], "app keys"],
    ["an origin with a path", "development", "app", ["https://a.example/x"], "no path"],
    ["an origin without https", "production", "app", ["http://a.example"], "https"],
    ["a wildcard as origin", "production", "app", ["*"], "https://host"],
    ["an origin with credentials", "production", "app", ["https://u:p@a.example"], "https://host"],
  ];
  test.each(refused)("is refused: %s", async (_rule, name, kind, origins, words) => {
    const refusal = await refusalOf(() => mint(name, kind, origins));
    expect([refusal.code, refusal.message]).toEqual(["invalid_input", expect.stringContaining(words)]);
  });
});

describe("an app key", () => {
  const origins = ["https://shop.example.com"];
  const rows: [string, EnvironmentName, ApiKeyKind, string, boolean][] = [
    ["of a live environment works from its own origin", "production", "app", "https://shop.example.com", true],
    ["of a live environment does not work from another origin", "production", "app", "https://evil.example.com", false],
    ["of a live environment does not work from a subdomain", "production", "app", "https://x.shop.example.com", false],
    ["of a live environment does not work from localhost", "production", "app", "http://localhost:3000", false],
    ["of a live environment does not work from another port", "production", "app", "https://shop.example.com:8443", false],
    ["of a development environment works from any https address", "development", "app", "https://preview.example.net", true],
    ["of a development environment works from localhost", "development", "app", "http://localhost:3000", true],
    ["of a development environment works from 127.0.0.1", "development", "app", "http://127.0.0.1:5173", true],
    ["of a development environment does not work from plain http", "development", "app", "http://shop.example.com", false],
    ["of a development environment does not work from the opaque origin", "development", "app", "null", false],
    ["of a development environment accepts an origin, not an address", "development", "app", "https://a.example/x", false],
    ["is required in a browser, because a secret key never works there", "development", "secret", "https://shop.example.com", false],
  ];
  test.each(rows)("%s", (_rule, environmentName, kind, origin, works) => {
    expect(isKeyAllowedFrom({ kind, environmentName, origins }, origin)).toBe(works);
  });
});
