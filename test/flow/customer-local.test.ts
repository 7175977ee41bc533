/** Tests `relay validate` on files whose definitions name a space of customer ids. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../kit/cli-io.ts";
import { receiverDefinition, writeOrder } from "../kit/relay-definition.ts";

const MAP = { event_id: "id", customer_id: "customer" };
const CUSTOMER = { id: "customer_id" };
const LATE = receiverDefinition({ name: "late", map: MAP, customer: { ...CUSTOMER, space: "other" } });
let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "relay-customer-"));
  mkdirSync(join(home, "service", "relays"), { recursive: true });
  const fields = { order: { type: "text" }, amount: { type: "text" } };
  writeFileSync(join(home, "service", "catalog.json"), JSON.stringify({ collections: { orders: { kind: "shared", fields } } }));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const OTHERS: readonly (readonly [what: string, file: Record<string, unknown> | null, code: number, said: string])[] = [
  ["accepts the space of another receiver", receiverDefinition({ name: "other", map: MAP }), 0, ""],
  ["warns of a space without a file", null, 0, "there is no relay named other in these files; add relays/other.json (unless the environment has it)"],
  [
    "refuses the space of a follower",
    receiverDefinition({ name: "other", map: MAP, verify: { scheme: "receiver", receiver: "late" } }),
    1,
    "other follows late, so it shares that relay's space. Write late.",
  ],
  [
    "refuses the space of a schedule",
    { name: "other", trigger: { kind: "schedule", every: "1d" }, actions: [{ ...writeOrder, data: { order: "x" } }] },
    1,
    "other starts by a schedule, so it has no customers. Name a receiver relay.",
  ],
];
test.each(OTHERS)("relay validate %s", async (_what, file, code, said) => {
  const definitions = file === null ? [LATE] : [LATE, file];
  for (const definition of definitions) writeFileSync(join(home, "service", "relays", `${definition["name"]}.json`), JSON.stringify(definition));
  const checked = await runCommand(["validate"], { cwd: home });
  expect([checked.code, `${checked.said}${checked.told}`]).toEqual([code, expect.stringContaining(said)]);
});
