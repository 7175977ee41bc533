/** Tests the compiled executable's life: one process per data directory, a graceful stop, a restart after kill -9, and a port in use. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { type Executable, placeExecutable, type StartedExecutable } from "../kit/executable.ts";
import { openEnvironment, postHook } from "../kit/executable-api.ts";
import { HOOK_SECRET, receiverDefinition, signedCall, writeOrder } from "../kit/relay-definition.ts";
import { type Sink, startSink } from "../kit/sink.ts";

let executable: Executable;

beforeAll(() => {
  executable = placeExecutable();
});

afterAll(() => executable[Symbol.dispose]());

/** Creates a folder whose relay `orders` writes a record, and then calls the sink if given. */
function makeOrderFolder(sink?: Sink): string {
  const cwd = executable.makeFolder();
  const write = (file: string, value: unknown): void => writeFileSync(join(cwd, "service", file), JSON.stringify(value));
  mkdirSync(join(cwd, "service/relays"), { recursive: true });
  const call = sink === undefined ? [] : [{ type: "call_url", url: `${sink.url}/orders` }];
  write("relays/orders.json", receiverDefinition({ actions: [writeOrder, ...call] }));
  write("catalog.json", {
    collections: { orders: { kind: "shared", fields: { order: "text", amount: "text" } } },
  });
  write(".secrets.json", { orders: { receiverSecret: HOOK_SECRET } });
  return cwd;
}

const order = (id: string) => signedCall({ id, type: "order.paid", amount: 4200 });

describe("one data directory", () => {
  test("a second instance is rejected with one sentence that names the first, which continues", async () => {
    const cwd = makeOrderFolder();
    await using first = await executable.start(["dev"], { cwd });
    const second = await executable.run(["dev", "--port", "0"], { cwd });
    expect({ code: second.code, said: second.said }).toEqual({ code: 1, said: "" });
    expect(second.told.trim().split("\n").slice(1)).toEqual([expect.stringMatching(/^directory_taken {2}http/)]);
    expect(second.told).toContain(`in use by relay dev, process ${first.pid}`);
    const server = await executable.run(["serve", "--port", "0"], { cwd });
    expect(server.told).toContain(`in use by relay dev, process ${first.pid}`);
    expect((await postHook(first, "orders", order("a"))).status).toBe(200);
  });

  test("the next instance starts after the first has ended", async () => {
    const cwd = makeOrderFolder();
    await using first = await executable.start(["dev"], { cwd });
    expect(await first.end("SIGINT")).toBe(0);
    await using next = await executable.start(["dev"], { cwd });
    expect((await postHook(next, "orders", order("a"))).status).toBe(200);
  });
});

/** Begins a request whose body is sent in two halves on a separate connection. */
async function beginCall(service: StartedExecutable, body: string, headers: Record<string, string>) {
  const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
  await new Promise<void>((resolve) => socket.once("connect", () => resolve()));
  const lines = Object.entries({ ...headers, "content-length": String(body.length), connection: "close" });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  socket.write(`POST /hooks/local/orders HTTP/1.1\r\nhost: ${new URL(service.url).host}\r\n${head}\r\n`);
  socket.write(body.slice(0, 10));
  let answer = "";
  const ended = new Promise<string>((resolve, reject) => {
    socket.on("data", (chunk) => {
      answer += chunk.toString();
    });
    socket.on("close", () => resolve(answer));
    socket.on("error", reject);
  });
  return { finish: () => void socket.write(body.slice(10)), ended };
}

describe("SIGTERM", () => {
  test("an accepted request still gets its response, and the exit code is 0", async () => {
    const cwd = makeOrderFolder();
    await using service = await executable.start(["dev"], { cwd });
    const { body, headers } = order("a");
    const call = await beginCall(service, body, headers);
    // The server answers these after it has read the bytes of the earlier request.
    for (const path of ["/healthz", "/readyz"]) await fetch(`${service.url}${path}`);
    const ended = service.end("SIGTERM");
    await service.told.waitFor("Stopping");
    call.finish();
    const answer = await call.ended;
    expect(answer).toStartWith("HTTP/1.1 200");
    const eventId = /evt_\w+/.exec(answer)?.[0] ?? "none";
    expect(await ended).toBe(0);
    const shown = await executable.run(["events", "show", eventId, "--json"], { cwd });
    expect(shown.code).toBe(0);
  });

  test("a running action finishes first, and its result is stored", async () => {
    await using sink = startSink();
    const cwd = makeOrderFolder(sink);
    await using service = await executable.start(["dev"], { cwd });
    const answerSink = sink.hold();
    const { body } = await postHook(service, "orders", order("a"));
    await sink.waitFor("/orders", 1);
    const ended = service.end("SIGTERM");
    await service.told.waitFor("Stopping");
    answerSink();
    expect(await ended).toBe(0);
    const shown = JSON.parse((await executable.run(["events", "show", body.eventId, "--json"], { cwd })).said);
    expect(shown.event).toMatchObject({ state: "done", attempts: 1 });
    expect(sink.notices).toHaveLength(1);
  });

  test("recently rejected requests do not delay the end", async () => {
    const cwd = makeOrderFolder();
    await using service = await executable.start(["dev"], { cwd });
    const { body, headers } = order("a");
    const refused = await postHook(service, "orders", { headers, body: `${body} ` });
    expect(refused.status).toBe(401);
    expect(await service.end("SIGTERM")).toBe(0);
  });

  test("idle keep-alive connections do not delay the end", async () => {
    const cwd = makeOrderFolder();
    await using service = await executable.start(["dev"], { cwd });
    const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
    await new Promise<void>((resolve) => socket.once("connect", () => resolve()));
    expect(await service.end("SIGTERM")).toBe(0);
    socket.destroy();
  });
});

describe("kill -9", () => {
  test("the next start continues: one record, a repeated notice with the same id, and a done event", async () => {
    await using sink = startSink();
    const cwd = makeOrderFolder(sink);
    const answerSink = sink.hold();
    const killed = await executable.start(["dev"], { cwd });
    const accepted = await postHook(killed, "orders", order("a"));
    expect(accepted.status).toBe(200);
    await sink.waitFor("/orders", 1);
    expect(await killed.end("SIGKILL")).toBe(null);
    answerSink();

    await using next = await executable.start(["dev"], { cwd });
    const notices = await sink.waitFor("/orders", 2);
    await next.said.waitFor("RELAY · orders · receiver · 2 actions · ok");
    const ids = notices.map(({ body }) => JSON.parse(body.toString()).id);
    expect(ids).toEqual([accepted.body.eventId, accepted.body.eventId]);
    const local = await openEnvironment(executable, next, cwd);
    const { event } = (await local.call("GET", `/events/${accepted.body.eventId}`)).body;
    expect(event).toMatchObject({ state: "done", attempts: 2 });
    expect(await local.list("/collections/orders/records")).toHaveLength(1);
    expect((await postHook(next, "orders", order("a"))).body.duplicate).toBe(true);
  });
});

describe("a port in use", () => {
  async function takePort(port: number) {
    const taken = createServer();
    const listening = await new Promise<boolean>((resolve) => {
      taken.once("error", () => resolve(false));
      taken.listen(port, "127.0.0.1", () => resolve(true));
    });
    const held = listening ? (taken.address() as AddressInfo).port : port;
    return { port: held, [Symbol.dispose]: () => void taken.close() };
  }

  test.each([["dev"], ["serve"]])("relay %s says so in one sentence with a remedy", async (word) => {
    using taken = await takePort(0);
    const cwd = executable.makeFolder();
    const { code, said, told } = await executable.run([word, "--port", String(taken.port)], { cwd });
    expect({ code, said }).toEqual({ code: 1, said: "" });
    const sentence = told.trim().split("\n").at(-2);
    expect(sentence).toBe(`Port ${taken.port} of 127.0.0.1 is in use: stop the program that listens there, or choose another port with --port.`);
  });

  test("relay dev without --port uses another free port, and says so", async () => {
    using _taken = await takePort(4747);
    const cwd = makeOrderFolder();
    await using service = await executable.start(["dev"], { cwd, port: "usual" });
    expect(service.told.text).toContain("Port 4747 is in use, so the service takes a free one");
    expect((await postHook(service, "orders", order("a"))).status).toBe(200);
  });
});
