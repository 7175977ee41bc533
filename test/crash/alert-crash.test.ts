/**
 * Kills the process that raises and emails alerts: the compiled executable with a real SMTP server. SIGKILL comes as a problem is raised, as its
 * email is sent, or as the problem is resolved. Each alert is raised once. Each alert is emailed once, or its email is shown as unknown.
 * `RELAY_CRASH_KILLS` makes the loop longer (60 at most), `RELAY_CRASH_SEED` repeats one.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeAuthority } from "../kit/certificate.ts";
import { type Executable, placeExecutable } from "../kit/executable.ts";
import { type MailServer, startMailServer } from "../kit/mail-server.ts";
import { poll } from "../kit/patience.ts";
import { makeRandom } from "../kit/random.ts";
import { HOOK_SECRET } from "../kit/relay-definition.ts";
import { rounds } from "../kit/rounds.ts";
import { MINUTE, Stand } from "../kit/staged-failure.ts";
import { type Called, StagedServer, startCalled } from "../kit/staged-server.ts";

const seed = Number(process.env.RELAY_CRASH_SEED ?? Date.now() % 1_000_000);
const kills = Number(process.env.RELAY_CRASH_KILLS ?? rounds({ slice: 1, soak: 4, long: 10 }));
/** The service stops waiting for a mail server after a minute of its clock, so one step must be shorter. */
const STEP_MS = 20_000;
const OTHER_SECRET = "anotherSecretOfTwentyFour1";
/**
 * The moments of a kill: as the problem is raised, as the mail loop looks for it, at the email's recipient, at its text, as the problem is resolved.
 */
const PHASES = ["raised", "mailed", "recipient", "text", "over"] as const;

let executable: Executable;
let mails: MailServer;
let called: Called;
let server: StagedServer;
let stand: Stand;
/** Kills the server this many milliseconds after the next step has begun. */
let killAfterMs: number | null = null;
/** The stage of the next email at which the server is killed. */
let killAt: string | null = null;
let killed: Promise<void> | null = null;

beforeEach(async () => {
  const authority = makeAuthority("Alerts");
  executable = placeExecutable("staged");
  mails = await startMailServer({ authority, security: "none", onRecipient: () => cutOff("recipient"), onText: () => cutOff("text") });
  called = startCalled(authority);
  const file = join(executable.makeFolder(), "authority.pem");
  writeFileSync(file, authority.cert);
  server = await StagedServer.start(executable, file, { RELAY_LIMIT_RELAYS: "1000" });
  stand = await Stand.start(server, called, "alerting");
  await server.stop();
  server.alter(
    `INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at)
     SELECT id, 'shop.example', 't', 1 FROM environment WHERE name = 'development' AND app_id = ?1`,
    "alerting",
  );
  await server.begin();
  const { version } = (await stand.api("GET", "/settings")).body.settings;
  const smtp = { host: "localhost", port: mails.port, security: "none" };
  expect((await stand.api("PUT", "/settings", { version, mail: { smtp } })).status).toBe(200);
});

afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await called[Symbol.asyncDispose]();
  executable[Symbol.dispose]();
});

async function cutOff(at: string): Promise<void> {
  if (killAt !== at) return;
  killAt = null;
  killed = server.kill();
  await killed;
}

/** Waits until no email is being sent. It restarts the server if it was killed. */
async function settle(): Promise<void> {
  const intended = async (): Promise<boolean> => {
    if (killed !== null) {
      await killed;
      killed = null;
      await server.begin();
    }
    return (await states().catch(() => ["intended"])).includes("intended");
  };
  expect(await poll(intended, (is) => !is)).toBe(false);
}

/** Lets time pass until `done`, for at most `ms`. If a kill is due, it happens during the first step. */
async function pass(ms: number, done: () => Promise<boolean> = async () => false): Promise<void> {
  for (let left = ms; left > 0 && !(await done()); left -= STEP_MS) {
    const moved = server.move("advance", STEP_MS).catch(() => undefined);
    if (killAfterMs !== null) {
      await Bun.sleep(killAfterMs);
      killAfterMs = null;
      await server.kill();
      await moved;
      await server.begin();
    } else await moved;
    await settle();
  }
}

const states = async (): Promise<string[]> => (await stand.api("GET", "/emails?limit=200")).body.items.map(({ state }: { state: string }) => state);
const listed = async (path: string, name: string) =>
  (await stand.api("GET", `${path}&limit=200`)).body.items.filter(({ target }: { target: string }) => target === `relay:${name}`);
const stands = (name: string) => async () => (await listed("/problems?all=false", name)).length > 0;
const isOver = (name: string) => async () => !(await stands(name)());
const call = (name: string, secret: string) => stand.call({ id: `${name}-${server.nowMs}` }, secret, name).catch(() => null);

test(`the service raises and resolves each problem once and emails each alert once over ${kills} kills (seed ${seed})`, async () => {
  const random = makeRandom(seed);
  const names = Array.from({ length: kills }, (_, round) => `r${round}`);
  for (const [round, name] of names.entries()) {
    const phase = PHASES[round % PHASES.length];
    const soon = () => Math.floor(random() * 25);
    await stand.save({ name, trigger: ORDERS, actions: [WRITE] }, HOOK_SECRET);
    for (let sent = 0; sent < 12 && !(await stands(name)()); sent++) {
      await call(name, OTHER_SECRET);
      if (phase === "raised" && sent === 4) killAfterMs = soon();
      await pass(4 * MINUTE, stands(name));
    }
    expect([name, await stands(name)()]).toEqual([name, true]);
    const before = mails.taken.length;
    killAt = phase ?? null;
    await pass(20 * MINUTE, async () => {
      // The mailing loop looks at every step. One of these looks is killed.
      if (phase === "mailed" && killAfterMs === null && random() < 0.2) killAfterMs = soon();
      return mails.taken.length > before;
    });
    [killAfterMs, killAt] = [null, null];
    await call(name, HOOK_SECRET);
    if (phase === "over") killAfterMs = soon();
    await pass(2 * MINUTE, isOver(name));
    if (await stands(name)()) {
      await call(name, HOOK_SECRET);
      await pass(2 * MINUTE, isOver(name));
    }
    expect([name, await stands(name)()]).toEqual([name, false]);
  }
  await pass(40 * MINUTE);

  const unknown = (await states()).filter((state) => state === "unknown").length;
  const texts = mails.taken.map(({ raw }) => raw.replace(/=\r?\n/g, "").replace(/=C2=B7/gi, "·"));
  let lost = 0;
  for (const name of names) {
    const problems = await listed("/problems?all=true", name);
    expect([name, problems.map(({ code, clearedAt }: Row) => [code, clearedAt !== null])]).toEqual([name, [["never_verified", true]]]);
    const alerts = (await listed("/alerts?open=false", name)) as Row[];
    expect([name, alerts.map(({ code, count }) => [code, count]).sort()]).toEqual([
      name,
      [
        ["never_verified", 1],
        ["relay_recovered", 1],
      ],
    ]);
    for (const { code } of alerts) {
      const told = texts.filter((text) => new RegExp(`${name}: [^\\n]*\\(${code}\\) · `).test(text)).length;
      if (told === 0) lost += 1;
      expect([name, code, told]).toEqual([name, code, Math.min(told, 1)]);
    }
  }
  // An email with an unknown result contains at most the two alerts of a relay.
  expect(lost).toBeLessThanOrEqual(2 * unknown);
  expect(server.log.filter((line) => line.includes("a problem exists")).length).toBeGreaterThanOrEqual(kills - 3);
});

interface Row {
  code: string;
  count: number;
  clearedAt: string | null;
}

const ORDERS = {
  kind: "receiver",
  verify: { scheme: "signature", header: "x-signature", signedPayload: "{body}", encoding: "hex" },
  map: { event_id: "id" },
};
const WRITE = { type: "write_record", collection: "orders", data: { order: "{{mapped.event_id}}" } };
