/**
 * Tests the storage of finished actions. Runs hold them if the relay only writes to the database. Separate rows hold them if the relay calls a URL or
 * an earlier version ran the event. The same random lives must have the same results with either storage, and with a switch between them.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { readPriorWork } from "../../src/engine/event/prior-work.ts";
import { ON_POSTGRES, roundsOf } from "../kit/chosen-store.ts";
import { editRelay, sendEvent, showEvent, WRITE } from "../kit/event-flow.ts";
import { FakeCaller } from "../kit/fake-caller.ts";
import { type ActionLike, makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const give = (amount: number): ActionLike => ({ type: "grant_credits", amount });
const mark = (amount: string): ActionLike => ({ ...WRITE, data: { order: "{{mapped.event_id}}", amount } });
const POOL = [give(1), give(2), give(3), mark("x"), mark("y"), { ...WRITE, collection: "nowhere" }];
const CALL: ActionLike = { type: "call_url", url: "https://example.com/notice" };

/**
 * Names the storages. `runs` uses only rows of runs. `works` uses only rows of work, because the last action calls a URL. `both` switches between
 * them, as after an upgrade.
 */
const KINDS = ["runs", "works", "both"] as const;
type Kind = (typeof KINDS)[number];

interface Io {
  kind: Kind;
  running: RunningService;
  event: string;
}

const worlds: Io[] = [];
beforeAll(async () => {
  for (const kind of KINDS) {
    const running = await startRunningService({ ports: { caller: new FakeCaller() } });
    await makeOrders(running);
    await saveRelay(running, define([give(1)]));
    worlds.push({ kind, running, event: "" });
  }
});
afterAll(async () => {
  for (const { running } of worlds) await running[Symbol.asyncDispose]();
});

function define(actions: readonly ActionLike[]) {
  return receiverDefinition({ actions: [...actions], map: { event_id: "id", person_email: "email" } });
}

const inAll = (work: (io: Io) => Promise<unknown>) => Promise.all(worlds.map(work));

/** Writes the rows of work that an earlier version wrote. */
async function age({ running }: Io): Promise<void> {
  await running.service.store.write("app", async (tx) => {
    for (const { seq } of await tx.all<{ seq: number }>("SELECT seq FROM event")) {
      for (const { key, after, doneAt } of (await readPriorWork(tx, seq)).works.values()) {
        await tx.run(
          `INSERT INTO effect (event_seq, key, state, result, run)
           SELECT $seq, $key, 'done', $after, min(number) FROM run WHERE event_seq = $seq AND started_at = $doneAt ON CONFLICT DO NOTHING`,
          { seq, key, after: after === undefined ? null : JSON.stringify(after), doneAt },
        );
      }
    }
  });
}

/** Reads everything that a person sees of the event, except the call at the list's end. */
async function look({ running, event }: Io, length: number) {
  const view = await showEvent(running, event);
  const plan = await running.api("GET", `/events/${event}/replay`);
  return {
    state: view.state,
    reason: view.reason,
    attempts: view.attempts,
    warnings: view.warnings,
    told: view.runs.map(({ results }) => results.filter(({ type }) => type !== "call_url").map(({ type, outcome, code }) => [type, outcome, code])),
    plan:
      plan.status === 200
        ? plan.body.plan.actions.slice(0, length).map(({ message, was }: { message: string; was?: unknown }) => [message, was])
        : plan.body.code,
    credits: await running.rows("SELECT amount FROM credit WHERE event_id = ? ORDER BY seq".replace("?", `'${event}'`)),
    marks: await running.rows(`SELECT json_extract(data, '$.amount') AS mark FROM record WHERE json_extract(data, '$.order') IN
      (SELECT json_extract(payload, '$.mapped.event_id') FROM event WHERE id = '${event}') ORDER BY seq`),
  };
}

const step = fc.record({
  do: fc.constantFrom("edit", "edit", "replay", "replay", "choose", "fault", "retry", "restart"),
  list: fc.array(fc.nat(POOL.length - 1), { minLength: 1, maxLength: 5 }),
  index: fc.nat(4),
  odd: fc.boolean(),
});

let lives = 0;
/** Makes writes of credits fail, and succeed again. */
const FAULT = ON_POSTGRES
  ? {
      begin: [
        "CREATE OR REPLACE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''a fault''; END'",
        "CREATE TRIGGER fault AFTER INSERT ON credit FOR EACH ROW EXECUTE FUNCTION fault()",
      ],
      end: ["DROP TRIGGER fault ON credit"],
    }
  : { begin: ["CREATE TRIGGER fault AFTER INSERT ON credit BEGIN SELECT RAISE(FAIL, 'a fault'); END"], end: ["DROP TRIGGER fault"] };

test("the same lives have the same results with every storage of finished actions", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(POOL.length - 1), { minLength: 1, maxLength: 4 }),
      fc.array(step, { minLength: 3, maxLength: 12 }),
      async (first, steps) => {
        lives += 1;
        let list = first;
        let faulty = false;
        const put = (odd: boolean) =>
          inAll(async ({ kind, running }) => {
            const calls = kind === "works" || (kind === "both" && odd);
            const actions = list.map((at) => POOL[at] as ActionLike);
            await editRelay(running, define(calls ? [...actions, CALL] : actions));
          });
        const settle = async () => {
          await inAll(({ running }) => running.drain());
          const [one, ...others] = await Promise.all(worlds.map((io) => look(io, list.length)));
          for (const other of others) expect(other).toEqual(one as NonNullable<typeof one>);
        };
        await put(false);
        await inAll(async (io) => {
          io.event = await sendEvent(io.running, `life${lives}`, { email: `p${lives}@example.com` });
        });
        await settle();
        for (const { do: what, list: next, index, odd } of steps) {
          if (what === "edit") {
            list = next;
            await put(odd);
          } else if (what === "replay" || what === "choose") {
            const body = what === "choose" ? { run: [index] } : undefined;
            const answers: number[] = [];
            await inAll(async ({ running, event }) => {
              answers.push((await running.api("POST", `/events/${event}/replay`, body)).status);
            });
            expect(new Set(answers).size).toBe(1);
          } else if (what === "fault") {
            faulty = !faulty;
            const statements = FAULT[faulty ? "begin" : "end"];
            await inAll(({ running }) =>
              running.service.store.write("app", async (tx) => {
                for (const sql of statements) await tx.run(sql);
              }),
            );
          } else if (what === "retry") {
            await inAll(({ running }) => running.clock.advance(61_000));
          } else {
            await inAll(async (io) => {
              if (io.kind === "both" && odd) await age(io);
              await io.running.restart();
            });
          }
          await settle();
        }
        if (faulty) await inAll(({ running }) => running.service.store.write("app", (tx) => tx.run(FAULT.end[0] ?? "")));
      },
    ),
    { numRuns: roundsOf(20), endOnFailure: true },
  );
});
