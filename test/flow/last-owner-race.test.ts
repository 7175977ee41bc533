/** Tests two nodes on one PostgreSQL at which each of two owners takes the role of the other at the same time: one owner stays. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { setMemberships } from "../../src/platform/account/membership.ts";
import { removeOwner } from "../../src/platform/account/owner.ts";
import type { Writer } from "../../src/store/port.ts";
import { addMember, makeRole } from "../kit/member.ts";
import { type Node, startNode } from "../kit/node.ts";
import { freshDatabase } from "../kit/postgres.ts";

const database = await freshDatabase();
const nodes: Node[] = [];
beforeAll(async () => {
  for (let node = 0; node < 2; node++) nodes.push(await startNode(database.url));
});
afterAll(async () => {
  for (const node of nodes) await node[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const demote = (tx: Writer, id: string): Promise<unknown> => setMemberships(tx, id, [makeRole("viewer")], Date.now());
const remove = (tx: Writer, id: string): Promise<unknown> => removeOwner(tx, id);
const ROUNDS = 5;

test.each([
  ["both demote", demote, demote],
  ["one demotes and the other removes", demote, remove],
  ["both remove", remove, remove],
])("when %s, one is refused and an owner stays", async (_, byAnn, byBea) => {
  const [first, second] = nodes.map(({ service }) => service.store);
  if (first === undefined || second === undefined) throw new Error("There are not two nodes.");
  for (let round = 0; round < ROUNDS; round++) {
    const [ann, bea] = await first.write("dashboard", async (tx) => {
      await tx.run("DELETE FROM owner");
      const nowMs = Date.now();
      return [await addMember(tx, "ann", { nowMs }), await addMember(tx, "bea", { nowMs })] as const;
    });
    const ended = await Promise.allSettled([
      first.write("dashboard", (tx) => byAnn(tx, bea.id)),
      second.write("dashboard", (tx) => byBea(tx, ann.id)),
    ]);
    const refused = ended.flatMap((one) => (one.status === "rejected" ? [one.reason.code] : []));
    const left = await second.read((tx) => tx.all("SELECT owner_id FROM membership WHERE app_id = '*' AND environment = '*' AND role = 'owner'"));
    expect([refused, left.length]).toEqual([["in_use"], 1]);
  }
});
