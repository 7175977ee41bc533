import { describe, expect, test } from "bun:test";
import type { Page } from "../../src/base/page.ts";
import { listAlerts, listUnmailedAlerts, markAlertMailed, raiseAlert } from "../../src/platform/audit/alert.ts";
import { type AuditFilter, type AuditView, listAudit, listNewestChanges, SERVER_SCOPE, writeAudit } from "../../src/platform/audit/audit.ts";
import type { AuditAction } from "../../src/platform/audit/audit-action.ts";
import { clearProblem, clearProblemsOf, listOpenProblemsOfTarget, listProblems, raiseProblem } from "../../src/platform/audit/problem.ts";
import { openFreshStore } from "../kit/fresh-store.ts";

const { store, clock, environment, direct } = await openFreshStore();
const { id: environmentId } = await environment("development");
const { id: otherId } = await environment("production");
const pageOf = (limit: number, after: string | null = null) => ({ limit, after });
const cursorOf = (page: Page<unknown>) => Buffer.from(page.next ?? "", "base64url").toString();

describe("the audit", () => {
  const write = (action: AuditAction, target: string, actor: string, eventId?: string, environmentOf = environmentId) =>
    store.write("app", (tx) =>
      writeAudit(tx, {
        environmentId: environmentOf,
        nowMs: clock.now(),
        by: actor,
        action,
        target,
        eventId,
        after: { n: 9007199254740993n },
      }),
    );
  const list = (filter: AuditFilter, limit = 50, after: string | null = null): Promise<Page<AuditView>> =>
    store.read((tx) => listAudit(tx, environmentId, filter, pageOf(limit, after)));

  test("keeps before and after as JSON, big integers exactly", async () => {
    await write("relay.created", "relay:a", "owner:ada@example.com");
    expect((await list({})).items).toEqual([
      {
        id: expect.stringMatching(/^aud_/),
        at: new Date(clock.now()).toISOString(),
        actor: "owner:ada@example.com",
        action: "relay.created",
        target: "relay:a",
        actorName: null,
        targetName: null,
        eventId: null,
        before: null,
        after: { n: 9007199254740993n },
      },
    ]);
  });

  test("is filtered, and shows rows of other environments and of the server only to their readers", async () => {
    await write("relay.updated", "relay:a", "key:key_1");
    await write("relay.created", "relay:b", "command line");
    await write("run", "relay:a", "relay:a", "evt_1");
    await write("relay.created", "relay:a", "key:key_2", undefined, otherId);
    await write("owner.created", "owner:x", "command line", undefined, SERVER_SCOPE);
    const actions = async (filter: AuditFilter) => (await list(filter)).items.map((row) => `${row.action} ${row.target}`);
    expect(await actions({})).toEqual(["run relay:a", "relay.created relay:b", "relay.updated relay:a", "relay.created relay:a"]);
    expect(await actions({ kind: "run" })).toEqual(["run relay:a"]);
    expect(await actions({ kind: "change" })).toHaveLength(3);
    expect(await actions({ target: "relay:a" })).toEqual(["relay.updated relay:a", "relay.created relay:a"]);
    expect(await actions({ target: "relay:a", actor: "key:key_1" })).toEqual(["relay.updated relay:a"]);
    expect(await actions({ action: "relay.created" })).toHaveLength(2);
  });

  test("comes in pages, newest first", async () => {
    const first = await list({ kind: "change" }, 2);
    const second = await list({ kind: "change" }, 2, cursorOf(first));
    expect([first.items.length, second.items.length, second.next]).toEqual([2, 1, null]);
    const ids = [...first.items, ...second.items].map((row) => row.id);
    expect(ids).toEqual(ids.toSorted().toReversed());
  });

  test("finds the changes by an index, however many runs there are", async () => {
    const nowMs = clock.now();
    await store.write("app", async (tx) => {
      for (let run = 0; run < 2_000; run++)
        await writeAudit(tx, { environmentId, nowMs, by: "relay:a", action: "run", target: "relay:a", eventId: `evt_${run}` });
    });
    await direct.run("ANALYZE audit");
    for (const where of ["target = 'relay:a' AND", ""]) {
      const plan = await direct.explain(
        `SELECT seq FROM audit WHERE environment_id = 1 AND ${where} event_id IS NULL AND seq < 1000000 ORDER BY seq DESC LIMIT 5`,
      );
      expect(plan).toMatch(/USING (COVERING )?INDEX audit_(changes|by_target)|Index (Only )?Scan Backward using audit_(changes|by_target) /);
      expect(plan).not.toMatch(/TEMP B-TREE|Sort/);
    }
  });
});

test("a newer change of another section does not hide a change of the settings", async () => {
  const { id } = await environment("local");
  const change = { environmentId: id, by: "owner:ada", action: "settings.changed", target: "settings" } as const;
  await store.write("app", async (tx) => {
    await writeAudit(tx, { ...change, nowMs: 1, after: { processorSecret: "b1" } });
    await writeAudit(tx, { ...change, nowMs: 2, after: { mail: { sends: true } } });
  });
  const find = async (mail: boolean, processor: boolean) => {
    const period = { targets: ["settings"], actions: [change.action], sections: { mail, processor }, fromMs: 0, untilMs: 9 };
    return (await store.read((tx) => listNewestChanges(tx, id, period))).map(({ at }) => at);
  };
  expect([await find(false, true), await find(true, false), await find(true, true)]).toEqual([[1], [2], [2]]);
});

describe("a problem", () => {
  const key = { environmentId: environmentId, code: "relay_unsigned_event", target: "relay:a" } as const;
  const raise = (message: string) => store.write("app", (tx) => raiseProblem(tx, { ...key, message, nowMs: clock.now() }));
  const clear = () => store.write("app", (tx) => clearProblem(tx, { ...key, nowMs: clock.now() }));
  const standing = () => store.read((tx) => listOpenProblemsOfTarget(tx, environmentId, "relay:a"));

  test("exists once, however often it is found, with its newest sentence", async () => {
    expect([await raise("one"), await raise("one"), await raise("two")]).toEqual([true, false, false]);
    expect((await standing()).map((problem) => problem.message)).toEqual(["two"]);
  });

  test("is cleared, stays in the list, and is raised again when it returns", async () => {
    expect([await clear(), await clear(), await standing()]).toEqual([true, false, []]);
    await clock.advance(1);
    expect(await raise("again")).toBe(true);
    const list = (standingOnly: boolean) => store.read((tx) => listProblems(tx, environmentId, standingOnly, pageOf(50)));
    expect((await list(false)).items.map((one) => [one.message, one.clearedAt === null])).toEqual([
      ["again", true],
      ["two", false],
    ]);
    expect((await list(true)).items.map((one) => one.message)).toEqual(["again"]);
  });

  test("of another target or environment stays when a target's problems are cleared", async () => {
    const other = { ...key, target: "relay:b", message: "b", nowMs: clock.now() };
    await store.write("app", (tx) => raiseProblem(tx, other));
    await store.write("app", (tx) => raiseProblem(tx, { ...other, environmentId: otherId, target: "relay:a" }));
    await store.write("app", (tx) => clearProblemsOf(tx, environmentId, "relay:a", clock.now()));
    const left = await store.read((tx) => tx.all("SELECT target FROM problem WHERE cleared_at IS NULL"));
    expect([await standing(), left]).toEqual([[], [{ target: "relay:b" }, { target: "relay:a" }]]);
  });
});

describe("an alert", () => {
  const raise = (target: string, message: string, count?: number) =>
    store.write("app", (tx) => raiseAlert(tx, { environmentId, code: "relay_failed", target, message, count, nowMs: clock.now() }));
  const counts = async () =>
    (await store.read((tx) => listAlerts(tx, environmentId, pageOf(50)))).items.map((alert) => `${alert.target} ${alert.count} ${alert.message}`);

  test("of a burst is one row with a count and the newest sentence, separate for each relay", async () => {
    await raise("relay:a", "one");
    await clock.advance(1_000);
    await raise("relay:a", "two");
    await raise("relay:b", "other", 12);
    expect(await counts()).toEqual(["relay:b 12 other", "relay:a 2 two"]);
  });

  test("is a new row an hour after the burst began, even without a pause", async () => {
    await clock.advance(1_800_000);
    await raise("relay:a", "three");
    await clock.advance(1_799_000);
    await raise("relay:a", "four");
    expect(await counts()).toEqual(["relay:a 1 four", "relay:b 12 other", "relay:a 3 three"]);
  });

  test("is mailed once", async () => {
    const waiting = () => store.read((tx) => listUnmailedAlerts(tx, environmentId, 10));
    const [oldest] = await waiting();
    await store.write("app", (tx) => markAlertMailed(tx, oldest?.id ?? "", clock.now()));
    expect([oldest?.message, (await waiting()).map((alert) => alert.message)]).toEqual(["three", ["other", "four"]]);
  });
});
