/**
 * Runs the compiled executable in an empty folder and sends it requests that the providers' own packages sign. Each event gives one record and one
 * signed notice. A repeat or a tampered request gives none.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Executable, placeExecutable, type StartedExecutable } from "../kit/executable.ts";
import { type Environment, openEnvironment, postHook } from "../kit/executable-api.ts";
import { makeSenderRelay, PACKAGE_SENDERS, type PackageSender, signNow } from "../kit/executable-sender.ts";
import { TAMPERED_FORMS } from "../kit/executable-tamper.ts";
import { isNoticeSigned, type Sink, startSink } from "../kit/sink.ts";

/** Raises the limit, because the tampered requests of this test exceed the limit of unverified requests per minute and address. */
const UNCAPPED = { RELAY_LIMIT_UNVERIFIED_CALLS_PER_MINUTE: "1000" };
const FIRST = "7340912846750000017";
const SECOND = "7340912846750000018";

let executable: Executable;
let sink: Sink;
let service: StartedExecutable;
let local: Environment;
let signingSecrets: Record<string, { signingSecret: string }>;

/** Writes the files that a user has before the first start: the relays, the catalog and the senders' secrets. */
function writeServiceFolder(folder: string): void {
  const write = (file: string, value: unknown): void => writeFileSync(join(folder, "service", file), JSON.stringify(value, null, 2));
  mkdirSync(join(folder, "service/relays"), { recursive: true });
  for (const sender of PACKAGE_SENDERS) {
    write(`relays/${sender.provider}.json`, makeSenderRelay(sender, `${sink.url}/${sender.provider}`));
  }
  const fields = { provider: { type: "text", required: true }, reference: { type: "text", required: true } };
  write("catalog.json", { collections: { payments: { kind: "shared", fields } } });
  const secrets = PACKAGE_SENDERS.map(({ provider, secret }) => [provider, { receiverSecret: secret }]);
  write(".secrets.json", Object.fromEntries(secrets));
}

/** Counts the events of one relay, its records and its notices. */
async function countOf({ provider }: PackageSender) {
  const events = await local.list(`/events?relay=${provider}`);
  const records = await local.list("/collections/payments/records");
  return {
    events: events.length,
    records: records.filter((record) => record.data.provider === provider).length,
    notices: sink.notices.filter((notice) => notice.path === `/${provider}`).length,
  };
}

beforeAll(async () => {
  executable = placeExecutable();
  sink = startSink();
  const folder = executable.makeFolder();
  writeServiceFolder(folder);
  service = await executable.start(["dev"], { cwd: folder, env: UNCAPPED });
  local = await openEnvironment(executable, service, folder);
  signingSecrets = JSON.parse(readFileSync(join(folder, "service/.secrets.json"), "utf8"));
});

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await sink[Symbol.asyncDispose]();
  executable[Symbol.dispose]();
});

describe.each(PACKAGE_SENDERS.map((sender) => [sender.package, sender] as const))("%s", (_package, sender) => {
  const { provider } = sender;
  const signingSecret = (): string => signingSecrets[provider]?.signingSecret ?? "";

  test("a signed request creates one record and one verified notice", async () => {
    const sent = await signNow(sender, sender.makeBody(FIRST));
    expect(await sender.verify(sent)).toBe(true);
    const answer = await postHook(service, provider, sent);
    expect(answer).toEqual({
      status: 200,
      body: { received: true, eventId: expect.stringMatching(/^evt_/) },
    });
    await service.said.waitFor(`RELAY · ${provider} · receiver · 2 actions · ok`);

    expect(await countOf(sender)).toEqual({ events: 1, records: 1, notices: 1 });
    const records = await local.list("/collections/payments/records");
    expect(records.find((record) => record.data.provider === provider)).toMatchObject({
      data: { provider, reference: FIRST },
      by: `relay:${provider}`,
    });

    const [notice] = await sink.waitFor(`/${provider}`, 1);
    if (notice === undefined) throw new Error("There is no notice.");
    expect(isNoticeSigned(notice, signingSecret())).toBe(true);
    expect(isNoticeSigned(notice, `${signingSecret()}x`)).toBe(false);
    expect(isNoticeSigned({ ...notice, body: Buffer.concat([notice.body, Buffer.from(" ")]) }, signingSecret())).toBe(false);
    expect(notice).toMatchObject({
      method: "POST",
      headers: { "content-type": "application/json", "user-agent": "Service-Relays/1" },
    });
    expect(JSON.parse(notice.body.toString())).toMatchObject({
      id: answer.body.eventId,
      relay: { id: expect.stringMatching(/^rly_/), name: provider },
      trigger: "receiver",
      person: null,
      results: [{ type: "write_record", outcome: "done" }],
    });
    // Compares text, because a number beyond 2^53 must reach the user's server digit by digit.
    expect(notice.body.toString()).toContain(FIRST);
  });

  test("a repeated request is a duplicate and has no effect", async () => {
    const before = await countOf(sender);
    const answer = await postHook(service, provider, await signNow(sender, sender.makeBody(FIRST)));
    expect(answer).toMatchObject({ status: 200, body: { received: true, duplicate: true } });
    expect(await countOf(sender)).toEqual(before);
  });

  const forms = TAMPERED_FORMS.filter((form) => form.exists(sender)).map((form) => [form.what, form] as const);
  test.each(forms)("%s: rejected, and nothing is stored", async (_what, form) => {
    const before = await countOf(sender);
    const good = await signNow(sender, sender.makeBody(SECOND));
    const tampered = await form.make(good, sender, Math.floor(Date.now() / 1000));
    expect(tampered).not.toEqual(good);
    if (form.refusedByPackages) expect(await sender.verify(tampered).catch(() => false)).toBe(false);
    const answer = await postHook(service, provider, tampered);
    expect(answer).toEqual({
      status: form.code === "bad_signature" ? 401 : 400,
      body: { code: form.code, message: expect.stringMatching(/^[A-Z].+\.$/) },
    });
    expect(await countOf(sender)).toEqual(before);
  });

  test.each(PACKAGE_SENDERS.filter((other) => other !== sender).map((other) => [other.package, other] as const))(
    "its request is rejected by the receiver for %s, and nothing is stored",
    async (_other, other) => {
      const before = await countOf(other);
      const answer = await postHook(service, other.provider, await signNow(sender, sender.makeBody(SECOND)));
      expect(answer).toMatchObject({ status: 401, body: { code: "bad_signature" } });
      expect(await countOf(other)).toEqual(before);
    },
  );

  test("the next signed request after all of them creates the second record and the second notice", async () => {
    const before = await countOf(sender);
    const answer = await postHook(service, provider, await signNow(sender, sender.makeBody(SECOND)));
    expect(answer.body.duplicate).toBeUndefined();
    // Events of one relay run in order of arrival, so an event from a tampered request would send its notice first.
    const notices = await sink.waitFor(`/${provider}`, before.notices + 1);
    expect(JSON.parse(notices.at(-1)?.body.toString() ?? "{}").id).toBe(answer.body.eventId);
    expect(notices.every((notice) => isNoticeSigned(notice, signingSecret()))).toBe(true);
    expect(await countOf(sender)).toEqual({
      events: before.events + 1,
      records: before.records + 1,
      notices: before.notices + 1,
    });
  });
});
