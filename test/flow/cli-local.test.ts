/** Tests local development from files: an edit applies, a broken edit keeps the last valid version, and a deleted file deletes its relay. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { MAX_PAGE_SIZE } from "../../src/base/page.ts";
import { recordDue } from "../../src/engine/schedule/schedule.ts";
import { EXAMPLE_DEFINITION, writeExample } from "../../src/interfaces/cli/sync/init.ts";
import { type LocalSync, startLocalSync } from "../../src/operator/sync/local-sync.ts";
import { COMMAND_LINE } from "../../src/platform/account/api-key.ts";
import { createApp } from "../../src/platform/account/app.ts";
import type { Environment } from "../../src/platform/account/environment.ts";
import { listAudit } from "../../src/platform/audit/audit.ts";
import { listProblems } from "../../src/platform/audit/problem.ts";
import { Sealer } from "../../src/platform/secret/seal.ts";
import { findRelay, receiverSecretContext } from "../../src/rules/relay/relay.ts";
import { updateRelay } from "../../src/rules/relay/relay-save.ts";
import { findCollection } from "../../src/shop/records/collection.ts";
import { plans } from "../../src/shop/selling/plan.ts";
import { products } from "../../src/shop/selling/product.ts";
import type { Store } from "../../src/store/port.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { poll } from "../kit/patience.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

const NAME = EXAMPLE_DEFINITION.name;
const SECRET = "Abcdef0123456789Abcdef0123zz";

let folder: string;
let store: Store;
let environment: Environment;
let sync: LocalSync | null;
let told: string[];
let changes: number;
const clock = new VirtualClock(Date.now());
const sealer = new Sealer(new Uint8Array(32).fill(7));

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "relay-local-"));
  store = await openSqlite(join(folder, "relay.db"), { clock });
  const made = await store.write("app", (tx) => createApp(tx, { id: "local", name: "Local", environments: ["local"], nowMs: clock.now() }));
  environment = made.environments[0] as Environment;
  told = [];
  changes = 0;
  store.listen((touched) => {
    if (touched.has("relay")) changes++;
  });
  sync = null;
  await writeExample(join(folder, "service"));
});

afterEach(async () => {
  await sync?.[Symbol.asyncDispose]();
  await store.close();
  rmSync(folder, { recursive: true });
});

const file = (...path: string[]) => join(folder, "service", ...path);
const relayFile = (name = NAME) => file("relays", `${name}.json`);

async function start(): Promise<LocalSync> {
  const started = await startLocalSync({
    store,
    environment,
    actor: COMMAND_LINE,
    serviceDir: file(),
    sealer,
    baseUrl: "http://127.0.0.1:4747",
    limits: DEFAULT_LIMITS,
    clock,
    recordDue,
    print: (line) => void told.push(line),
    findChangedCases: async () => [],
  });
  sync = started;
  return started;
}

/** Polls as often as the service does. */
async function pass(started: LocalSync, ms = 11_000): Promise<void> {
  for (let passed = 0; passed < ms; passed += 500) {
    await started.look();
    await clock.advance(500);
  }
  await started.look();
}
const relay = (name = NAME) => store.read((tx) => findRelay(tx, environment.id, name));
const problems = async () => (await store.read((tx) => listProblems(tx, environment.id, true, { limit: MAX_PAGE_SIZE, after: null }))).items;

function save(change: object, name = NAME): void {
  writeFileSync(relayFile(name), JSON.stringify({ ...EXAMPLE_DEFINITION, name, ...change }, null, 2));
}

const callAction = { type: "call_url", url: "https://shop.example.com/notice" };

describe("the first scan", () => {
  test("creates the relay from its file, with its collection, and writes the minted secret to the secrets file", async () => {
    await start();
    expect(await relay()).toMatchObject({
      originKind: "file",
      version: 1,
      secretKind: "minted",
      syncedAt: null,
    });
    expect(await store.read((tx) => findCollection(tx, environment.id, "orders"))).toMatchObject({
      kind: "addressed",
    });
    const row = await relay();
    const secrets = JSON.parse(readFileSync(file(".secrets.json"), "utf8"));
    expect(secrets[NAME].receiverSecret).toBe(sealer.unseal(row?.secret as Uint8Array, receiverSecretContext(row?.id ?? "")));
    expect(told.join("\n")).not.toContain(secrets[NAME].receiverSecret);
    expect(told.join("\n")).not.toContain("warning");
    expect(changes).toBe(1);
  });

  test("uses the secret in the secrets file", async () => {
    writeFileSync(file(".secrets.json"), JSON.stringify({ [NAME]: { receiverSecret: SECRET } }));
    await start();
    expect(await relay()).toMatchObject({ secretKind: "pasted" });
    expect(JSON.parse(readFileSync(file(".secrets.json"), "utf8"))).toEqual({
      [NAME]: { receiverSecret: SECRET },
    });
  });

  test("changes nothing the second time", async () => {
    await (await start())[Symbol.asyncDispose]();
    told = [];
    await start();
    expect(told).toEqual([]);
    expect(await relay()).toMatchObject({ version: 1 });
  });

  test("deletes a relay whose file was deleted during a stop, but none if the folder is missing", async () => {
    await (await start())[Symbol.asyncDispose]();
    rmSync(file("relays"), { recursive: true });
    await (await start())[Symbol.asyncDispose]();
    expect(await relay()).not.toBeNull();
    await writeExample(file());
    rmSync(relayFile());
    const started = await start();
    expect(await relay()).not.toBeNull();
    await pass(started);
    expect(await relay()).toBeNull();
  });

  test("writes the dashboard's edit to its file, and a later save of the file wins", async () => {
    await (await start())[Symbol.asyncDispose]();
    const definition = { ...EXAMPLE_DEFINITION, actions: [callAction] };
    await store.write("dashboard", (tx) =>
      updateRelay(
        tx,
        {
          environment,
          actor: { kind: "command_line" },
          nowMs: Date.now() + 60_000,
          limits: DEFAULT_LIMITS,
          sealer,
          baseUrl: "http://127.0.0.1:4747",
          recordDue,
        },
        NAME,
        { definition, version: 1, origin: { kind: "dashboard", synced: false } },
      ),
    );
    const started = await start();
    expect(await relay()).toMatchObject({ originKind: "dashboard", version: 2 });
    expect(told.join("\n")).toContain(`relay ${NAME}: edited in the dashboard, and written to service/relays/${NAME}.json`);
    expect(JSON.parse(readFileSync(relayFile(), "utf8"))).toEqual(definition);
    save({
      actions: [{ ...EXAMPLE_DEFINITION.actions[0], data: { order: "{{mapped.order}}", amount: "1" } }],
    });
    await started.look();
    expect(await relay()).toMatchObject({ originKind: "file", version: 3 });
  });
});

describe("an edit", () => {
  test("applies, and puts the signing secret of a new call_url in the secrets file", async () => {
    const started = await start();
    save({ actions: [callAction] });
    await started.look();
    expect(await relay()).toMatchObject({ version: 2, originKind: "file" });
    expect(JSON.parse(readFileSync(file(".secrets.json"), "utf8"))[NAME].signingSecret).toBeString();
    expect(changes).toBe(2);
  });

  test("that names a missing collection applies with a warning", async () => {
    const started = await start();
    save({ actions: [{ ...EXAMPLE_DEFINITION.actions[0], collection: "elsewhere" }] });
    await started.look();
    expect(await relay()).toMatchObject({ version: 2 });
    expect(told.join("\n")).toContain(`relay ${NAME}: warning: \`actions.0.collection\`: there is no collection named elsewhere`);
  });

  test("that is broken keeps the last valid version, is logged with its line, and is a problem until it is fixed", async () => {
    const started = await start();
    const good = readFileSync(relayFile(), "utf8");
    writeFileSync(relayFile(), good.replace("write_record", "write_recrd"));
    await started.look();
    expect(await relay()).toMatchObject({ version: 1 });
    expect(await problems()).toMatchObject([{ code: "definition_broken", target: `relay:${NAME}` }]);
    expect(told.join("\n")).toMatch(/checkout-completed\.json:\d+:\d+ {2}`actions\.0\.type` is "write_recrd"/);
    writeFileSync(relayFile(), good);
    await started.look();
    expect(await problems()).toEqual([]);
    expect(told.at(-1)).toContain("is good again");
    expect(await relay()).toMatchObject({ version: 1 });
  });

  test("that the save rejects is a problem too", async () => {
    const started = await start();
    for (let number = 0; number < 20; number++) save({}, `relay-${number}`);
    await started.look();
    expect(await problems()).toMatchObject([{ code: "definition_broken", message: expect.stringMatching(/limit is 20/) }]);
  });

  test("can change the trigger's kind in local development", async () => {
    const started = await start();
    save({ trigger: { kind: "schedule", every: "1d" }, actions: [callAction] });
    await started.look();
    expect(await relay()).toMatchObject({ version: 2 });
  });

  test("of the secrets file stores the value in its relay", async () => {
    const started = await start();
    writeFileSync(file(".secrets.json"), JSON.stringify({ [NAME]: { receiverSecret: SECRET } }));
    await started.look();
    expect(await relay()).toMatchObject({ secretKind: "pasted" });
    expect(told.join("\n")).not.toContain(SECRET);
  });

  test("of the secrets file with a rejected value changes nothing and logs the reason", async () => {
    const started = await start();
    writeFileSync(file(".secrets.json"), JSON.stringify({ [NAME]: { receiverSecret: "short" } }));
    await started.look();
    await started.look();
    expect(told.filter((line) => line.includes("is not used"))).toHaveLength(1);
  });

  test("that breaks the secrets file is logged once and overwrites nothing", async () => {
    const started = await start();
    writeFileSync(file(".secrets.json"), "{ not json");
    await started.look();
    await started.look();
    expect(readFileSync(file(".secrets.json"), "utf8")).toBe("{ not json");
    expect(told.filter((line) => line.includes(".secrets.json is not"))).toHaveLength(1);
  });
});

describe("a deleted file", () => {
  test("deletes its relay after ten seconds, and is logged before and after", async () => {
    const started = await start();
    told = [];
    rmSync(relayFile());
    await pass(started, 9_000);
    expect(await relay()).not.toBeNull();
    expect(told).toEqual([
      expect.stringMatching(
        /^relay checkout-completed: service\/relays\/checkout-completed\.json is gone; the relay is deleted in \d seconds unless it comes back$/,
      ),
    ]);
    await pass(started, 2_000);
    expect(await relay()).toBeNull();
    expect(told.at(-1)).toContain("deleted, its file has been gone for 10 seconds");
  });

  test("is logged with the products that its relay sold", async () => {
    const started = await start();
    const soldThrough = { kind: "relay", relay: NAME };
    writeFileSync(file("catalog.json"), JSON.stringify({ products: { ebook: { soldThrough } }, plans: { pro: { soldThrough } } }));
    await pass(started);
    told = [];
    rmSync(relayFile());
    await pass(started);
    expect(told.slice(-2)).toEqual([
      expect.stringMatching(
        /^relay checkout-completed: warning: The product ebook is sold through the relay checkout-completed, which no longer exists, /,
      ),
      expect.stringMatching(/^relay checkout-completed: warning: The plan pro is sold through /),
    ]);
  });

  test("that returns in time keeps its relay with all data, however often this happens", async () => {
    const started = await start();
    const text = readFileSync(relayFile());
    const before = await relay();
    for (let round = 0; round < 5; round++) {
      rmSync(relayFile());
      await pass(started, 8_000);
      writeFileSync(relayFile(), text);
      await started.look();
    }
    expect(await relay()).toEqual(before);
  });

  test("with its whole folder deletes nothing, is logged, and is a problem until the folder is back", async () => {
    const started = await start();
    for (const gone of [file("relays"), file()]) {
      const aside = join(folder, "aside");
      renameSync(gone, aside);
      await pass(started, 60_000);
      expect(await relay()).not.toBeNull();
      expect(await problems()).toMatchObject([
        { code: "folder_away", message: expect.stringMatching(/is gone: its relays \(1\) stay in force and nothing is deleted/) },
      ]);
      renameSync(aside, gone);
      await started.look();
      expect(await problems()).toEqual([]);
      expect(await relay()).toMatchObject({ version: 1 });
    }
  });

  test("removes its problems, also if none of its versions was ever valid", async () => {
    const started = await start();
    writeFileSync(relayFile("unmade"), "{");
    writeFileSync(file("catalog.json"), "{");
    await started.look();
    expect((await problems()).map(({ target }) => target).sort()).toEqual(["catalog", "relay:unmade"]);
    rmSync(relayFile("unmade"));
    rmSync(file("catalog.json"));
    await started.look();
    await started.look();
    expect(await problems()).toEqual([]);
  });

  test("with an unreadable entry at its path leaves its relay unchanged", async () => {
    const started = await start();
    rmSync(relayFile());
    symlinkSync(relayFile(), relayFile());
    for (let look = 0; look < 3; look++) await started.look();
    expect(await relay()).not.toBeNull();
    expect(told.filter((line) => line.includes("ELOOP"))).toHaveLength(1);
    await started[Symbol.asyncDispose]();
    await start();
    expect(await relay()).not.toBeNull();
  });

  test("that comes back gets its old secret again", async () => {
    const started = await start();
    const secrets = readFileSync(file(".secrets.json"), "utf8");
    rmSync(relayFile());
    await pass(started);
    expect(await relay()).toBeNull();
    save({});
    await started.look();
    expect(await relay()).toMatchObject({ secretKind: "pasted" });
    expect(readFileSync(file(".secrets.json"), "utf8")).toBe(secrets);
  });
});

describe("the catalog", () => {
  const catalog = (value: unknown) => writeFileSync(file("catalog.json"), JSON.stringify(value));

  test("that breaks a relay whose file stays is logged once, and is the relay's problem until it is fixed", async () => {
    const started = await start();
    const good = readFileSync(file("catalog.json"), "utf8");
    told = [];
    catalog({ collections: { orders: { kind: "addressed", fields: { order: { type: "text", required: true } } } } });
    await started.look();
    await started.look();
    expect(told.filter((line) => line.startsWith(`relay ${NAME}`))).toEqual([
      `relay ${NAME}: warning: \`actions.0.data.amount\` is not a field of the collection orders: remove it or add the field to the collection, or every event becomes dead.`,
    ]);
    expect(await problems()).toMatchObject([{ code: "relay_misfit", target: `relay:${NAME}` }]);
    writeFileSync(file("catalog.json"), good);
    await started.look();
    expect(await problems()).toEqual([]);
  });

  test("gets no problem for a missing name in a relay's own edit, because that save already warned", async () => {
    const started = await start();
    told = [];
    save({ actions: [{ type: "grant_access", entitlement: "access:nowhere" }] });
    await started.look();
    expect(told.filter((line) => line.includes("nowhere"))).toHaveLength(1);
    expect(await problems()).toEqual([]);
  });

  test("creates products and plans that relays of the same scan sell, without a warning", async () => {
    catalog({
      products: { ebook: { credits: 5, soldThrough: { kind: "relay", relay: NAME } } },
      plans: { free: {}, pro: { default: true } },
    });
    save({ actions: [{ type: "fulfil_product", product: "ebook", ref: "{{mapped.order}}" }] });
    const started = await start();
    expect(await store.read((tx) => products.find(tx, environment.id, "ebook"))).toMatchObject({
      credits: 5,
      version: 1,
    });
    expect(await store.read((tx) => plans.find(tx, environment.id, "pro"))).toMatchObject({ isDefault: true });
    expect(told.join("\n")).not.toContain("warning");
    await started.look();
    expect(await store.read((tx) => products.find(tx, environment.id, "ebook"))).toMatchObject({ version: 1 });
  });

  test("changes the default plan", async () => {
    catalog({ plans: { free: { default: true }, pro: {} } });
    const started = await start();
    catalog({ plans: { free: { default: false }, pro: { default: true } } });
    await started.look();
    expect(await store.read((tx) => plans.find(tx, environment.id, "pro"))).toMatchObject({ isDefault: true });
    expect(await problems()).toEqual([]);
  });

  test("that names a missing relay is a problem until the relay exists", async () => {
    catalog({ products: { ebook: { soldThrough: { kind: "relay", relay: "later" } } } });
    const started = await start();
    expect(await problems()).toMatchObject([{ code: "catalog_broken", target: "catalog" }]);
    save({}, "later");
    await started.look();
    expect(await store.read((tx) => products.find(tx, environment.id, "ebook"))).not.toBeNull();
    expect(await problems()).toEqual([]);
  });

  test.each([
    ["before the catalog follows", true],
    ["with the catalog at once", false],
  ])("follows a relay that comes back under another name, %s", async (_when, relayFirst) => {
    const sell = (name: string) =>
      catalog({
        products: { ebook: { credits: 5, soldThrough: { kind: "relay", relay: name } } },
        plans: { free: {}, pro: { soldThrough: { kind: "relay", relay: name } } },
      });
    const actions = [
      { type: "fulfil_product", product: "ebook", ref: "{{mapped.order}}" },
      { type: "grant_plan", plan: "pro", ref: "{{mapped.order}}" },
    ];
    sell(NAME);
    save({ actions });
    const started = await start();
    rmSync(relayFile());
    await pass(started);
    expect(await relay()).toBeNull();
    save({ actions }, "renamed");
    if (relayFirst) {
      await started.look();
      expect(await relay("renamed")).toBeNull();
      expect(await problems()).toMatchObject([{ code: "definition_broken", target: "relay:renamed" }]);
    }
    sell("renamed");
    await started.look();
    expect(await relay("renamed")).not.toBeNull();
    const soldThrough = { kind: "relay", relay: "renamed" };
    expect(await store.read((tx) => products.find(tx, environment.id, "ebook"))).toMatchObject({
      credits: 5,
      soldThrough,
    });
    expect(await store.read((tx) => plans.find(tx, environment.id, "pro"))).toMatchObject({ soldThrough });
    expect(await problems()).toEqual([]);
  });

  test("creates access slugs, each audited with before and after", async () => {
    catalog({ access: { forum: { title: "Forum" } } });
    const started = await start();
    catalog({ access: { forum: { title: "The forum" } } });
    await started.look();
    const { items } = await store.read((tx) => listAudit(tx, environment.id, { target: "access:forum" }, { limit: 9, after: null }));
    expect(items).toMatchObject([
      { actor: "command line", before: { title: "Forum" }, after: { title: "The forum" } },
      { before: null, after: { title: "Forum" } },
    ]);
  });

  test("never deletes an item that it does not name", async () => {
    const started = await start();
    catalog({});
    await started.look();
    expect(await store.read((tx) => findCollection(tx, environment.id, "orders"))).not.toBeNull();
  });
});

test("detects a change through the file system's notice or the next poll", async () => {
  await start();
  save({ actions: [callAction] });
  // Reading the files takes real time, which the test clock does not measure.
  const look = async () => {
    await clock.advance(500);
    return await relay();
  };
  expect(await poll(look, (found) => found?.version !== 1, 1)).toMatchObject({ version: 2 });
});
