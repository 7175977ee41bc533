/** Nodes that start at once on an empty database with separate data directories. One master key seals, and a node with another key is refused. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSealer } from "../../src/rules/relay/master-key-proof.ts";
import { openTestStore } from "../kit/fresh-store.ts";

const KEY = "ab".repeat(32);

test.each([
  ["a key that each node made", null, 1],
  ["one shared key", KEY, 3],
] as const)("nodes start with %s", async (_which, masterKey, opened) => {
  await using fresh = await openTestStore();
  await fresh.store.write("app", (tx) => tx.run("DELETE FROM master_key_proof"));
  const folders = [1, 2, 3].map(() => mkdtempSync(join(tmpdir(), "relay-node-")));
  const ended = await Promise.allSettled(folders.map((dataDir) => openSealer(fresh.store, { dataDir, masterKey })));
  for (const folder of folders) rmSync(folder, { recursive: true });
  const refused = ended.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  expect(ended.length - refused.length).toBe(opened);
  for (const reason of refused)
    expect(reason).toMatchObject({
      code: "invalid_input",
      message: expect.stringContaining("is not the master key of this database"),
    });
});
