/** Two environments of an app that write at the same time: what counts or compares over both stays right. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { countApp, deleteApp } from "../../src/engine/maintenance/app-removal.ts";
import { findEarlierUse, spendSignature } from "../../src/engine/receiver/signature-memory.ts";
import { lockAppLimits } from "../../src/platform/account/app.ts";
import { findExceededCap, recordIntendedEmail } from "../../src/platform/mail/email.ts";
import type { Writer } from "../../src/store/port.ts";
import { ON_POSTGRES } from "../kit/chosen-store.ts";
import { until } from "../kit/event-flow.ts";
import { receiverDefinition, signedCall } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";

const NAMES = ["development", "production"] as const;
const SECRETS = { development: "Development-secret-with-a-1", production: "Production-secret-with-a-2" };
const LIMITS = { ...DEFAULT_LIMITS, verifiedEventsPerMinute: 12, emailsPerHour: 7 };
const TIMES = 15;

let running: RunningService;
let environmentIds: number[];

beforeEach(async () => {
  const mailer = { send: async () => ({ kind: "sent" as const }) };
  running = await startRunningService({ config: { limits: LIMITS }, ports: { mailer }, environments: NAMES });
  const rows = await running.rows<{ id: number }>("SELECT id FROM environment ORDER BY id");
  environmentIds = rows.map(({ id }) => id);
});
afterEach(() => running[Symbol.asyncDispose]());

const saveIn = async (name: (typeof NAMES)[number], secret: string, relay = "orders") => {
  const definition = receiverDefinition({ name: relay, actions: [{ type: "grant_credits", amount: 5 }] });
  return await running.api("POST", "/relays", { definition, secret }, name);
};

/** Writes several times in each environment, all at once. Returns the results by environment. */
const raceWrites = <Result>(work: (tx: Writer, environmentId: number) => Promise<Result>): Promise<Result[][]> =>
  Promise.all(
    environmentIds.map((id) => Promise.all(Array.from({ length: TIMES }, () => running.service.store.write("relay", (tx) => work(tx, id), id)))),
  );

test("they store no more events in a minute than the app may receive", async () => {
  for (const name of NAMES) expect((await saveIn(name, SECRETS[name])).status).toBe(201);
  const sent = await Promise.all(
    Array.from({ length: TIMES }, (_, at) =>
      NAMES.map(async (name) => (await running.hook("orders", signedCall({ id: `${name} ${at}` }, SECRETS[name]))).status),
    ).flat(2),
  );
  expect(sent.filter((status) => status === 200)).toHaveLength(LIMITS.verifiedEventsPerMinute);
  expect(sent.filter((status) => status === 429)).toHaveLength(2 * TIMES - LIMITS.verifiedEventsPerMinute);
  expect(await running.rows("SELECT seq FROM event")).toHaveLength(LIMITS.verifiedEventsPerMinute);
  await running.drain();
});

test("they send no more mails in an hour than the app may send", async () => {
  const nowMs = running.clock.now();
  const results = await raceWrites(async (tx, environmentId) => {
    await lockAppLimits(tx, APP);
    const mail = { appId: APP, personId: "", kind: "account", nowMs } as const;
    if ((await findExceededCap(tx, mail, LIMITS)) !== null) return "capped";
    const text = { subject: "", text: "", recipient: "ada@example.com", sender: "event@example.com" };
    await recordIntendedEmail(tx, { environmentId, personId: null, kind: "event", relayName: "orders", eventId: null, nowMs, ...text });
    return "intended";
  });
  expect(results.flat().filter((result) => result === "intended")).toHaveLength(LIMITS.emailsPerHour);
  await running.service.store.write("app", (tx) => tx.run("DELETE FROM email"));
});

/** Counts the transactions that wait for this one, and takes a moment. */
const COUNT_WAITING = "SELECT count(*) AS waiting FROM pg_stat_activity, pg_sleep(0.01) WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))";
const MOST_COUNTS = 200;

test("a relay's mail waits for a transaction of the other environment that counts mails, and then counts them, too", async () => {
  const [developmentId = 0, productionId = 0] = environmentIds;
  await running.service.store.write("app", (tx) =>
    tx.run("INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) VALUES (?1, 'shop.example', 't', 1)", developmentId),
  );
  const actions = [{ type: "email_person", subject: "Hello", text: "Text", kind: "account" }];
  const definition = receiverDefinition({ name: "orders", map: { event_id: "id", person_email: "email" }, actions });
  expect((await running.api("POST", "/relays", { definition, secret: SECRETS.development })).status).toBe(201);
  const nowMs = running.clock.now();
  const began = Promise.withResolvers<void>();
  const sending = running.service.store.write(
    "relay",
    async (tx) => {
      await lockAppLimits(tx, APP);
      began.resolve();
      const text = { subject: "", text: "", recipient: "ada@example.com", sender: "event@example.com" };
      const mail = { environmentId: productionId, personId: null, kind: "event", relayName: "orders", eventId: null, nowMs, ...text } as const;
      for (let sent = 0; sent < LIMITS.emailsPerHour; sent++) await recordIntendedEmail(tx, mail);
      for (let counts = 0; ON_POSTGRES && counts < MOST_COUNTS; counts++)
        if ((await tx.get<{ waiting: number }>(COUNT_WAITING))?.waiting !== 0) return;
    },
    productionId,
  );
  await began.promise;
  await running.hook("orders", signedCall({ id: "one", email: "ada@example.com" }, SECRETS.development));
  await running.drain();
  await sending;
  expect(await running.rows("SELECT id FROM email")).toHaveLength(LIMITS.emailsPerHour);
  await running.service.store.write("app", (tx) => tx.run("DELETE FROM email"));
});

test("each accepts a signature once, although the other one accepts the same text", async () => {
  const hash = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest();
  const results = await raceWrites(async (tx, environmentId) => {
    const use = { environmentId, relayName: "orders", signedTextHash: hash("text"), bodyHash: hash("body"), until: null, secret: null };
    if ((await findEarlierUse(tx, use)) !== null) return "used";
    await spendSignature(tx, use, null);
    return "accepted";
  });
  for (const ofEnvironment of results) expect(ofEnvironment.filter((result) => result === "accepted")).toHaveLength(1);
});

test("one of them is refused a secret that verifies in the other", async () => {
  for (const relay of ["first", "second", "third"]) {
    const saved = await Promise.all(NAMES.map((name) => saveIn(name, SECRETS.development, relay)));
    expect(saved.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(saved.filter(({ status }) => status >= 400 && status < 500)).toHaveLength(1);
  }
});

test("the deletion of their app leaves no event of a request that arrived meanwhile", async () => {
  for (const name of NAMES) expect((await saveIn(name, SECRETS[name])).status).toBe(201);
  const { store } = running.service;
  const contents = await countApp(store, APP);
  const send = () =>
    NAMES.flatMap((name) =>
      Array.from({ length: 4 }, async (_, at) => (await running.hook("orders", signedCall({ id: `${name} ${at}` }, SECRETS[name]))).status),
    );
  const before = send();
  const deletion = { appId: APP, confirm: APP, force: true, contents, by: "owner:ada@example.com", nowMs: running.clock.now() };
  const deleting = store.write("dashboard", (tx) => deleteApp(tx, deletion));
  const statuses = await Promise.all([...before, ...send()]);
  await deleting;
  for (const status of statuses) expect([200, 404, 503]).toContain(status);
  await until("the app is removed", async () => {
    await running.clock.advance(100);
    return (await running.rows("SELECT id FROM app WHERE id = ?1", APP)).length === 0;
  });
  expect(await running.rows("SELECT seq FROM event")).toEqual([]);
});
