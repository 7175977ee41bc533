/** Copies of backups at an S3 endpoint: what owners set and see, the upload in a separate process, its failures, and a restore from there. */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MINUTE_MS } from "../../src/base/limit.ts";
import { type ApiServer, startApi } from "../kit/api-server.ts";
import { runCommand } from "../kit/cli-io.ts";
import { dumpTables } from "../kit/data-directory.ts";
import { poll } from "../kit/patience.ts";
import { S3_KEYS, startS3Server } from "../kit/s3-server.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

const PASSPHRASE = "correct horse battery staple";
const OWNER = "owner:ann@example.com";
const folder = mkdtempSync(join(tmpdir(), "relay-backup-copy-"));
afterAll(() => rmSync(folder, { recursive: true }));

const start = () => startApi({ allowPrivate: ["127.0.0.1"] });
const targetOf = (s3: { url: string; bucket: string }, more = {}) => ({
  endpoint: s3.url,
  bucket: s3.bucket,
  prefix: "/relay/",
  ...S3_KEYS,
  passphrase: PASSPHRASE,
  keep: 2,
  ...more,
});

const put = (api: ApiServer, body: unknown) => api.call("/api/backups/copies", { method: "PUT", session: true, body });
const read = async (api: ApiServer) => (await api.call("/api/backups", { session: true })).json.backups;
const testConnection = (api: ApiServer) => api.call("/api/backups/copies/test", { method: "POST", session: true });
const untilCopies = (api: ApiServer, isSo: (copies: Awaited<ReturnType<typeof read>>["copies"]) => boolean) =>
  poll(
    () => read(api),
    ({ copies }) => copies.running === null && isSo(copies),
  );

/** Starts a service whose tests of the endpoint run in this process. A separate process can start later than the request waits on a busy machine. */
async function startNear(): Promise<ApiServer> {
  const startCopy = () => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    void relay(api, ["backups", "copy", "--test"]).then(({ code, told }) => (code === 0 ? resolve() : reject(new Error(told.trim().split("\n")[0]))));
    return { done: promise, stop: () => reject(new Error("stopped")) };
  };
  const api: ApiServer = await startApi({ allowPrivate: ["127.0.0.1"] }, { startCopy });
  return api;
}

/** Makes a backup as an owner does, in a separate process. Resolves with its name. */
async function backUp(api: ApiServer): Promise<string> {
  const { json } = await api.call("/api/backups", { method: "POST", session: true });
  const { name } = json.backups.running;
  await poll(
    () => read(api),
    ({ running }) => running === null,
  );
  await api.clock.advance(1_000);
  return name;
}

const relay = (api: ApiServer, line: readonly string[], env: Record<string, string> = {}) =>
  runCommand([...line, "--data-dir", api.dataDir], { cwd: folder, env });
const restoreEnv = { AWS_ACCESS_KEY_ID: S3_KEYS.accessKeyId, AWS_SECRET_ACCESS_KEY: S3_KEYS.secretAccessKey, RELAY_BACKUP_PASSPHRASE: PASSPHRASE };

describe("the endpoint for copies", () => {
  test("is stored sealed, shown without its secrets, audited, and removed with them", async () => {
    await using s3 = startS3Server();
    await using api = await start();
    const saved = await put(api, targetOf(s3));
    expect(saved.status).toBe(200);
    expect(saved.json.backups.copies).toEqual({
      target: {
        endpoint: s3.url,
        bucket: "backups",
        region: "us-east-1",
        prefix: "relay",
        accessKeyId: S3_KEYS.accessKeyId,
        keep: 2,
        setAt: "2026-01-15T12:00:00.000Z",
      },
      running: null,
      last: null,
      failed: null,
    });
    expect((await put(api, targetOf(s3, { secretAccessKey: "", passphrase: undefined, keep: 5 }))).status).toBe(200);
    const tables = JSON.stringify(await api.snapshot());
    for (const secret of [S3_KEYS.secretAccessKey, PASSPHRASE]) {
      expect(saved.text).not.toContain(secret);
      expect(tables).not.toContain(secret);
    }
    const { json } = await api.call("/api/backups/copies", { method: "DELETE", session: true });
    expect(json.backups.copies.target).toBeNull();
    expect(await api.rows("SELECT * FROM backup_target")).toEqual([]);
    const rows = await api.rows<{ action: string; actor: string; before: string | null; after: string | null }>(
      "SELECT action, actor, before, after FROM audit WHERE action LIKE 'backup.target%' ORDER BY seq",
    );
    const place = { endpoint: s3.url, bucket: "backups", region: "us-east-1", prefix: "relay", accessKeyId: S3_KEYS.accessKeyId };
    expect(rows.map(({ before, after, ...row }) => ({ ...row, before: JSON.parse(before ?? "null"), after: JSON.parse(after ?? "null") }))).toEqual([
      { action: "backup.target_set", actor: OWNER, before: null, after: { ...place, keep: 2, secretsChanged: true } },
      { action: "backup.target_set", actor: OWNER, before: { ...place, keep: 2 }, after: { ...place, keep: 5, secretsChanged: false } },
      { action: "backup.target_removed", actor: OWNER, before: { ...place, keep: 5 }, after: null },
    ]);
  });

  test("needs its keys again for another endpoint, and is checked", async () => {
    await using s3 = startS3Server();
    await using api = await start();
    expect((await put(api, targetOf(s3))).status).toBe(200);
    const refusals: readonly (readonly [unknown, RegExp])[] = [
      [targetOf(s3, { endpoint: "http://127.0.0.1:9", secretAccessKey: undefined }), /`secretAccessKey` is missing/],
      [targetOf(s3, { accessKeyId: "OTHER", secretAccessKey: undefined }), /`secretAccessKey` is missing/],
      [targetOf(s3, { endpoint: "s3.example.com" }), /not the URL of an S3 endpoint/],
      [targetOf(s3, { endpoint: "https://ann:pass@s3.example.com" }), /not the URL of an S3 endpoint/],
      [targetOf(s3, { endpoint: "https://s3.example.com/bucket" }), /not the URL of an S3 endpoint/],
      [targetOf(s3, { bucket: "a/b" }), /not the name of a bucket/],
      [targetOf(s3, { prefix: "a/../b" }), /not a folder of the bucket/],
      [targetOf(s3, { region: "eu central" }), /not a region/],
      [targetOf(s3, { passphrase: "short" }), /at least 12 characters/],
      [targetOf(s3, { keep: 0 }), /keep/],
    ];
    for (const [body, sentence] of refusals) {
      const { status, json, text } = await put(api, body);
      expect([status, json.code]).toEqual([400, "invalid_input"]);
      expect(text).toMatch(sentence);
    }
  });

  test("is private only if the operator allows it, also by its name", async () => {
    await using s3 = startS3Server();
    await using api = await startApi();
    const refused = await put(api, targetOf(s3));
    expect([refused.status, refused.json.code]).toEqual([400, "invalid_input"]);
    expect(refused.text).toContain("--allow-private");
    const named = targetOf(s3, { endpoint: s3.url.replace("127.0.0.1", "localhost") });
    expect((await put(api, named)).status).toBe(200);
    const tested = await testConnection(api);
    expect([tested.status, tested.json.code]).toEqual([409, "backup_refused"]);
    expect(tested.text).toMatch(/localhost \(.*\), is a loopback address/);
    expect(s3.requests).toEqual([]);
  });

  test("is tested with a small object, which the test removes", async () => {
    await using s3 = startS3Server();
    await using api = await startNear();
    expect((await testConnection(api)).text).toContain("No S3 endpoint is set");
    await put(api, targetOf(s3));
    expect((await testConnection(api)).status).toBe(204);
    expect(s3.requests.map((one) => one.split(" ")[0])).toEqual(["PUT", "GET", "GET", "DELETE"]);
    expect([...s3.objects.keys()]).toEqual([]);
    s3.refusal = "AccessDenied";
    const denied = await testConnection(api);
    expect([denied.status, denied.json.message]).toEqual([
      409,
      "Relay cannot write an object. The endpoint denies access: check the access key ID and the secret access key. They need the right to read, write, list and delete objects.",
    ]);
    s3.refusal = null;
    await put(api, targetOf(s3, { bucket: "another" }));
    expect((await testConnection(api)).text).toContain("The bucket another does not exist");
    await put(api, targetOf(s3, { accessKeyId: "UNKNOWN" }));
    expect((await testConnection(api)).text).toContain("does not know the access key ID");
    const { promise, resolve } = Promise.withResolvers<void>();
    s3.pause = promise;
    const [asked, answer] = [s3.requests.length, testConnection(api)];
    await poll(
      () => s3.requests.length,
      (count) => count > asked,
    );
    await api.clock.advance(20_000);
    expect((await answer).text).toContain("did not answer within 20 seconds");
    resolve();
  });
});

describe("relay backups endpoint", () => {
  const endpoint = (api: ApiServer, line: readonly string[], env: Record<string, string> = {}) => relay(api, ["backups", "endpoint", ...line], env);
  const set = (s3: { url: string }) => ["s3://backups/relay", "--endpoint", s3.url];

  test("sets what Settings › Backups shows, keeps what is left out, and removes it", async () => {
    await using s3 = startS3Server();
    await using api = await start();
    expect(await endpoint(api, [])).toMatchObject({ code: 0, told: expect.stringContaining("No S3 endpoint is set") });
    expect(JSON.parse((await endpoint(api, ["--json"])).said)).toEqual({ target: null });
    const made = await endpoint(api, [...set(s3), "--allow-private", "127.0.0.1"], restoreEnv);
    expect(made).toMatchObject({ code: 0, said: expect.stringContaining(`s3://backups/relay  at ${s3.url}`) });
    const { target } = (await read(api)).copies;
    expect(target).toMatchObject({
      endpoint: s3.url,
      bucket: "backups",
      region: "us-east-1",
      prefix: "relay",
      accessKeyId: S3_KEYS.accessKeyId,
      keep: 30,
    });
    const kept = await endpoint(api, ["--keep", "5", "--region", "eu-1", "--allow-private", "127.0.0.1", "--json"]);
    expect(JSON.parse(kept.said)).toEqual({ target: { ...target, keep: 5, region: "eu-1" } });
    expect((await api.rows("SELECT actor, action FROM audit WHERE action LIKE 'backup.target%' ORDER BY seq")).at(-1)).toEqual({
      actor: "command line",
      action: "backup.target_set",
    });
    for (const { said, told } of [made, kept]) for (const secret of [PASSPHRASE, S3_KEYS.secretAccessKey]) expect(said + told).not.toContain(secret);
    expect(JSON.parse((await endpoint(api, ["--remove", "--json"])).said)).toEqual({ removed: "s3://backups/relay" });
    expect((await read(api)).copies.target).toBeNull();
    expect(JSON.parse((await endpoint(api, ["--remove", "--json"])).said)).toEqual({ removed: null });
  });

  test("asks for missing secrets, for a new passphrase twice, and for no stored one", async () => {
    await using s3 = startS3Server();
    await using api = await start();
    const ask = async (line: readonly string[], answers: readonly string[]) => {
      const asked: string[] = [];
      const askSecret = async (question: string) => answers[asked.push(question) - 1] ?? null;
      const words = ["backups", "endpoint", ...line, "--allow-private", "127.0.0.1", "--data-dir", api.dataDir];
      return { asked, ...(await runCommand(words, { cwd: folder, askSecret })) };
    };
    const { accessKeyId, secretAccessKey } = S3_KEYS;
    const differ = await ask(set(s3), [accessKeyId, secretAccessKey, PASSPHRASE, "another passphrase"]);
    expect(differ).toMatchObject({ code: 1, told: expect.stringContaining("The two passphrases differ") });
    expect((await read(api)).copies.target).toBeNull();
    const first = await ask(set(s3), [accessKeyId, secretAccessKey, PASSPHRASE, PASSPHRASE]);
    expect(first).toMatchObject({ code: 0, told: expect.stringContaining("Store the passphrase and master.key in another place") });
    expect(first.asked).toEqual(["Access key ID", "Secret access key", "Passphrase of the copies", "The same passphrase again"]);
    expect(await ask(["s3://backups/other"], [])).toMatchObject({ code: 0, asked: [] });
    // Another endpoint never gets the stored keys.
    expect(await ask(["--endpoint", "https://s3.example.com"], [])).toMatchObject({ code: 1, asked: ["Access key ID"] });
  });

  test("tests the endpoint as the service does, and checks its address", async () => {
    await using s3 = startS3Server();
    await using api = await start();
    expect(await endpoint(api, ["--test"])).toMatchObject({ code: 1, told: expect.stringContaining("No S3 endpoint is set") });
    const tested = await endpoint(api, [...set(s3), "--test", "--allow-private", "127.0.0.1", "--json"], restoreEnv);
    expect(JSON.parse(tested.said)).toMatchObject({ target: { bucket: "backups" }, tested: true });
    expect(s3.requests.map((one) => one.split(" ")[0])).toEqual(["PUT", "GET", "GET", "DELETE"]);
    expect(await endpoint(api, ["--test"])).toMatchObject({ code: 1, told: expect.stringContaining("--allow-private") });
    expect(s3.requests.length).toBe(4);
  });

  test("refuses what is missing or wrong, and says what to do", async () => {
    await using s3 = startS3Server();
    await using api = await start();
    const refusals: readonly (readonly [code: number, line: readonly string[], sentence: string, env?: Record<string, string>])[] = [
      [2, ["--keep", "3"], "No bucket is set"],
      [2, ["s3://backups"], "No endpoint is set"],
      [2, ["backups"], "is no s3:// URL"],
      [2, [...set(s3), "--keep", "0"], "--keep"],
      [2, ["--remove", "--test"], "--remove"],
      [1, set(s3), "AWS_ACCESS_KEY_ID is not set"],
      [1, set(s3), "RELAY_BACKUP_PASSPHRASE is not set", { ...restoreEnv, RELAY_BACKUP_PASSPHRASE: "" }],
      [1, [...set(s3), "--allow-private", "127.0.0.1"], "`passphrase` is too short", { ...restoreEnv, RELAY_BACKUP_PASSPHRASE: "short" }],
      [1, set(s3), "--allow-private", restoreEnv],
      [1, [...set(s3), "--database", "postgres://relay@h/d"], "pg_dump", restoreEnv],
    ];
    for (const [code, line, sentence, env] of refusals) {
      const words = ["backups", "endpoint", ...line, ...(line.includes("--database") ? [] : ["--data-dir", api.dataDir])];
      expect(await runCommand(words, { cwd: folder, env: env ?? {} })).toMatchObject({ code, told: expect.stringContaining(sentence) });
    }
    expect((await read(api)).copies.target).toBeNull();
  });

  test("its help fits 30 lines of 80 columns", async () => {
    const screen = { columns: 80, rows: 50, colour: false, clever: false };
    const { said } = await runCommand(["backups", "endpoint", "--help"], { cwd: folder, screen });
    expect(
      said
        .trim()
        .split("\n")
        .filter((line) => line.length > 80),
    ).toEqual([]);
    expect(said.trim().split("\n").length).toBeLessThanOrEqual(30);
  });
});

describe("each new backup", () => {
  test("is copied encrypted, the newest copies stay, and a restore from there equals the backup", async () => {
    await using s3 = startS3Server();
    await using api = await start();
    // Enough data for an upload in several parts.
    await api.store.write("app", (tx) => tx.run("CREATE TABLE ballast AS SELECT randomblob(20000000) AS bytes"));
    s3.objects.set("relay/notes.txt", Buffer.from("another program's"));
    s3.objects.set("relay/by-hand-20200101T000000000Z.db.enc", Buffer.from("an old copy"));
    const before = await backUp(api);
    await put(api, targetOf(s3));
    await untilCopies(api, ({ last }) => last?.name === before);
    const name = await backUp(api);
    const { copies, files } = await untilCopies(api, ({ last }) => last?.name === name);
    expect(copies.failed).toBeNull();
    expect(files.map(({ copiedAt }: { copiedAt: string | null }) => typeof copiedAt)).toEqual(["string", "string"]);
    const key = `relay/${name}.enc`;
    const ofKeep = ["relay/notes.txt", `relay/${before}.enc`, key];
    await poll(
      () => [...s3.objects.keys()],
      (keys) => keys.length === ofKeep.length,
    );
    expect([...s3.objects.keys()]).toEqual(ofKeep);
    expect(s3.requests.some((one) => one.includes("partNumber=3"))).toBe(true);
    expect(s3.objects.get(key)?.includes("SQLite format 3")).toBe(false);
    expect(s3.objects.get(key)?.length).toBe(copies.last.bytes);

    const listed = await relay(api, ["backups", "list", "--remote", "--json"]);
    const items: { url: string; bytes: number }[] = JSON.parse(listed.said).items;
    expect(items.map(({ url }) => url)).toEqual([`s3://backups/${key}`, `s3://backups/relay/${before}.enc`]);
    const here = JSON.parse((await relay(api, ["backups", "list", "--json"])).said);
    expect(here.items[0]).toMatchObject({ name, failure: null, copiedAt: expect.any(String) });

    const dataDir = join(folder, "restored");
    const elsewhere = ["backups", "list", "--remote", "s3://backups/relay/", "--endpoint", s3.url, "--json"];
    expect(JSON.parse((await runCommand(elsewhere, { cwd: folder, env: restoreEnv })).said).items).toEqual(items);
    const line = ["restore", `s3://backups/${key}`, "--endpoint", s3.url, "--key", join(api.dataDir, "master.key"), "--data-dir", dataDir];
    const restored = await runCommand(line, { cwd: folder, env: restoreEnv });
    expect(restored).toMatchObject({ code: 0, said: expect.stringContaining("Restored") });
    expect(dumpTables(join(dataDir, "relay.db"))).toEqual(dumpTables(join(api.dataDir, "backups", name)));
    expect(readdirSync(dataDir).filter((one) => one.includes(".part"))).toEqual([]);
  });

  test("that is not copied is a problem on Home, in doctor and in the list, until the next turn copies it", async () => {
    await using s3 = startS3Server();
    await using api = await start();
    s3.refusal = "NoSuchBucket";
    await put(api, targetOf(s3));
    const name = await backUp(api);
    const { copies } = await untilCopies(api, ({ failed }) => failed !== null);
    const message = "The bucket backups does not exist: create it, or check its name and the region.";
    expect(copies.failed).toMatchObject({ name, message });
    await api.call(`${api.E.replace("development", "production")}/relays`, { method: "POST", session: true, body: relayOf("orders") });
    const needs = async () => {
      const { json } = await api.call(`${api.E.replace("development", "production")}/overview`, { session: true });
      return json.needs.filter(({ code }: { code: string }) => code === "backup_copy_failed");
    };
    expect(await needs()).toMatchObject([{ target: "server", message, todo: expect.stringContaining("test the connection") }]);
    const findings = async () => JSON.parse((await relay(api, ["doctor", "--quick", "--json"])).said).items;
    const ofCopies = (items: { check: string }[]) => items.find(({ check }) => check === "backup copies");
    expect(ofCopies(await findings())).toMatchObject({ state: "warn", message: `The last copy failed: ${message}` });
    expect((await relay(api, ["backups", "list"])).told).toContain(message);
    expect(api.logged.join("\n")).toContain("a backup was not copied");

    s3.refusal = null;
    await api.clock.advance(15 * MINUTE_MS);
    expect((await untilCopies(api, ({ last }) => last !== null)).copies).toMatchObject({ last: { name }, failed: null });
    expect(await needs()).toEqual([]);
    expect(ofCopies(await findings())).toMatchObject({ state: "ok" });
  });

  test("waits for a slow endpoint without holding the service, and a killed upload leaves no object", async () => {
    await using s3 = startS3Server();
    await using api = await start();
    await put(api, targetOf(s3));
    const { promise, resolve } = Promise.withResolvers<void>();
    s3.pause = promise;
    const name = await backUp(api);
    await poll(
      () => read(api),
      ({ copies }) => copies.running?.name === name && s3.requests.length > 0,
    );
    expect((await api.call("/healthz")).status).toBe(200);
    const next = await backUp(api);
    expect((await read(api)).copies).toMatchObject({ running: { name }, last: null });
    // A restart ends the process in the middle of its upload.
    await api.restart();
    resolve();
    expect([...s3.objects.keys()].filter((key) => key.endsWith(".enc"))).toEqual([]);
    await api.clock.advance(MINUTE_MS);
    await untilCopies(api, ({ last }) => last?.name === name);
    expect([...s3.objects.keys()]).toEqual([`relay/${next}.enc`, `relay/${name}.enc`]);
  });

  test("is not copied to an endpoint that nothing answers at, and the sentence names it", async () => {
    await using api = await start();
    await put(api, targetOf({ url: "http://127.0.0.1:1", bucket: "backups" }));
    await backUp(api);
    const { copies } = await untilCopies(api, ({ failed }) => failed !== null);
    expect(copies.failed.message).toBe("Nothing answers at http://127.0.0.1:1: check the endpoint, and that it runs.");
  });
});

describe("a restore from an endpoint", () => {
  const KEY = "relay/by-hand-20300101T000000000Z.db.enc";
  /** Runs the restore into a folder that does not exist. */
  const restore = async (
    s3: { url: string },
    given: { env?: Record<string, string>; line?: string[]; askSecret?: () => Promise<string | null> } = {},
  ) => {
    const { env = restoreEnv, line = [], askSecret } = given;
    const dataDir = join(folder, "new", "data");
    const words = ["restore", `s3://backups/${KEY}`, "--endpoint", s3.url, ...line, "--data-dir", dataDir];
    const done = await runCommand(words, { cwd: folder, env, clock: new VirtualClock(0), ...(askSecret === undefined ? {} : { askSecret }) });
    expect(existsSync(join(folder, "new"))).toBe(false);
    return done;
  };

  test("that is refused leaves nothing behind, and says why", async () => {
    await using s3 = startS3Server();
    await using api = await start();
    await put(api, targetOf(s3));
    const name = await backUp(api);
    await untilCopies(api, ({ last }) => last?.name === name);
    const copy = s3.objects.get(`relay/${name}.enc`) ?? Buffer.alloc(0);
    expect((await restore(s3)).told).toContain("There is no such object");
    s3.objects.set(KEY, copy);
    const refusals: readonly (readonly [Parameters<typeof restore>[1], string])[] = [
      [{ env: { ...restoreEnv, RELAY_BACKUP_PASSPHRASE: "another passphrase" } }, "The passphrase does not open this copy"],
      [{ env: { ...restoreEnv, AWS_ACCESS_KEY_ID: "UNKNOWN" } }, "does not know the access key ID"],
      [{ env: { AWS_ACCESS_KEY_ID: S3_KEYS.accessKeyId } }, "AWS_SECRET_ACCESS_KEY is not set"],
      [{}, "has no master.key"],
    ];
    for (const [given, sentence] of refusals) {
      const { code, told } = await restore(s3, given);
      expect([code, told]).toEqual([1, expect.stringContaining(sentence)]);
    }
    s3.objects.set(KEY, copy.subarray(0, copy.length - 1_000));
    expect((await restore(s3)).told).toContain("The copy is not complete");
    s3.objects.set(KEY, Buffer.from("something else"));
    expect((await restore(s3)).told).toContain("not an encrypted copy");
    expect((await runCommand(["restore", `s3://backups/${KEY}`], { cwd: folder, env: restoreEnv })).told).toContain("needs --endpoint");

    s3.objects.set(KEY, copy);
    const asked: string[] = [];
    const answers = [S3_KEYS.accessKeyId, S3_KEYS.secretAccessKey, PASSPHRASE];
    const dataDir = join(folder, "asked");
    mkdirSync(dataDir);
    writeFileSync(join(dataDir, "master.key"), await Bun.file(join(api.dataDir, "master.key")).text());
    const askSecret = async (question: string) => answers[asked.push(question) - 1] ?? null;
    const line = ["restore", `s3://backups/${KEY}`, "--endpoint", s3.url, "--data-dir", dataDir];
    expect(await runCommand(line, { cwd: folder, askSecret })).toMatchObject({ code: 0 });
    expect(asked).toEqual(["Access key ID", "Secret access key", "Passphrase of the copies"]);
    const inUse = await relay(api, ["restore", `s3://backups/${KEY}`, "--endpoint", s3.url], restoreEnv);
    expect(inUse).toMatchObject({ code: 1, told: expect.stringContaining("in use by relay serve") });
  });
});

function relayOf(name: string) {
  return {
    definition: {
      name,
      trigger: { kind: "receiver", verify: { scheme: "shared_token", header: "X-Token" }, map: { event_id: "id" } },
      actions: [{ type: "write_record", collection: "orders", data: { id: "{{mapped.event_id}}" } }],
    },
    secret: "a token of the sender, Long enough 4 all",
  };
}
