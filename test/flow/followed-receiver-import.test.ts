/** Tests imports of missed events into a receiver that other relays follow, and into one follower by its name. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { RELAY_NAME } from "../kit/event-sql.ts";
import { type ActionLike, makeOrders, receiverDefinition, saveRelay, signedCall, TOKEN_RECIPE, tokenCall } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";

let running: RunningService;

beforeEach(async () => {
  running = await startRunningService({ environments: ["development", "production"] });
  await makeOrders(running);
});
afterEach(() => running[Symbol.asyncDispose]());

const GRANT: ActionLike = { type: "grant_access", entitlement: "access:course" };
type Environment = "development" | "production";

interface Change {
  when?: Record<string, string>;
  map?: Record<string, string>;
  actions?: readonly ActionLike[];
  trustUnsignedEvents?: boolean;
}
const follower = (name: string, change: Change = {}) => receiverDefinition({ ...change, name, verify: { scheme: "receiver", receiver: "stripe" } });

async function begin(followers: readonly Record<string, unknown>[], source: Parameters<typeof receiverDefinition>[0] = {}): Promise<void> {
  await saveRelay(running, receiverDefinition({ ...source, name: "stripe" }));
  for (const definition of followers) await save(definition);
}

async function save(definition: Record<string, unknown>): Promise<void> {
  const saved = await running.api("POST", "/relays", { definition });
  expect([saved.status, saved.body.message]).toEqual([201, undefined]);
}

async function send(name: string, lines: readonly string[], query: Record<string, string> = {}, environment: Environment = "development") {
  const url = `${running.service.url}/api/apps/${APP}/${environment}/relays/${name}/import-missed?${new URLSearchParams(query)}`;
  const response = await fetch(url, { method: "POST", headers: { authorization: `Bearer ${running.keys[environment]}` }, body: lines.join("\n") });
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers by their fields
  return { status: response.status, body: (await response.json()) as any };
}

interface Result {
  relay: string;
  outcome: string;
  code: string | null;
}

/** Imports the lines. Returns the outcome of each line with those of its relays, as in `new: stripe new, paid ignored`. */
async function told(name: string, lines: readonly string[], query: Record<string, string> = {}): Promise<string[]> {
  const { status, body } = await send(name, lines, query);
  expect([status, body.message]).toEqual([200, undefined]);
  const say = ({ outcome, code }: Omit<Result, "relay">): string => (code === null ? outcome : `${outcome} ${code}`);
  return body.lines.map((line: Result & { relays: Result[] | null }) =>
    line.relays === null ? say(line) : `${say(line)}: ${line.relays.map((one) => `${one.relay} ${say(one)}`).join(", ")}`,
  );
}

async function listEvents(): Promise<string[]> {
  const sql = `SELECT ${RELAY_NAME} AS relay, source FROM event ORDER BY seq`;
  return (await running.rows<{ relay: string; source: string | null }>(sql)).map(({ relay, source }) => `${relay} ${source ?? "request"}`);
}

const delivery = (id: string, type = "paid", more: object = {}): string => JSON.stringify(signedCall({ id, type, amount: 1, ...more }));
const bare = (id: string, type = "paid", more: object = {}): string => JSON.stringify({ id, type, amount: 1, ...more });

describe("an import into a receiver that relays follow", () => {
  test("offers each line to the receiver and its followers, in the plan and in the import", async () => {
    await begin([follower("refund", { when: { event_type: "refunded" } }), follower("archive")], { when: { event_type: "paid" } });
    const lines = [delivery("a"), delivery("b", "refunded"), delivery("c", "other"), "nothing"];
    const expected = [
      "new: stripe new, archive new, refund ignored",
      "new: stripe ignored, archive new, refund new",
      "new: stripe ignored, archive new, refund ignored",
      "refused invalid_json",
    ];
    expect(await told("stripe", lines, { dryRun: "true" })).toEqual(expected);
    expect(await listEvents()).toEqual([]);
    expect(await told("stripe", lines)).toEqual(expected);
    const events = ["stripe import", "archive import", "archive import", "refund import", "archive import"];
    expect(await listEvents()).toEqual(events);
    expect((await told("stripe", lines)).map((one) => one.split(" ")[0])).toEqual(["known:", "known:", "known:", "refused"]);
    expect(await listEvents()).toEqual(events);
  });

  test("ignores a line that no relay takes", async () => {
    await begin([follower("refund", { when: { event_type: "refunded" } })], { when: { event_type: "paid" } });
    expect(await told("stripe", [delivery("a", "other")])).toEqual(["ignored: stripe ignored, refund ignored"]);
  });

  test("knows what each relay has, and gives the first new event", async () => {
    await begin([follower("archive")]);
    const { body: first } = await running.hook("stripe", signedCall({ id: "a", type: "paid", amount: 1 }));
    await save(follower("later"));
    const { body } = await send("stripe", [delivery("a")]);
    const [line] = body.lines;
    expect(line.relays.map(({ relay, outcome }: Result) => [relay, outcome])).toEqual([
      ["stripe", "known"],
      ["archive", "known"],
      ["later", "new"],
    ]);
    expect([line.relays[0].eventId, line.eventId]).toEqual([first.eventId, line.relays[2].eventId]);
    expect(await listEvents()).toEqual(["stripe request", "archive request", "later import"]);
  });

  test("refuses a line that a follower may not take unsigned only for that follower", async () => {
    const acting = follower("grants", { map: { event_id: "id", person_email: "email" }, actions: [GRANT] });
    await begin([acting]);
    const person = { email: "ada@example.com" };
    expect(await told("stripe", [bare("a", "paid", person), delivery("b", "paid", person)])).toEqual([
      "new: stripe new, grants refused unsigned_event",
      "new: stripe new, grants new",
    ]);
    expect(await told("stripe", [bare("a", "paid", person)])).toEqual(["refused unsigned_event: stripe known, grants refused unsigned_event"]);
  });

  test("counts two equal lines once in the plan, for each relay by its own key", async () => {
    await begin([follower("by-type", { map: { event_id: "type" } })]);
    expect(await told("stripe", [delivery("a"), delivery("b"), delivery("a")], { dryRun: "true" })).toEqual([
      "new: stripe new, by-type new",
      "new: stripe new, by-type known",
      "known: stripe known, by-type known",
    ]);
  });

  test("is refused if a follower was added, saved or deleted since the plan", async () => {
    await begin([follower("archive")]);
    const plan = async () => (await send("stripe", [delivery("a")], { dryRun: "true" })).body;
    const query = ({ version, followers }: { version: number; followers: { relay: string; version: number }[] }) => ({
      version: String(version),
      followers: followers.map((one) => `${one.relay}@${one.version}`).join(",") || "none",
    });
    const first = await plan();
    expect(first.followers).toEqual([{ relay: "archive", version: 1 }]);
    await save(follower("paid"));
    const stale = await send("stripe", [delivery("a")], query(first));
    expect([stale.status, stale.body.code, stale.body.message]).toEqual([
      409,
      "version_conflict",
      expect.stringContaining("The relays that follow stripe were changed"),
    ]);
    const second = await plan();
    expect((await running.api("DELETE", "/relays/archive")).status).toBe(204);
    expect((await send("stripe", [delivery("a")], query(second))).status).toBe(409);
    expect((await running.api("DELETE", "/relays/paid")).status).toBe(204);
    const third = await plan();
    expect(third.followers).toEqual([]);
    await save(follower("again"));
    expect((await send("stripe", [delivery("a")], query(third))).status).toBe(409);
    expect((await send("stripe", [delivery("a")], query(await plan()))).status).toBe(200);
  });

  test("stores nothing while a follower cannot be opened", async () => {
    await begin([follower("paid")]);
    await running.service.store.write("app", (tx) =>
      tx.run("UPDATE relay SET definition = replace(definition, 'write_record', 'unknown_action') WHERE name = 'paid'"),
    );
    await running.restart();
    const { status, body } = await send("stripe", [delivery("a")]);
    expect([status, body.code, body.message]).toEqual([503, "not_recorded", expect.stringContaining("The relay paid")]);
    expect(await listEvents()).toEqual([]);
  });

  test("names the new events of each relay in the audit log", async () => {
    await begin([follower("archive"), follower("refund", { when: { event_type: "refunded" } })]);
    await send("stripe", [delivery("a"), delivery("b", "refunded"), delivery("a")]);
    const { items } = (await running.api("GET", "/audit?action=events.imported")).body;
    expect(items.map(({ target, after }: Record<string, unknown>) => [target, after])).toEqual([
      ["relay:stripe", expect.objectContaining({ new: 2, known: 1, events: { archive: 2, refund: 1, stripe: 2 } })],
    ]);
  });

  test("offers the body of a signature that counts once as a request does", async () => {
    const map = { event_id: "id" };
    await begin([], { verify: TOKEN_RECIPE, map });
    const lineOf = (token: string, more: object): string => JSON.stringify(tokenCall(token, more));
    expect(await told("stripe", [lineOf("t1", { id: "a" })])).toEqual(["new"]);
    expect(await told("stripe", [lineOf("t1", { id: "a" })])).toEqual(["known"]);
    await save(follower("later", { map }));
    expect(await told("stripe", [lineOf("t1", { id: "a" }), lineOf("t1", { id: "b" })])).toEqual([
      "new: stripe known, later new",
      "refused bad_signature",
    ]);
    expect((await running.hook("stripe", tokenCall("t1", { id: "a" }))).body.duplicate).toBe(true);
    expect(await told("stripe", [lineOf("t2", { id: "c" })])).toEqual(["new: stripe new, later new"]);
    expect((await running.hook("stripe", tokenCall("t2", { id: "c" }))).body.events).toHaveLength(2);
    expect(await listEvents()).toEqual(["stripe import", "later import", "stripe import", "later import"]);
  });

  test("gives every relay the events that the same requests would have given", async () => {
    const relays = [
      follower("archive"),
      follower("by-type", { map: { event_id: "type" } }),
      follower("no-id", { map: { amount: "amount" } }),
      follower("refund", { when: { event_type: "refunded" } }),
    ];
    const source = receiverDefinition({ name: "stripe", when: { event_type: "paid" } });
    await begin(relays, { when: { event_type: "paid" } });
    const production = async (method: string, path: string, body: object) => {
      const url = `${running.service.url}/api/apps/${APP}/production${path}`;
      const headers = { authorization: `Bearer ${running.keys.production}`, "content-type": "application/json" };
      const made = await fetch(url, { method, headers, body: JSON.stringify(body) });
      expect([method, path, made.status]).toEqual([method, path, 201]);
    };
    const fields = { order: { type: "text" }, amount: { type: "text" } };
    await production("POST", "/collections", { name: "orders", kind: "shared", fields });
    await production("POST", "/relays", { definition: source, secret: "zzBXFQsq4OKAPhAIVqsHMpkNhzCwRn77" });
    for (const definition of relays) await production("POST", "/relays", { definition });
    const calls = ["a paid", "b refunded", "a paid", "c other", "b paid", "d refunded", "c other"].map((one) => {
      const [id, type] = one.split(" ");
      return { id, type, amount: 1 };
    });
    for (const call of calls) await running.hook("stripe", signedCall(call, "zzBXFQsq4OKAPhAIVqsHMpkNhzCwRn77"));
    await send(
      "stripe",
      calls.map((call) => JSON.stringify(signedCall(call))),
    );
    const payloads = (environment: Environment) =>
      running.rows<{ relay: string; payload: string }>(
        `SELECT ${RELAY_NAME} AS relay, payload FROM event WHERE environment_id = (SELECT id FROM environment WHERE name = ?1) ORDER BY seq`,
        environment,
      );
    const arrived = await payloads("production");
    expect(arrived.length).toBeGreaterThan(8);
    expect(await payloads("development")).toEqual(arrived);
  });
});

describe("an import into a follower by its name", () => {
  test("ignores its sender's handshake, as an import into the receiver does", async () => {
    const verify = { scheme: "signature", header: "x-signature", signedPayload: "{body}", encoding: "hex", handshake: "slack" };
    await begin([follower("paid", { map: { event_id: "challenge" } })], { verify, map: { event_id: "challenge" } });
    const call = signedCall({ type: "url_verification", challenge: "3eZbrw1a" });
    for (const line of [JSON.stringify(call), call.body])
      for (const name of ["paid", "stripe"]) {
        const { lines } = (await send(name, [line])).body;
        const message = "it is its sender's handshake, which makes no event";
        expect([name, lines[0].outcome, lines[0].message]).toEqual([name, "ignored", message]);
      }
    const { explanation } = (await running.api("POST", "/relays/paid/explain", call)).body;
    expect(explanation.steps.find(({ step }: { step: string }) => step === "handshake")).toMatchObject({ outcome: "stops" });
    expect(await listEvents()).toEqual([]);
  });

  test("goes to that relay only", async () => {
    await begin([follower("archive"), follower("paid")]);
    expect(await told("paid", [delivery("a")])).toEqual(["new"]);
    expect(await listEvents()).toEqual(["paid import"]);
    expect(await told("stripe", [delivery("a")])).toEqual(["new: stripe new, archive new, paid known"]);
  });
});
