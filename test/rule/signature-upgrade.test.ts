/** An upgrade of a database with stored signatures. It deletes no signature that may verify again, and still deletes the expired ones. */
import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { DAY_MS } from "../../src/base/limit.ts";
import { createLog } from "../../src/base/log.ts";
import { RETENTION } from "../../src/engine/maintenance/retention.ts";
import { UPGRADES } from "../kit/upgraded-store.ts";

interface Kept {
  name: string;
  until: number | null;
  secret: Uint8Array | null;
}

/** The schema before secrets had digests. */
const BEFORE = 46;
const remember = (name: string, byte: string, until: number | null): string =>
  `INSERT INTO signature_memory VALUES (1, '${name}', x'${byte}', x'${byte}', NULL, ${until})`;
const MARK = "a1a2a3a4a5a6a7a8";
const DIGEST = `x'${MARK}${"00".repeat(24)}'`;
const relay = (name: string, digest: string | null, setAt: number | null): string =>
  `INSERT INTO relay (id, environment_id, name, definition, origin_kind, origin_at, active_since, created_at, updated_at, secret_digest, secret_set_at)
   VALUES ('rly_${name}', 1, '${name}', '{}', 'dashboard', 0, 0, 0, 0, ${digest}, ${setAt})`;
const WRITTEN = [
  "INSERT INTO app (id, name, created_at) VALUES ('shop', 'Shop', 0)",
  "INSERT INTO environment (id, app_id, name, created_at) VALUES (1, 'shop', 'production', 0)",
  relay("there", DIGEST, 0),
  relay("fresh", DIGEST, Date.now() - DAY_MS),
  relay("processor", null, null),
  remember("there", "01", null),
  // Belongs to a replaced secret, which may have been pasted again.
  remember("there", "02", 500),
  // Expires with its own timestamp.
  remember("there", "03", 8 * DAY_MS + 1),
  // Belongs to the current secret, or to another one that was replaced less than a day ago.
  remember("fresh", "04", null),
  remember("fresh", "05", 500),
  remember("processor", "06", null),
  remember("gone", "07", 900),
];

test.each([...UPGRADES])("$on", async ({ open }) => {
  await using opened = await open(BEFORE, WRITTEN);
  const { store } = opened;
  const log = createLog({ format: "json", clock: systemClock, sink: () => undefined });
  const forget = async (nowMs: number): Promise<unknown[]> => {
    for (const name of ["signatures", "signatures of secrets that are gone"]) {
      let cursor: number | null = 0;
      while (cursor !== null) cursor = await store.write("relay", async (tx) => (await RETENTION[name]?.(tx, 0, nowMs, log)) ?? null);
    }
    const rows = await store.read((tx) => tx.all<Kept>("SELECT relay_name AS name, until, secret FROM signature_memory ORDER BY signed_text_hash"));
    return rows.map(({ name, until, secret }) => [name, until, secret === null ? null : Buffer.from(secret).toString("hex")]);
  };
  const own = ["there", 8 * DAY_MS + 1, null];
  const present = [
    ["there", null, MARK],
    ["there", null, MARK],
  ];
  const others = [
    ["fresh", null, null],
    ["fresh", null, null],
    ["processor", null, null],
  ];
  expect(await forget(899)).toEqual([...present, own, ...others, ["gone", null, null]]);
  expect(await forget(900)).toEqual([...present, own, ...others]);
  expect(await forget(8 * DAY_MS)).toEqual([...present, own, ...others]);
  expect(await forget(8 * DAY_MS + 1)).toEqual([...present, ...others]);
  // Replaces the secret by another one.
  await store.write("relay", async (tx) => {
    await tx.run("UPDATE relay SET secret_digest = NULL");
    for (const name of ["there", "fresh"])
      await tx.run("INSERT INTO retired_secret VALUES (1, ?1, ?2, 0, ?3)", name, Buffer.from(MARK, "hex"), new Uint8Array());
  });
  expect(await forget(8 * DAY_MS + 1)).toEqual(others);
});
