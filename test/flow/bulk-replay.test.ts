/** Tests bulk replays: the preview, each event once in order of arrival, the rate limit, restarts, and events that may not run. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { resolveFilter } from "../../src/engine/event/bulk-choice.ts";
import { runCommand } from "../kit/cli-io.ts";
import { editRelay, putEvents, sendEvent, showEvent, until, WRITE } from "../kit/event-flow.ts";
import { type ActionLike, breakRelay, makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const MAP = { event_id: "id", person_email: "email" };
const NOWHERE: ActionLike = { ...WRITE, collection: "nowhere" };
const GRANT: ActionLike = { type: "grant_credits", amount: 1 };

let running: RunningService;
beforeEach(async () => {
  running = await startRunningService({ environments: ["development", "production"] });
  await makeOrders(running);
});
afterEach(() => running[Symbol.asyncDispose]());

const define = (name: string, actions: readonly ActionLike[]) => receiverDefinition({ name, actions, map: MAP });

/** Creates events that are dead at once, because their relay writes to a missing collection. Returns their ids, oldest first. */
async function die(count: number, name = "orders"): Promise<string[]> {
  await saveRelay(running, define(name, [GRANT, NOWHERE]));
  const ids = await putEvents(
    running,
    Array.from({ length: count }, (_, at) => `${name}-${at}`),
    { relay: name, email: "ada@example.com" },
  );
  await running.drain();
  expect(await countOf("dead", name)).toBe(count);
  return ids;
}

async function countOf(state: string, name = "orders"): Promise<number> {
  const sql = "SELECT count(*) AS count FROM event JOIN relay_name ON key = name_key WHERE state = ?1 AND name = ?2";
  return (await running.rows<{ count: number }>(sql, state, name))[0]?.count ?? 0;
}

const fix = (name = "orders") => editRelay(running, define(name, [GRANT, WRITE]));
const begin = (body: object = {}) => running.api("POST", "/bulk-replays", { state: "dead", ...body });
const plan = async (body: object = {}) => (await running.api("POST", "/bulk-replays/plan", { state: "dead", ...body })).body.plan;
const show = async (id: string) => (await running.api("GET", `/bulk-replays/${id}`)).body.replay;

/** Advances the clock until the replay ends. */
async function finish(id: string, mostSeconds = 60) {
  for (let second = 0; second < mostSeconds; second++) {
    const replay = await show(id);
    if (replay.state !== "running") break;
    await running.clock.advance(1_000);
  }
  await running.drain();
  return await show(id);
}

test("the preview reports the matches, their relays and each action's effect, and changes nothing", async () => {
  await die(30);
  await die(2, "others");
  expect(await plan()).toEqual({
    matched: 32,
    isMore: false,
    planned: 32,
    relays: [
      { relay: "orders", events: 30 },
      { relay: "others", events: 2 },
    ],
    actions: [
      { type: "grant_credits", will: "skip", events: 32 },
      { type: "write_record", will: "run", events: 32 },
    ],
    otherPerson: 0,
    leftOut: {},
  });
  expect(await plan({ relay: "others" })).toMatchObject({ matched: 2 });
  expect(await plan({ relay: "others", reason: "collection_missing" })).toMatchObject({ matched: 2 });
  expect(await plan({ relay: "others", reason: "any" })).toMatchObject({ matched: 2 });
  expect(await plan({ reason: "call_failed" })).toMatchObject({ matched: 0 });
  expect(await plan({ state: "failed" })).toMatchObject({ matched: 0 });
  expect(await countOf("dead")).toBe(30);
});

test("each matching event runs once more, oldest first, and does not repeat finished actions", async () => {
  const ids = await die(60);
  await fix();
  const begun = await begin();
  expect(begun.status).toBe(202);
  expect(begun.body.replay).toMatchObject({ state: "running", matched: 60, replayed: 0, perSecond: 50, filter: { state: "dead" } });
  const ended = await finish(begun.body.replay.id);
  const results = { succeeded: 60, failed: 0, pending: 0, lastAt: expect.any(String) };
  expect(ended).toMatchObject({ state: "done", matched: 60, replayed: 60, leftOut: {}, results });
  expect(await running.rows("SELECT 1 FROM bulk_replay_event")).toEqual([]);
  expect(await countOf("done")).toBe(60);
  expect((await running.rows("SELECT 1 FROM record")).length).toBe(60);
  const [credits] = await running.rows<{ sum: number }>("SELECT sum(amount) AS sum FROM credit");
  expect(credits?.sum).toBe(60);
  const targets = await running.rows<{ target: string }>("SELECT target FROM audit WHERE action = 'event.replayed' ORDER BY seq");
  expect(targets.map(({ target }) => target)).toEqual(ids.map((id) => `event:${id}`));
  const told = await running.rows<{ action: string }>("SELECT action FROM audit WHERE target = ?1 ORDER BY seq", `replay:${ended.id}`);
  expect(told.map(({ action }) => action)).toEqual(["replay.began", "replay.ended"]);
});

test("a reason filter selects only matching events, and a node of 0.15.0, which ignores reasons, selects none", async () => {
  await die(6);
  await running.service.store.write("app", (tx) => tx.run("UPDATE event SET reason = 'call_failed' WHERE seq % 2 = 0"));
  await fix();
  const { id, filter } = (await begin({ reason: "call_failed" })).body.replay;
  expect(filter).toEqual({ state: "dead", reason: "call_failed" });
  const [kept] = await running.rows<{ chosen: string; at: number }>("SELECT chosen, environment_id AS at FROM bulk_replay");
  // Keeps the fields of the filter that a node of 0.15.0 reads.
  const { state, relay } = JSON.parse(kept?.chosen ?? "{}");
  expect(await running.service.store.read((tx) => resolveFilter(tx, kept?.at ?? 0, { state, relay }))).toBe(null);
  expect(await finish(id)).toMatchObject({ state: "done", matched: 3, replayed: 3, filter });
  expect(await running.rows("SELECT DISTINCT reason FROM event WHERE state = 'dead'")).toEqual([{ reason: "collection_missing" }]);
  expect((await running.api("GET", "/bulk-replays")).body.items).toMatchObject([{ id, filter }]);
});

test("counts the events that die again, and an event that waits for its retry until it is final", async () => {
  const ids = await die(3);
  const call = (url: string) => ({ type: "call_url", url });
  await editRelay(running, define("orders", [GRANT, WRITE, call("https://nowhere.invalid/")]));
  const begun = (await begin()).body.replay;
  expect(begun.results).toEqual({ succeeded: 0, failed: 0, pending: 0, lastAt: null });
  const queued = await finish(begun.id);
  expect(queued).toMatchObject({ state: "done", replayed: 3, results: { succeeded: 0, failed: 0, pending: 3, lastAt: null } });
  await editRelay(running, define("orders", [GRANT, WRITE]));
  await running.api("POST", `/events/${ids[0]}/retry`);
  await running.drain();
  expect((await show(begun.id)).results).toMatchObject({ succeeded: 1, failed: 0, pending: 2 });
  await running.api("POST", `/events/${ids[1]}/expunge`);
  expect((await show(begun.id)).results).toMatchObject({ succeeded: 1, failed: 1, pending: 1 });
  await running.service.store.write("app", (tx) => tx.run("DELETE FROM event WHERE state = 'queued'"));
  expect((await show(begun.id)).results).toMatchObject({ succeeded: 1, failed: 2, pending: 0 });
  expect(await running.rows("SELECT 1 FROM bulk_replay_event")).toEqual([]);
});

test("a bulk replay that an earlier version started has no results, and a replay by hand changes none", async () => {
  const [first = ""] = await die(2);
  const { id } = (await begin()).body.replay;
  const { results } = await finish(id);
  expect(results).toMatchObject({ succeeded: 0, failed: 2, pending: 0 });
  await fix();
  await running.api("POST", `/events/${first}/replay`);
  await running.drain();
  expect((await show(id)).results).toEqual(results);
  await running.service.store.write("app", (tx) => tx.run("UPDATE bulk_replay SET followed = NULL"));
  expect((await show(id)).results).toBe(null);
});

test("skips events that die again, and events that arrived later", async () => {
  await die(5);
  const { id } = (await begin()).body.replay;
  await putEvents(running, ["later"], { email: "ada@example.com" });
  await running.drain();
  expect(await finish(id)).toMatchObject({ state: "done", replayed: 5 });
  expect(await countOf("dead")).toBe(6);
  expect((await running.rows("SELECT 1 FROM event WHERE replays = 1")).length).toBe(5);
});

test("skips an event that arrived before the replay and failed after its start", async () => {
  await die(5);
  await running.api("POST", "/relays/orders/pause");
  await putEvents(running, ["waits"], { email: "ada@example.com" });
  await running.clock.advance(1_000);
  const { id } = (await begin({ perSecond: 1 })).body.replay;
  await running.api("POST", "/relays/orders/resume");
  expect(await finish(id)).toMatchObject({ state: "done", matched: 5, replayed: 5 });
  expect(await running.rows("SELECT replays FROM event WHERE state = 'dead' ORDER BY seq DESC LIMIT 1")).toEqual([{ replays: 0 }]);
});

test("includes every event after the clock was set back", async () => {
  await die(5);
  await fix();
  running.clock.jump(-3_600_000);
  const { id } = (await begin()).body.replay;
  expect(await finish(id)).toMatchObject({ state: "done", matched: 5, replayed: 5 });
});

test("counts and skips events of a relay with an action that this version does not know", async () => {
  await die(3);
  await breakRelay(running.service.store, "orders", ({ actions }) => Object.assign(actions[0] ?? {}, { type: "launch" }));
  expect(await plan()).toMatchObject({ matched: 3, actions: [], leftOut: { action_unknown: 3 } });
  const { id } = (await begin()).body.replay;
  expect(await finish(id)).toMatchObject({ state: "done", replayed: 0, leftOut: { action_unknown: 3 } });
  expect(await countOf("dead")).toBe(3);
});

test("never exceeds the requested rate", async () => {
  await die(40);
  await fix();
  const { id } = (await begin({ perSecond: 10 })).body.replay;
  await running.clock.advance(1_000);
  let last = (await show(id)).replayed;
  for (let second = 0; second < 3; second++) {
    await running.clock.advance(1_000);
    const { replayed } = await show(id);
    expect(replayed - last).toBeGreaterThanOrEqual(8);
    expect(replayed - last).toBeLessThanOrEqual(11);
    last = replayed;
  }
});

test("resumes after a restart, and replays no event twice", async () => {
  await die(40);
  await fix();
  const { id } = (await begin({ perSecond: 10 })).body.replay;
  await running.clock.advance(2_000);
  const { replayed } = await show(id);
  expect(replayed).toBeGreaterThan(0);
  expect(replayed).toBeLessThan(40);
  await running.restart();
  expect(await finish(id)).toMatchObject({ state: "done", replayed: 40 });
  expect(await running.rows("SELECT DISTINCT replays FROM event")).toEqual([{ replays: 1 }]);
});

test("stops on request, while the events that it queued still run", async () => {
  await die(40);
  await fix();
  const { id } = (await begin({ perSecond: 10 })).body.replay;
  await running.clock.advance(2_000);
  const stopped = (await running.api("POST", `/bulk-replays/${id}/stop`)).body.replay;
  expect(stopped.state).toBe("stopped");
  await running.clock.advance(10_000);
  await running.drain();
  expect(await countOf("done")).toBe(stopped.replayed);
  expect(await countOf("dead")).toBe(40 - stopped.replayed);
  const again = await running.api("POST", `/bulk-replays/${id}/stop`);
  expect(again.body.replay).toEqual(stopped);
});

describe("counts and skips events that cannot run", () => {
  const spoil: Record<string, (ids: readonly string[]) => Promise<unknown>> = {
    payload_expunged: (ids) => running.api("POST", `/events/${ids[0]}/expunge`),
    relay_deleted: () => running.api("DELETE", "/relays/orders"),
  };
  for (const [code, how] of Object.entries(spoil)) {
    test(code, async () => {
      const ids = await die(3);
      await how(ids);
      const left = code === "relay_deleted" ? 3 : 1;
      expect((await plan()).leftOut).toEqual({ [code]: left });
      const { id } = (await begin()).body.replay;
      expect(await finish(id)).toMatchObject({ state: "done", replayed: 3 - left, leftOut: { [code]: left } });
      expect((await showEvent(running, ids[0] ?? "")).replays).toBe(0);
    });
  }
});

describe("the filter", () => {
  test("selects a person by email address, and a time range", async () => {
    await die(3);
    const [first] = await running.rows<{ at: number }>("SELECT min(created_at) AS at FROM event");
    const before = new Date(first?.at ?? 0).toISOString();
    expect(await plan({ person: "ada@example.com" })).toMatchObject({ matched: 3 });
    expect(await plan({ until: before })).toMatchObject({ matched: 0 });
    expect(await plan({ since: before })).toMatchObject({ matched: 3 });
    expect(await plan({ trigger: "schedule" })).toMatchObject({ matched: 0 });
  });

  for (const [body, field] of [
    [{ state: "queued" }, "state"],
    [{ state: "dead", perSecond: 0 }, "perSecond"],
    [{ state: "dead", since: "yesterday" }, "since"],
    [{ state: "dead", q: "text" }, "q"],
    [{ state: "dead", relay: "x".repeat(300) }, "relay"],
  ] as const) {
    test(`rejects ${JSON.stringify(body).slice(0, 100)}`, async () => {
      const { status, body: refused } = await running.api("POST", "/bulk-replays", body);
      expect(status).toBe(400);
      expect(JSON.stringify(refused)).toContain(field);
    });
  }

  test("rejects an unknown person", async () => {
    for (const path of ["/bulk-replays", "/bulk-replays/plan"]) {
      const { status, body } = await running.api("POST", path, { state: "dead", person: "eve@example.com" });
      expect({ status, code: body.code }).toEqual({ status: 400, code: "invalid_input" });
      expect(body.message).toContain('No person "eve@example.com" exists in this environment');
    }
    expect((await running.api("GET", "/bulk-replays")).body.items).toEqual([]);
  });
});

test("a blocked replay does not delay another environment's replay", async () => {
  await die(3);
  await fix();
  await running.service.store.write("app", (tx) =>
    tx.run(
      `INSERT INTO bulk_replay (id, environment_id, state, chosen, per_second, matched, cursor, until_seq, created_by, created_at)
       SELECT 'rpl_0', id, 'running', '{', 50, 1, 0, 1, 'x', 0 FROM environment WHERE name = 'production'`,
    ),
  );
  const { id } = (await begin()).body.replay;
  expect(await finish(id)).toMatchObject({ state: "done", replayed: 3 });
  expect(running.logged.join()).toContain("a bulk replay could not continue");
});

test("one replay runs at a time in an environment, also when two start at once", async () => {
  await die(40);
  const answers = await Promise.all([begin({ perSecond: 1 }), begin({ perSecond: 1 })]);
  expect(answers.map(({ status }) => status).sort()).toEqual([202, 409]);
  expect(answers.find(({ status }) => status === 409)?.body).toMatchObject({
    code: "replay_running",
    message: expect.stringContaining("relay replays stop rpl_"),
  });
});

test("the command line shows the preview, asks for confirmation, lists replays and stops one", async () => {
  await die(40);
  await fix();
  const here = { cwd: running.dataDir, env: running.commandEnv, clock: running.clock };
  const at = ["--data-dir", running.dataDir, "--environment", "development"];
  const planned = await runCommand(["replays", "start", "--plan", ...at], here);
  expect(planned.said).toBe("40 events match.\n  orders  40\n  grant_credits  40 skipped, because their work is done\n  write_record  40 run");
  const asked = await runCommand(["replays", "start", ...at], here);
  expect(asked).toMatchObject({
    code: 1,
    told: expect.stringContaining("Nothing was replayed. There is no terminal to ask at: add --yes to replay without a question."),
  });
  const misspelt = await runCommand(["replays", "start", "--yes", "--relay", "ordres", ...at], here);
  expect(misspelt).toMatchObject({ code: 1, told: expect.stringContaining("did you mean orders?") });
  const none = await runCommand(["replays", "start", "--yes", "--until", "2020-01-01T00:00:00Z", ...at], here);
  expect(none).toMatchObject({ code: 0, told: "No events match, so nothing is replayed. relay events list --state dead shows the dead events." });
  const begun = await runCommand(["replays", "start", "--yes", "--per-second", "1", "--json", ...at], here);
  const { replay } = JSON.parse(begun.said);
  expect(replay).toMatchObject({ state: "running", matched: 40, by: "command line" });
  await until("the service finds it", async () => {
    await running.clock.advance(1_000);
    return (await show(replay.id)).replayed > 0;
  });
  const list = await runCommand(["replays", "list", ...at], here);
  expect(list.said).toContain(replay.id);
  expect(list.said).toContain("of 40");
  const stopped = await runCommand(["replays", "stop", replay.id, ...at], here);
  expect(stopped.told).toMatch(/^rpl_\w+ is stopped: \d+ of 40 replayed\. Results: \d+ succeeded, 0 failed(, \d+ pending)?\.$/);
});

test("the command waits until each event has its result, and its exit code says whether one failed", async () => {
  await die(11);
  await fix();
  const here = { cwd: running.dataDir, env: running.commandEnv, clock: running.clock };
  const at = ["--data-dir", running.dataDir, "--environment", "development"];
  const waitFor = async (...words: string[]) => {
    let isOver = false;
    const waited = runCommand([...words, ...at], here).finally(() => {
      isOver = true;
    });
    await until("the command ends", async () => {
      await running.clock.advance(1_000);
      await running.drain();
      return isOver;
    });
    return await waited;
  };
  const ended = await waitFor("replays", "start", "--yes", "--wait");
  expect(ended).toMatchObject({ code: 0, told: expect.stringMatching(/^rpl_\w+ is done: 11 of 11 replayed\. Results: 11 succeeded, 0 failed\.$/) });
  await die(2, "others");
  const { id } = (await begin({ relay: "others" })).body.replay;
  const failed = await waitFor("replays", "wait", id, "--json");
  expect(failed.code).toBe(1);
  expect(JSON.parse(failed.said).replay.results).toMatchObject({ succeeded: 0, failed: 2, pending: 0 });
});

test("includes an event that died on arrival, also without the time that version 0.7 did not store", async () => {
  await saveRelay(running, define("orders", [NOWHERE]));
  for (const id of ["first", "second", "third"]) {
    await sendEvent(running, id, { email: "ada@example.com" });
    await running.drain();
  }
  expect(await running.rows("SELECT count(*) AS count FROM event WHERE state = 'dead' AND finished_at IS NOT NULL")).toEqual([{ count: 3 }]);
  await running.service.store.write("app", (tx) => tx.run("UPDATE event SET finished_at = NULL WHERE seq = 3"));
  await fix();
  expect((await plan()).matched).toBe(3);
  expect(await finish((await begin()).body.replay.id)).toMatchObject({ state: "done", replayed: 3 });
});
