/** A database of before that remembers signatures: none that may verify again is forgotten for the upgrade, and what was to go goes. */
import { expect, test } from "bun:test";
import { RETENTION } from "../../src/caretaker/retention.ts";
import { systemClock } from "../../src/ground/clock.ts";
import { createLog } from "../../src/ground/log.ts";
import { UPGRADES } from "../kit/upgraded-store.ts";

/** The schema before secrets were noted. */
const BEFORE = 46;
const remember = (name: string, byte: string, until: number | null): string =>
  `INSERT INTO signature_memory VALUES (1, '${name}', x'${byte}', x'${byte}', NULL, ${until})`;
const WRITTEN = [
  "INSERT INTO app (id, name, created_at) VALUES ('shop', 'Shop', 0)",
  "INSERT INTO environment (id, app_id, name, created_at) VALUES (1, 'shop', 'production', 0)",
  `INSERT INTO relay (id, environment_id, name, definition, origin_kind, origin_at, active_since, created_at, updated_at)
   VALUES ('rly_1', 1, 'there', '{}', 'dashboard', 0, 0, 0, 0)`,
  remember("there", "01", null),
  // Of a secret that went, and may be pasted back.
  remember("there", "02", 500),
  remember("gone", "03", 900),
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
    return store.read((tx) => tx.all("SELECT relay_name AS name, until FROM signature_memory ORDER BY signed_text_hash"));
  };
  const kept = [
    { name: "there", until: null },
    { name: "there", until: null },
  ];
  expect(await forget(899)).toEqual([...kept, { name: "gone", until: null }]);
  expect(await forget(900)).toEqual(kept);
  expect(await forget(1_000_000)).toEqual(kept);
});
