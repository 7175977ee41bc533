/**
 * Kills the process that sends emails: a real `relay serve`, a real SMTP server, real signals. The mail server accepts each email once, or the
 * service reports its result as unknown. No email is silently unsent, and none is sent twice. `RELAY_CRASH_KILLS` makes the loop longer,
 * `RELAY_CRASH_SEED` repeats one.
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeAuthority } from "../kit/certificate.ts";
import { type CliProcess, startCli } from "../kit/cli-process.ts";
import { type Hold, type MailServer, startMailServer } from "../kit/mail-server.ts";
import { poll, untilNoneLeft } from "../kit/patience.ts";
import { makeRandom } from "../kit/random.ts";
import { receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { rounds } from "../kit/rounds.ts";
import { APP, startRunningService } from "../kit/running-service.ts";

const MANY = "1000000";
const ENV = {
  RELAY_LIMIT_VERIFIED_EVENTS_PER_MINUTE: MANY,
  RELAY_LIMIT_INVITES_PER_DAY: MANY,
  RELAY_LIMIT_EMAILS_PER_HOUR: MANY,
  RELAY_LIMIT_EVENT_EMAILS_PER_PERSON_PER_DAY: MANY,
};
const MAIL = { type: "email_person", subject: "{{mapped.event_id}}", text: "Thank you." };
const seed = Number(process.env.RELAY_CRASH_SEED ?? Date.now() % 1_000_000);
/** Fewer than an event's seven attempts, so kills make no event dead. */
const kills = Number(process.env.RELAY_CRASH_KILLS ?? rounds({ slice: 1, soak: 3, long: 6 }));

let folder: string;
let key: string;
let server: MailServer;
let url: string;
let child: CliProcess | null = null;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "relay-mail-"));
  server = await startMailServer({ authority: makeAuthority("Nobody"), security: "none" });
  const running = await startRunningService({ config: { dataDir: join(folder, "data") } });
  key = running.keys.development ?? "";
  await running.service.store.write("app", (tx) =>
    tx.run("INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) SELECT id, 'shop.example', 't', 1 FROM environment"),
  );
  const smtp = { host: "localhost", port: server.port, security: "none" };
  expect((await running.api("PUT", "/settings", { version: 1, mail: { smtp } })).status).toBe(200);
  await saveRelay(running, receiverDefinition({ actions: [MAIL], map: { event_id: "id", person_email: "email" } }));
  await running.service[Symbol.asyncDispose]();
});

afterEach(async () => {
  server.letGo();
  await kill();
  rmSync(folder, { recursive: true, force: true });
});

async function start(): Promise<void> {
  const line = ["serve", "--port", "0", "--data-dir", join(folder, "data"), "--allow-private", "localhost"];
  child = startCli(line, { cwd: folder, env: ENV });
  url = (await child.line("Listening")).split(/\s+/)[1] ?? "";
}

/** Kills the process with SIGKILL. */
async function kill(): Promise<void> {
  await child?.[Symbol.asyncDispose]();
  child = null;
}

/** Sends the event with this number. Returns whether it was acknowledged. */
async function send(number: number): Promise<boolean> {
  const { headers, body } = signedCall({ id: `e${number}`, email: `p${number % 10}@example.com` });
  try {
    return (await fetch(`${url}/hooks/${APP}/orders`, { method: "POST", headers, body })).ok;
  } catch {
    return false;
  }
}

async function sendAgain(id: string): Promise<{ status: number; body: unknown }> {
  const response = await fetchApi("POST", `/emails/${id}/send-again`);
  return { status: response.status, body: await response.json() };
}

function rows<Row>(sql: string): Row[] {
  using database = new Database(join(folder, "data", "relay.db"), { readonly: true });
  return database.query<Row, []>(sql).all();
}
const states = () => rows<{ state: string }>("SELECT DISTINCT state FROM email ORDER BY state").map(({ state }) => state);
const alerts = () => rows<{ count: number; message: string }>("SELECT count, message FROM alert");

/** Waits until no event is left. An event that was cut off twice waits for minutes, so it is retried now. */
async function untilRest(): Promise<void> {
  const count = (where: string) => rows<{ count: number }>(`SELECT count(*) AS count FROM event WHERE ${where}`)[0]?.count ?? 0;
  const left = await untilNoneLeft(async () => {
    if (count("state = 'queued' AND next_attempt_at IS NOT NULL") > 0) await fetchApi("POST", "/relays/orders/retry");
    return count("state IN ('queued', 'running')");
  });
  expect(left).toBe(0);
}

function fetchApi(method: string, path: string): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return fetch(`${url}/api/apps/${APP}/development${path}`, { method, headers, ...(method === "POST" ? { body: "{}" } : {}) });
}

/** Counts how often the mail server accepted the email of each event. */
function taken(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { raw } of server.taken) {
    const id = /^Subject: (\S+)/m.exec(raw)?.[1] ?? "?";
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

describe("a process that is killed while it sends emails", () => {
  for (const hold of ["greeting", "recipient"] as const) {
    test(`sends each of them once after the restart if the mail server held them at the ${hold}`, async () => {
      server.hold = hold;
      await start();
      for (let number = 0; number < 20; number++) expect(await send(number)).toBe(true);
      await server.untilHeld(8);
      await kill();
      server.letGo();
      await start();
      await untilRest();
      expect([...taken().values()]).toEqual(Array(20).fill(1));
      // The service on a slow machine can stop waiting for a held email and send it in a later attempt.
      expect([states().filter((state) => state !== "failed"), alerts()]).toEqual([["sent"], []]);
    });
  }

  test("does not send a text again that the mail server got and did not answer; it alerts with count and ids, and a person sends it again", async () => {
    server.hold = "text";
    await start();
    for (let number = 0; number < 8; number++) expect(await send(number)).toBe(true);
    await server.untilHeld(8);
    await kill();
    server.letGo();
    await start();
    await untilRest();
    expect([...taken().values()]).toEqual(Array(8).fill(1));
    expect(states()).toEqual(["unknown"]);
    const [alert, ...more] = alerts();
    expect([alert?.count, more]).toEqual([8, []]);
    const ids = rows<{ id: string }>("SELECT id FROM email").map(({ id }) => id);
    for (const id of ids) expect(alert?.message).toContain(id);
    const [first = "", ...others] = ids;
    expect(await sendAgain(first)).toMatchObject({
      status: 200,
      body: { email: { id: first, state: "sent" } },
    });
    expect(await sendAgain(first)).toMatchObject({ status: 409, body: { code: "mail_settled" } });
    const command = startCli(["emails", "send-again", ...others, "--data-dir", join(folder, "data"), "--allow-private", "localhost"], {
      cwd: folder,
      env: ENV,
    });
    expect(await command.exited).toBe(0);
    expect([...taken().values()]).toEqual(Array(8).fill(2));
    expect(states()).toEqual(["sent"]);
  });

  test(`has sent every acknowledged email once, or reports it as unknown, over ${kills} kills at any moment (seed ${seed})`, async () => {
    const random = makeRandom(seed);
    const acknowledged: string[] = [];
    let number = 0;
    for (let round = 0; round < kills; round++) {
      await start();
      let over = false;
      const senders = Array.from({ length: 6 }, async () => {
        while (!over) {
          const mine = number++;
          if (await send(mine)) acknowledged.push(`e${mine}`);
          await Bun.sleep(20);
        }
      });
      // At least one round must have an event to lose, on a slow machine too.
      if (round === 0)
        await poll(
          () => acknowledged.length,
          (length) => length > 0,
        );
      await Bun.sleep(100 + random() * 700);
      over = true;
      await kill();
      await Promise.all(senders);
    }
    await start();
    await untilRest();
    const came = taken();
    const unknown = rows<{ subject: string }>("SELECT subject FROM email WHERE state = 'unknown'").map(({ subject }) => subject);
    expect([...came].filter(([, count]) => count > 1)).toEqual([]);
    expect(acknowledged.filter((id) => !came.has(id) && !unknown.includes(id))).toEqual([]);
    expect(states().filter((state) => state !== "sent" && state !== "unknown")).toEqual([]);
    expect(alerts().reduce((sum, { count }) => sum + count, 0)).toBe(unknown.length);
    expect(acknowledged.length).toBeGreaterThan(0);
  });
});

describe("a process that is asked to stop while a mail server hangs", () => {
  test.each<[Hold, string, string[]]>([
    ["greeting", "queued", ["failed"]],
    ["recipient", "queued", ["failed"]],
    ["text", "done", ["unknown"]],
  ])("stops gracefully at the %s, with the right states of the event and the email", async (hold, event, mail) => {
    server.hold = hold;
    await start();
    expect(await send(1)).toBe(true);
    await server.untilHeld(1);
    child?.kill("SIGTERM");
    // The code is 1 if the service had to abort its stop.
    expect(await child?.exited).toBe(0);
    expect(rows("SELECT state FROM event")).toEqual([{ state: event }]);
    expect(states()).toEqual(mail);
  });
});
