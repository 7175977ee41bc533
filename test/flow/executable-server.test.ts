/**
 * Tests the compiled executable as a server. Commands create apps and keys, the API saves relays with the providers' secrets, and the providers'
 * packages sign the requests. Outbound requests must use HTTPS.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Executable, placeExecutable, type StartedExecutable } from "../kit/executable.ts";
import { type Environment, openEnvironment, postHook } from "../kit/executable-api.ts";
import { makeSenderRelay, PACKAGE_SENDERS, signNow } from "../kit/executable-sender.ts";
import { type Sink, startSink } from "../kit/sink.ts";

const REFERENCE = "7340912846750000019";
const SHOP = { app: "shop", environment: "development" };

let executable: Executable;
let sink: Sink;
let service: StartedExecutable;
let shop: Environment;
let cwd: string;

beforeAll(async () => {
  executable = placeExecutable();
  sink = startSink();
  cwd = executable.makeFolder();
  service = await executable.start(["serve", "--base-url", "https://relay.example.test"], { cwd });
  const made = await executable.run(["apps", "create", "My shop", "--id", "shop"], { cwd });
  expect(made).toMatchObject({ code: 0, said: "shop\n" });
  shop = await openEnvironment(executable, service, cwd, SHOP);
  const fields = { provider: { type: "text" }, reference: { type: "text" } };
  const collection = { name: "payments", kind: "shared", fields };
  expect((await shop.call("POST", "/collections", collection)).status).toBe(201);
});

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await sink[Symbol.asyncDispose]();
  executable[Symbol.dispose]();
});

describe("relay serve", () => {
  test("prints where it listens, its public address, and the link that sets up the first owner", () => {
    expect(service.said.lines).toEqual([
      `Listening  ${service.url}`,
      "Public     https://relay.example.test",
      expect.stringMatching(/^Set-up {5}https:\/\/relay\.example\.test\/setup#\S+ {2}\(/),
    ]);
  });

  test("writes one JSON object per line to standard error with --log-format json, from start to end", async () => {
    const folder = executable.makeFolder();
    await using own = await executable.start(["serve", "--log-format", "json"], { cwd: folder });
    expect(await own.end("SIGTERM")).toBe(0);
    const entries = own.told.lines.map((line) => JSON.parse(line) as { level: string; message: string });
    expect(entries).toMatchObject([
      { level: "info", message: "service started", url: own.url },
      { level: "info", message: "service stopping after the running events end" },
    ]);
  });

  test("rejects management requests without a key, or with a key of another environment", async () => {
    const { status } = await fetch(`${service.url}/api/apps/shop/development/relays`);
    expect(status).toBe(401);
    const key = await executable.run(["keys", "create", "--app", "shop", "--environment", "production"], {
      cwd,
    });
    const wrong = await fetch(`${service.url}/api/apps/shop/development/relays`, {
      headers: { authorization: `Bearer ${key.said.trim()}` },
    });
    expect({ status: wrong.status, code: (await wrong.json()).code }).toEqual({
      status: 403,
      code: "wrong_environment",
    });
  });

  test.each(PACKAGE_SENDERS.map((sender) => [sender.package, sender] as const))(
    "%s: a relay saved by API with a pasted secret records a signed request, and no changed one",
    async (_package, sender) => {
      const definition = makeSenderRelay(sender, `${sink.url}/notice`);
      const saved = await shop.call("POST", "/relays", { definition, secret: sender.secret });
      expect(saved).toMatchObject({
        status: 201,
        body: { receiverUrl: `https://relay.example.test/hooks/shop/${sender.provider}` },
      });
      expect(JSON.stringify(saved.body)).not.toContain(sender.secret);

      const sent = await signNow(sender, sender.makeBody(REFERENCE));
      const good = await postHook(service, sender.provider, sent, "shop");
      expect(good).toMatchObject({ status: 200, body: { received: true } });
      const changed = { ...sent, body: `${sent.body} ` };
      expect((await postHook(service, sender.provider, changed, "shop")).status).toBe(401);

      // The second action calls plain http on this machine. The failure is permanent, so the event is dead.
      await service.said.waitFor(`RELAY · ${sender.provider} · receiver · 2 actions · failed`);
      const { event } = (await shop.call("GET", `/events/${good.body.eventId}`)).body;
      expect(event).toMatchObject({ state: "dead", reason: "https_only", attempts: 1 });
      expect(event.runs[0].results).toMatchObject([
        { type: "write_record", outcome: "done" },
        { type: "call_url", outcome: "failed", code: "https_only" },
      ]);
      const records = await shop.list("/collections/payments/records");
      const own = records.filter((record) => record.data.provider === sender.provider);
      expect(own.map((record) => record.data.reference)).toEqual([REFERENCE]);
      expect(await shop.list(`/events?relay=${sender.provider}`)).toHaveLength(1);
      expect(sink.notices).toEqual([]);
    },
  );

  test("exits with 0 on SIGTERM, and a new start on the same data knows the relays", async () => {
    expect(await service.end("SIGTERM")).toBe(0);
    service = await executable.start(["serve", "--base-url", "https://relay.example.test"], { cwd });
    shop = await openEnvironment(executable, service, cwd, SHOP);
    const { items } = (await shop.call("GET", "/relays")).body;
    expect(items.map((relay: { name: string }) => relay.name).sort()).toEqual(PACKAGE_SENDERS.map((sender) => sender.provider).sort());
    const [sender] = PACKAGE_SENDERS;
    if (sender === undefined) throw new Error("There are no senders.");
    const again = await postHook(service, sender.provider, await signNow(sender, sender.makeBody(REFERENCE)), "shop");
    expect(again.body.duplicate).toBe(true);
  });
});
