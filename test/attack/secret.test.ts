/**
 * Secrets are planted in every place that takes one. Then the service does everything that it can do, with many failures. All its output, responses,
 * storage and lists are searched for the secrets, in clear text, in hex and in base64, and contain none.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHmac, randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROUTES } from "../../src/interfaces/api/route-list.ts";
import { createSigninLink } from "../../src/platform/account/session.ts";
import { createPersonSession } from "../../src/shop/portal/person-session.ts";
import { readWhole } from "../kit/change-stream.ts";
import { requireExecutable } from "../kit/executable-build.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";

const ORIGIN = "https://relay.example.test";

/** Returns a secret that resembles nothing else. */
const plant = (): string => randomBytes(24).toString("base64url").replaceAll(/[-_]/g, "x");

const MASTER_KEY = randomBytes(32).toString("hex");
const planted: Record<string, string> = {
  "a pasted receiver secret": plant(),
  "the receiver secret before a rotation": plant(),
  "a pasted Standard Webhooks secret": `whsec_${randomBytes(24).toString("base64")}`,
  "a shared token": plant(),
  "a given signing secret": plant(),
  "the processor's secret": plant(),
  "the processor's secret before": plant(),
  "the SMTP password": plant(),
  "an owner's password": plant(),
  "an owner's new password": plant(),
  "a wrong password": plant(),
  "a wrong token": plant(),
  "a secret in the wrong place": plant(),
  "the secret of a definition that is not saved": plant(),
  "a pasted secret that is refused": `${plant()}é`,
  "a key that is none": `relay_dev_${plant().slice(0, 32)}`,
  "the master key": MASTER_KEY,
};
const secret = (name: string): string => planted[name] ?? "";

/** Everything that the service sent out, with its origin. */
const heard: { where: string; text: string }[] = [];
let dataDir: string;
let running: RunningService;
let cookie = "";

interface Said {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads answers by their fields
  body: any;
  headers: Headers;
}

/** Sends a request and stores its response for the search, without the field that shows a new secret once. */
async function ask(method: string, path: string, body?: unknown, shows: string | null = null): Promise<Said> {
  const headers: Record<string, string> = { "content-type": "application/json", origin: ORIGIN };
  if (cookie !== "") headers["cookie"] = cookie;
  const answer = await fetch(running.service.url + path, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  let text = await readWhole(answer);
  const json = text.startsWith("{") ? JSON.parse(text) : text;
  if (shows !== null && typeof json[shows] === "string") {
    planted[`${shows} of ${method} ${path} (${heard.length})`] = json[shows];
    text = JSON.stringify({ ...json, [shows]: null });
  }
  heard.push({ where: `${method} ${path}`, text });
  return { status: answer.status, body: json, headers: answer.headers };
}

const E = `/api/apps/${APP}/development`;

async function hook(name: string, headers: Record<string, string>, body: string, search = ""): Promise<void> {
  const answer = await running.hook(name, { headers, body, search });
  heard.push({ where: `a call to ${name}`, text: JSON.stringify(answer.body) });
}

const sign = (key: string, body: string): string => createHmac("sha256", key).update(body).digest("hex");

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "relay-planted-"));
  running = await startRunningService({
    config: { dataDir, masterKey: MASTER_KEY, allowPrivate: ["127.0.0.1"] },
  });
  for (const [name, key] of Object.entries(running.keys)) planted[`the key of ${name}`] = key;
  await signIn();
  await saveEverything();
  await callEverything();
  await failEverything();
  await running.clock.advance(2_000);
  await running.drain();
});

afterAll(async () => {
  await running[Symbol.asyncDispose]();
  rmSync(dataDir, { recursive: true, force: true });
});

async function signIn(): Promise<void> {
  const link = (await running.service.makeSigninLink()) ?? "";
  const token = link.split("#").at(-1) ?? "";
  planted["the set-up link's token"] = token;
  const password = secret("an owner's password");
  const email = "ann@example.com";
  await ask("POST", "/api/setup", { token: "x".repeat(32), email, password });
  const made = await ask("POST", "/api/setup", { token, email, password });
  expect(made.status).toBe(201);
  takeCookie(made);
  await ask("POST", "/api/setup", { token, email, password });
  await ask("POST", "/api/session", { email, password: secret("a wrong password") });
  takeCookie(await ask("POST", "/api/session", { email, password }));
  const changed = { current: password, password: secret("an owner's new password") };
  await ask("PUT", "/api/session/password", { ...changed, current: secret("a wrong password") });
  takeCookie(await ask("PUT", "/api/session/password", changed));
}

function takeCookie(said: Said): void {
  cookie = said.headers.get("set-cookie")?.split(";")[0] ?? "";
  planted[`a session's token (${heard.length})`] = cookie.split("=")[1] ?? "";
  expect(cookie).not.toBe("");
}

async function saveEverything(): Promise<void> {
  const call = { type: "call_url", url: "https://relay-planted.invalid/x" };
  const make = (definition: unknown, more: object, shows: string | null = null) => ask("POST", `${E}/relays`, { definition, ...more }, shows);
  const signingSecret = secret("a given signing secret");
  const before = secret("the receiver secret before a rotation");
  await make(receiverDefinition({ name: "pasted", actions: [call] }), { secret: before, signingSecret }, "signingSecret");
  await ask("PUT", `${E}/relays/pasted/secret`, { value: secret("a pasted receiver secret") });
  await make(receiverDefinition({ name: "minted" }), {}, "receiverSecret");
  await ask("PUT", `${E}/relays/minted/secret`, {}, "receiverSecret");
  await ask("PUT", `${E}/relays/pasted/signing-secret`, {}, "signingSecret");
  const hooks = secret("a pasted Standard Webhooks secret");
  await make(receiverDefinition({ name: "hooks", verify: { scheme: "hooks" } }), { secret: hooks });
  const token = { scheme: "shared_token" };
  await make(receiverDefinition({ name: "token", verify: token }), { secret: secret("a shared token") });
  await make(receiverDefinition({ name: "paid", verify: { scheme: "processor" } }), {});
  await ask("PUT", `${E}/settings`, { version: 1, processorSecret: secret("the processor's secret before") });
  const { version } = (await ask("GET", `${E}/settings`)).body.settings;
  const smtp = {
    host: "127.0.0.1",
    port: 1,
    security: "none",
    username: "relay",
    password: secret("the SMTP password"),
  };
  const processorSecret = secret("the processor's secret");
  expect((await ask("PUT", `${E}/settings`, { version, processorSecret, mail: { smtp } })).status).toBe(200);
  await ask("POST", `${E}/keys`, { kind: "secret", name: "second" }, "token");
  await ask("POST", `${E}/keys`, { kind: "app", name: "third" }, "token");
  await ask("POST", `${E}/collections`, {
    name: "orders",
    kind: "shared",
    fields: { order: { type: "text" } },
  });
  const person = (await ask("POST", `${E}/persons`, { email: "bo@example.com" })).body.person;
  await running.service.store.write("app", async (tx) => {
    const nowMs = running.clock.now();
    const environmentId = (await tx.get<{ id: number }>("SELECT id FROM environment"))?.id ?? 0;
    const session = await createPersonSession(tx, { environmentId, personId: person.id, nowMs });
    planted["a person's session"] = session.token;
    const reset = await createSigninLink(tx, { kind: "reset", ownerId: null, nowMs });
    planted["a reset link's token"] = reset.token;
    await tx.run(
      "INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) VALUES (?1, 'shop.example', 't', 1)",
      environmentId,
    );
  });
  const mail = { type: "email_person", subject: "Hello", text: "Text" };
  await make(receiverDefinition({ name: "mail", map: { person_email: "email" }, actions: [mail] }), {
    secret: secret("a pasted receiver secret"),
  });
}

async function callEverything(): Promise<void> {
  const body = JSON.stringify({ id: "1", type: "a", amount: 1, email: "bo@example.com" });
  const json = { "content-type": "application/json" };
  const key = secret("a pasted receiver secret");
  for (const name of ["pasted", "mail"]) await hook(name, { ...json, "x-signature": sign(key, body) }, body);
  const token = secret("a shared token");
  await hook("token", { ...json, "x-webhook-token": token }, body);
  await hook("token", json, `${body} `, `?token=${token}`);
  const t = Math.floor(running.clock.now() / 1000);
  const v1 = sign(secret("the processor's secret"), `${t}.${body}`);
  await hook("paid", { ...json, "processor-signature": `t=${t},v1=${v1}` }, body);
  await running.drain();
}

async function failEverything(): Promise<void> {
  const json = { "content-type": "application/json" };
  const token = secret("a shared token");
  const search = `?token=${token}`;
  await hook("token", json, "not json", search);
  await hook("token", json, " ".repeat(300_000), search);
  await hook("nobody", json, "{}", search);
  await hook("token", json, "{}", `?token=${secret("a wrong token")}`);
  await hook("pasted", { ...json, "x-signature": secret("a wrong token") }, "{}");
  const misplaced = secret("a secret in the wrong place");
  const wrong = receiverDefinition({ name: "wrong", verify: { scheme: "shared_token", secret: misplaced } });
  await ask("POST", `${E}/relays`, { definition: { ...wrong, secret: misplaced } });
  await ask("POST", `${E}/relays/validate`, { definition: { ...wrong, secret: misplaced } });
  const unsaved = { definition: receiverDefinition({ name: "unsaved" }), secret: secret("the secret of a definition that is not saved") };
  for (const body of ["{}", "{", undefined]) await ask("POST", `${E}/relays/explain`, { ...unsaved, body });
  await ask("POST", `${E}/relays/explain`, { ...unsaved, definition: { ...wrong, secret: misplaced } });
  await ask("POST", `${E}/relays/explain`, { ...unsaved, secret: secret("a pasted secret that is refused") });
  for (const value of [secret("a pasted secret that is refused"), misplaced.slice(0, 12)]) await ask("PUT", `${E}/relays/pasted/secret`, { value });
  await ask("PUT", `${E}/relays/pasted/secret`, {
    value: secret("a pasted receiver secret"),
    more: misplaced,
  });
  await ask("PUT", `${E}/settings`, { version: 0, processorSecret: misplaced });
  await ask("PUT", `${E}/settings`, { version: 0, mail: { smtp: { host: "no host", password: misplaced } } });
  for (const key of [secret("a key that is none"), misplaced]) {
    const answer = await fetch(`${running.service.url}${E}/relays`, {
      headers: { authorization: `Bearer ${key}` },
    });
    heard.push({ where: "a wrong key", text: await answer.text() });
  }
  await ask("POST", "/api/session/link", { token: misplaced });
  await ask("POST", "/api/session/reset", { token: misplaced, password: misplaced });
  const events = (await ask("GET", `${E}/events`)).body.items;
  for (const { id } of events) await ask("POST", `${E}/events/${id}/replay`);
  await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET secret = x'00' WHERE name = 'minted'"));
  running.service.refresh();
  await hook("minted", { ...json, "x-signature": "0".repeat(64) }, "{}");
  await ask("DELETE", `${E}/relays/hooks`);
}

/** Finds planted secrets in a text, in each of their encodings. */
function findPlanted(where: string, text: string): string[] {
  const found: string[] = [];
  for (const [name, value] of Object.entries(planted)) {
    const bytes = name === "the master key" ? Buffer.from(value, "hex") : Buffer.from(value);
    const forms = [value, bytes.toString("base64").replace(/=+$/, ""), bytes.toString("hex"), encodeURIComponent(value)];
    for (const form of forms) {
      const at = text.indexOf(form);
      if (at >= 0) found.push(`${name} in ${where}: …${text.slice(Math.max(0, at - 80), at)}[here]`);
    }
  }
  return found;
}

test("secrets were planted in every place, and everything that must happen did", async () => {
  for (const [name, value] of Object.entries(planted)) expect([name, value.length > 20]).toEqual([name, true]);
  const states = (await running.rows<{ state: string }>("SELECT DISTINCT state FROM event")).map(({ state }) => state);
  expect(states).toContain("queued");
  expect(states.length).toBeGreaterThan(1);
  expect(running.logged.length).toBeGreaterThan(0);
});

test("no response and no refusal contains a planted secret", () => {
  expect(heard.flatMap(({ where, text }) => findPlanted(where, text))).toEqual([]);
});

test("no list and no page of the API contains a planted secret", async () => {
  const from = heard.length;
  const ids = new Map<string, string[]>();
  const gets = ROUTES.filter(({ method, who }) => method === "GET" && (who === "environment" || who === "open" || who === "owner"));
  const place = (path: string): string => path.replace(":appId", APP).replace(":environment", "development");
  for (const { path } of gets.filter((route) => !place(route.path).includes(":"))) {
    const { body } = await ask("GET", place(path));
    for (const item of body?.items ?? []) {
      const known = ids.get(place(path)) ?? [];
      ids.set(place(path), [...known, ...[item.id, item.name].filter((id) => typeof id === "string")]);
    }
  }
  for (const { path } of gets.filter((route) => /^[^:]*:\w+$/.test(place(route.path)))) {
    const parent = place(path).replace(/\/:\w+$/, "");
    for (const id of ids.get(parent) ?? []) await ask("GET", `${parent}/${id}`);
  }
  expect(heard.length - from).toBeGreaterThan(40);
  expect(heard.slice(from).flatMap(({ where, text }) => findPlanted(where, text))).toEqual([]);
});

test("no line of the log and no line of a run contains a planted secret", () => {
  const lines = [...running.logged, ...running.lines];
  expect(lines.flatMap((line) => findPlanted("a line", line))).toEqual([]);
});

test("no row and no byte of the database's files contains a planted secret", async () => {
  const tables = await running.rows<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'");
  for (const { name } of tables) {
    const rows = await running.rows<object>(`SELECT * FROM "${name}"`);
    expect(rows.flatMap((row) => findPlanted(`table ${name}`, Bun.inspect(row)))).toEqual([]);
  }
  for (const file of readdirSync(dataDir, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue;
    const bytes = readFileSync(join(file.parentPath, file.name)).toString("latin1");
    expect(findPlanted(file.name, bytes)).toEqual([]);
    expect(findPlanted("a file's name", file.name)).toEqual([]);
  }
});

test("no command next to the service prints a planted secret, and no process shows one in its arguments", () => {
  const copy = join(dataDir, "backups", "copy.db");
  const env = { ...process.env, RELAY_MASTER_KEY: MASTER_KEY, RELAY_DATA_DIR: dataDir, RELAY_APP: APP };
  for (const line of [
    ["keys", "list", "--environment", "development", "--json"],
    ["apps", "list", "--json"],
    ["events", "list", "--environment", "development", "--json"],
    ["doctor", "--json"],
    ["doctor"],
    ["backup", copy, "--json"],
    ["keys", "list", "--environment", "nowhere"],
  ]) {
    const run = Bun.spawnSync([requireExecutable("relay"), ...line], { cwd: dataDir, env });
    expect(findPlanted(line.join(" "), `${run.stdout}${run.stderr}`)).toEqual([]);
  }
  expect(readFileSync(copy).length).toBeGreaterThan(0);
  expect(findPlanted("the backup", readFileSync(copy).toString("latin1"))).toEqual([]);
  if (process.platform !== "linux") return;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    let shown = "";
    try {
      shown = readFileSync(`/proc/${pid}/cmdline`, "latin1");
    } catch {}
    expect(findPlanted(`the arguments of ${pid}`, shown)).toEqual([]);
  }
});
