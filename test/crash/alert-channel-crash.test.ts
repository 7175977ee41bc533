/**
 * Kills the process that sends alerts to a channel: the compiled executable with a real server for the channel. SIGKILL comes as the message arrives, right
 * after its answer, or later. Each alert arrives, then that it is resolved. A kill repeats this one message, under the same id.
 * The clock moves in steps of many seconds, so that a repetition can also time out and be sent again.
 * `RELAY_CRASH_KILLS` makes the loop longer, `RELAY_CRASH_SEED` repeats one.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeAuthority } from "../kit/certificate.ts";
import { type Executable, placeExecutable } from "../kit/executable.ts";
import { makeRandom } from "../kit/random.ts";
import { rounds } from "../kit/rounds.ts";
import { readAnswer, StagedServer } from "../kit/staged-server.ts";

const seed = Number(process.env.RELAY_CRASH_SEED ?? Date.now() % 1_000_000);
const kills = Number(process.env.RELAY_CRASH_KILLS ?? rounds({ slice: 2, soak: 8, long: 30 }));
const STEP_MS = 20_000;
/** The most time until a message arrives: a minute to gather, a minute until the job looks, and the same again after a kill. */
const MOST_STEPS = 18;

interface Message {
  id: string;
  alerts: { state: string; target: string }[];
}

let executable: Executable;
let server: StagedServer;
let key: string;
let messages: Message[] = [];
/** The earliest time at which the last message can have been sent. */
let lastSentMs = 0;
/** The next kill: the message at which it comes, and its moment with the milliseconds after the answer. null: no kill is due. */
let killAt: { isFor(message: Message): boolean; isBeforeAnswer: boolean; afterMs: number } | null = null;
let killed: Promise<void> | null = null;
let sink: ReturnType<typeof startSink>;

function startSink(tls: { cert: string; key: string }) {
  return Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    tls,
    async fetch(request) {
      const message = (await request.json()) as Message;
      messages.push(message);
      lastSentMs = server.nowMs - STEP_MS;
      // The repetition of an earlier message can come first.
      const due = killAt?.isFor(message) === true ? killAt : null;
      if (due === null) return new Response(null, { status: 204 });
      killAt = null;
      if (due.isBeforeAnswer) {
        killed = server.kill();
        await killed;
      } else killed = Bun.sleep(due.afterMs).then(() => server.kill());
      return new Response(null, { status: 204 });
    },
  });
}

beforeEach(async () => {
  const authority = makeAuthority("Channels");
  executable = placeExecutable("staged");
  messages = [];
  sink = startSink(authority.issue(["localhost"]));
  const file = join(executable.makeFolder(), "authority.pem");
  writeFileSync(file, authority.cert);
  server = await StagedServer.start(executable, file);
  key = (await server.makeApp("channels")).development;
  const url = `https://localhost:${sink.port}/alerts`;
  expect((await api("POST", "/alert-channels", { kind: "webhook", fields: { url } })).status).toBe(201);
});

afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await sink.stop(true);
  executable[Symbol.dispose]();
});

const api = async (method: string, path: string, body: object = {}) =>
  readAnswer(
    await server.fetch(`/api/apps/channels/development${path}`, {
      method,
      headers: { authorization: `Bearer ${key}` },
      ...(method === "GET" ? {} : { body: JSON.stringify(body) }),
    }),
  );

/** Stores an open alert that only an owner resolves. */
async function raise(nth: number): Promise<string> {
  await server.stop();
  const id = `alt_${nth.toString(16).padStart(32, "0")}`;
  server.alter(
    `INSERT INTO alert (id, environment_id, code, target, message, count, at, last_at)
     SELECT ?1, id, 'events_dropped', ?2, 'It was dropped.', 1, ?3, ?3 FROM environment WHERE app_id = 'channels' AND name = 'development'`,
    id,
    `relay:r${nth}`,
    String(server.nowMs),
  );
  await server.begin();
  return id;
}

const contains = ({ alerts }: Message, nth: number, state: string): boolean =>
  alerts.some((alert) => alert.target === `relay:r${nth}` && alert.state === state);
const of = (nth: number, state: string): Message[] => messages.filter((message) => contains(message, nth, state));

/** Reports whether the service recorded that the last message arrived. Otherwise it will repeat the message, together with what happens until then. */
async function isRecorded(): Promise<boolean> {
  const list = await api("GET", "/alert-channels").catch(() => null);
  const { channels = [] } = (list?.body ?? {}) as { channels?: { triedAt: string | null; failingAt: string | null }[] };
  return channels.some(({ triedAt, failingAt }) => failingAt === null && triedAt !== null && Date.parse(triedAt) >= lastSentMs);
}

/** Lets time pass until the messages arrived and were recorded and no kill is due, then a few minutes more. */
async function pass(isDone: () => boolean): Promise<void> {
  let steps = 0;
  for (let left = MOST_STEPS; left > 0 && steps < MOST_STEPS * 3; steps++) {
    if (isDone() && killAt === null && (await isRecorded())) left -= 2;
    const moved = server.move("advance", STEP_MS).catch(() => undefined);
    if (killed === null) await moved;
    if (killed !== null) {
      await killed;
      killed = null;
      await server.begin();
    }
  }
}

test(`each alert arrives, then that it is resolved, and each of ${kills} kills repeats only that message (seed ${seed})`, async () => {
  const random = makeRandom(seed);
  for (let nth = 0; nth < kills; nth++) {
    // A kill before the answer always repeats the message. One right after it may come before or after the write.
    const isBeforeAnswer = nth % 2 === 0;
    const killWithin = async (state: string): Promise<void> => {
      const isFor = (message: Message) => contains(message, nth, state);
      killAt = { isFor, isBeforeAnswer, afterMs: Math.floor(random() * 20) };
      await pass(() => of(nth, state).length >= (isBeforeAnswer ? 2 : 1));
    };
    const id = await raise(nth);
    await killWithin("open");
    expect((await api("POST", `/alerts/${id}/resolve`)).status).toBe(200);
    await killWithin("resolved");
    for (const state of ["open", "resolved"]) {
      const found = of(nth, state);
      expect([nth, state, found.length >= (isBeforeAnswer ? 2 : 1)]).toEqual([nth, state, true]);
      expect(new Set(found.map((message) => message.id)).size).toBe(1);
    }
    const states = messages.flatMap(({ alerts }) => alerts.filter(({ target }) => target === `relay:r${nth}`).map(({ state }) => state));
    expect(states.lastIndexOf("open")).toBeLessThan(states.indexOf("resolved"));
  }
  expect(new Set(messages.map(({ id }) => id)).size).toBe(2 * kills);
});
