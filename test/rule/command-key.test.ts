/** The key with which a command calls its own service. It stays the same until it is revoked, and never goes to another program on the same port. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hashToken } from "../../src/base/id.ts";
import { findApiKeyByToken, listApiKeys, revokeApiKey } from "../../src/platform/account/api-key.ts";
import { requireCommandKey } from "../../src/platform/account/command-key.ts";
import { runCommand } from "../kit/cli-io.ts";
import { openFreshStore } from "../kit/fresh-store.ts";
import { sealer } from "../kit/relay-kit.ts";

test("a key is made once for each environment and name, and again after a revocation", async () => {
  const { store, clock, environment } = await openFreshStore();
  const [here, there] = [await environment("development"), await environment("production")];
  const ask = (name: string, of = here) =>
    store.write("dashboard", (tx) => requireCommandKey(tx, { environment: of, name, nowMs: clock.now(), digest: (text) => sealer.digest(text) }));
  const first = await ask("relay mcp");
  expect(await ask("relay mcp")).toEqual({ token: first.token, made: null });
  const live = await ask("relay mcp", there);
  expect(live.token).toStartWith("relay_live_");
  expect(new Set([first.token, live.token, (await ask("other")).token]).size).toBe(3);
  await store.write("dashboard", (tx) => revokeApiKey(tx, here.id, first.made?.id ?? "", clock.now()));
  const next = await ask("relay mcp");
  expect(next.token).not.toBe(first.token);
  expect(await store.read((tx) => findApiKeyByToken(tx, first.token, clock.now()))).toBeNull();
  expect((await store.read((tx) => findApiKeyByToken(tx, next.token, clock.now())))?.environmentId).toBe(here.id);
  expect((await store.read((tx) => listApiKeys(tx, here.id))).items).toHaveLength(3);
});

test("a key that an earlier version made, which begins with sk_, stays in use", async () => {
  const { store, clock, environment } = await openFreshStore();
  const here = await environment("production");
  const ask = () =>
    store.write("dashboard", (tx) =>
      requireCommandKey(tx, { environment: here, name: "relay mcp", nowMs: clock.now(), digest: (text) => sealer.digest(text) }),
    );
  const { token } = await ask();
  const earlier = token.replace(/^relay_/, "sk_");
  await store.write("dashboard", (tx) => tx.run("UPDATE api_key SET key_hash = ?1", hashToken(earlier)));
  expect(await ask()).toEqual({ token: earlier, made: null });
});

test("a program that listens where a killed server left its note gets no key", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "relay-key-"));
  let asked = 0;
  const stranger = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(String(asked++)) });
  try {
    await runCommand(["apps", "create", "shop"], { cwd });
    writeFileSync(join(cwd, ".relay", "running.json"), JSON.stringify({ url: `http://127.0.0.1:${stranger.port}` }));
    const input = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n';
    const { code, told } = await runCommand(["mcp"], { cwd, input });
    expect([code, asked]).toEqual([1, 0]);
    expect(told).toContain("service_not_running");
  } finally {
    await stranger.stop(true);
    rmSync(cwd, { recursive: true });
  }
});
