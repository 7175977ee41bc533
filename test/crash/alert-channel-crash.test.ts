/**
 * Kills the process that sends alerts to a channel: the compiled executable with a real server for the channel. SIGKILL comes as the message arrives, right
 * after its answer, or later. Each alert arrives, then that it is resolved. A kill repeats at most one message, under the same id.
 * `RELAY_CRASH_KILLS` makes the loop longer, `RELAY_CRASH_SEED` repeats one.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeAuthority } from "../kit/certificate.ts";
import { type Executable, placeExecutable } from "../kit/executable.ts";
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
/** The moment of the next kill, with the milliseconds after the answer. null: no kill is due. */
let killAt: { isBeforeAnswer: boolean; afterMs: number } | null = null;
let killed: Promise<void> | null = null;
let sink: ReturnType<typeof startSink>;

function startSink(tls: { cert: string; key: string }) {
  return Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    tls,
    async fetch(request) {
      messages.push((await request.json()) as Message);
      const due = killAt;
      killAt = null;
      if (due?.isBeforeAnswer === true) {
        killed = server.kill();
        await killed;
      } else if (due !== null) killed = Bun.sleep(due.afterMs).then(() => server.kill());
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

const of = (nth: number, state: string): Message[] =>
  messages.filter(({ alerts }) => alerts.some((alert) => alert.target === `relay:r${nth}` && alert.state === state));

/** Lets time pass until the message arrived and no kill is due, then a few minutes more. */
async function pass(isDone: () => boolean): Promise<void> {
  let steps = 0;
  for (let left = MOST_STEPS; left > 0 && steps < MOST_STEPS * 3; steps++) {
    if (isDone() && killAt === null) left -= 2;
    const moved = server.move("advance", STEP_MS).catch(() => undefined);
    if (killed === null) await Promise.race([moved, Bun.sleep(5_000)]);
    if (killed !== null) {
      await killed;
      killed = null;
      await server.begin();
    }
  }
}

/** The random generator mulberry32. */
function makeRandom(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

test(`each alert arrives, then that it is resolved, and each of ${kills} kills repeats at most one message (seed ${seed})`, async () => {
  const random = makeRandom(seed);
  for (let nth = 0; nth < kills; nth++) {
    const due = () => ({ isBeforeAnswer: nth % 2 === 0, afterMs: Math.floor(random() * 20) });
    const id = await raise(nth);
    killAt = due();
    await pass(() => of(nth, "open").length > 0);
    expect((await api("POST", `/alerts/${id}/resolve`)).status).toBe(200);
    killAt = due();
    await pass(() => of(nth, "resolved").length > 0);
    for (const state of ["open", "resolved"]) {
      const found = of(nth, state);
      // A kill before the answer always repeats the message. One right after it may come before or after the write.
      const isOnce = found.length === 1 && nth % 2 === 1;
      expect([nth, state, isOnce || found.length === 2]).toEqual([nth, state, true]);
      expect(new Set(found.map((message) => message.id)).size).toBe(1);
    }
    const states = messages.flatMap(({ alerts }) => alerts.filter(({ target }) => target === `relay:r${nth}`).map(({ state }) => state));
    expect(states.lastIndexOf("open")).toBeLessThan(states.indexOf("resolved"));
  }
  expect(new Set(messages.map(({ id }) => id)).size).toBe(2 * kills);
});
