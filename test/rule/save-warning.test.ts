/**
 * The warnings of a save about the catalog and other relays, and about what a catalog change breaks. They are the same for an environment and for
 * files: a code, a field and a sentence.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { runCommand } from "../kit/cli-io.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const HOOKS = { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id", person_id: "p" } };
const ORDERS = {
  kind: "shared",
  fields: {
    status: "text",
    total: { type: "number", max: 500 },
    paid: "boolean",
    due: "date",
    more: "json",
    note: { type: "text", max: 5 },
  },
};
const NOTICES = { kind: "addressed", fields: { title: { type: "text", required: true } } };
const CATALOG = { collections: { orders: ORDERS, notices: NOTICES }, products: { lamp: {} } };

const watching = (trigger: object, data: object = { status: "x" }) => ({
  trigger: { kind: "data_change", collection: "orders", on: ["created"], ...trigger },
  actions: [{ type: "call_url", url: "https://example.com/x" }, ...(data === null ? [] : [{ type: "write_record", collection: "orders", data }])],
});

const ROWS: readonly [rule: string, definition: object, expected: [code: string, field: string, says: RegExp][]][] = [
  [
    "a valid reference has no warning",
    watching(
      { where: { status: "paid", total: 4, paid: true, due: "2030-01-31", more: "x" } },
      { status: "{{record.data.status}}, {{record.data.more.a.b}}, {{record.data}}" },
    ),
    [],
  ],
  [
    "a watched collection that is missing",
    watching({ collection: "ordrs" }, {}),
    [
      [
        "reference_missing",
        "trigger.collection",
        /no collection named ordrs in .* yet, so no record changes and this relay never runs: did you mean orders\?/,
      ],
    ],
  ],
  [
    "a field that the collection lacks",
    watching({ where: { statsu: "paid" } }),
    [["where_never_matches", "trigger.where.statsu", /is not a field of the collection orders.*: perhaps you meant status\./]],
  ],
  [
    "a field with no near name",
    watching({ where: { colour: "red" } }),
    [["where_never_matches", "trigger.where.colour", /: it has status, total, paid/]],
  ],
  [
    "a text for a number field",
    watching({ where: { total: "4" } }),
    [["where_never_matches", "trigger.where.total", /is text: it must be a number in the collection orders; otherwise no record matches/]],
  ],
  [
    "a number for a text field",
    watching({ where: { status: 4 } }),
    [["where_never_matches", "trigger.where.status", /is a number: it must be text/]],
  ],
  [
    "a text for a boolean field",
    watching({ where: { paid: "true" } }),
    [["where_never_matches", "trigger.where.paid", /is text: it must be true or false/]],
  ],
  ["an invalid date", watching({ where: { due: "tomorrow" } }), [["where_never_matches", "trigger.where.due", /must be an ISO date/]]],
  [
    "a number beyond the field's maximum",
    watching({ where: { total: 501 } }),
    [["where_never_matches", "trigger.where.total", /is greater than 500/]],
  ],
  [
    "a text longer than the field allows",
    watching({ where: { note: "longer" } }),
    [["where_never_matches", "trigger.where.note", /is longer than 5 characters/]],
  ],
  [
    "a template on a field that the collection lacks",
    watching({}, { status: "{{record.data.statsu}}" }),
    [
      [
        "path_names_nothing",
        "actions.1.data.status",
        /contains "\{\{record\.data\.statsu\}\}", which resolves to nothing: statsu is not a field of the collection orders: perhaps you meant status\./,
      ],
    ],
  ],
  [
    "a template below a scalar field",
    watching({}, { status: "{{record.data.total.amount}}" }),
    [["path_names_nothing", "actions.1.data.status", /total is a number field of the collection orders and has no fields below it/]],
  ],
  [
    "a template on a field of the previous record, which renders",
    watching({ on: ["updated", "deleted"] }, { status: "{{previous.data.status}}, {{previous.id}}" }),
    [],
  ],
  [
    "a template on a field of the previous record that the collection lacks",
    watching({ on: ["updated"] }, { status: "{{previous.data.statsu}}" }),
    [["path_names_nothing", "actions.1.data.status", /which resolves to nothing: statsu is not a field of the collection orders/]],
  ],
  [
    "a template on the previous record of a relay that fires only on created",
    watching({}, { status: "{{previous.data.status}}" }),
    [["path_names_nothing", "actions.1.data.status", /which resolves to nothing: a created record has no earlier state/]],
  ],
  [
    "a collection with a similar name to the one that is written",
    { trigger: HOOKS, actions: [{ type: "write_record", collection: "order", data: {} }] },
    [["reference_missing", "actions.0.collection", /no collection named order in .* yet \(did you mean orders\?\)/]],
  ],
  [
    "a product that is not sold through the relay",
    { trigger: HOOKS, actions: [{ type: "fulfil_product", product: "lamp", ref: "{{mapped.event_id}}" }] },
    [["not_sold_here", "actions.0.product", /soldThrough to \{ "kind": "relay", "relay": "judged" \}/]],
  ],
  [
    "a record that lacks a required field",
    { trigger: HOOKS, actions: [{ type: "write_record", collection: "notices", to: "person", data: {} }] },
    [["record_does_not_fit", "actions.0.data.title", /leaves out title, which the collection notices requires/]],
  ],
];

let service: RunningService;
beforeAll(async () => {
  service = await startRunningService();
  for (const [name, collection] of Object.entries(CATALOG.collections)) await service.api("POST", "/collections", { name, ...collection });
  await service.api("PUT", "/products/lamp", {});
});
afterAll(() => service[Symbol.asyncDispose]());

type Told = { code: string; field: string; message: string; line?: number };
const expected = (rows: (typeof ROWS)[number][2]) => rows.map(([code, field, says]) => ({ code, field, message: expect.stringMatching(says) }));

async function validateFiles(files: Readonly<Record<string, unknown>>, ...args: string[]) {
  const cwd = mkdtempSync(join(tmpdir(), "relay-warn-"));
  for (const [file, value] of Object.entries(files)) {
    mkdirSync(dirname(join(cwd, "service", file)), { recursive: true });
    writeFileSync(join(cwd, "service", file), typeof value === "string" ? value : JSON.stringify(value, null, 2));
  }
  const ran = await runCommand(["validate", ...args], { cwd });
  rmSync(cwd, { recursive: true });
  return ran;
}

describe("a save, the API's validate and the command find each warning", () => {
  test.each(ROWS)("%s", async (_rule, part, rows) => {
    const definition = { name: "judged", ...part };
    const looked = await service.api("POST", "/relays/validate", { definition });
    expect(looked.body).toMatchObject({ problems: [], warnings: expected(rows) });
    const saved = await service.api("POST", "/relays", { definition });
    expect(saved.body.warnings.filter(({ code }: Told) => code !== "secret_missing")).toEqual(expected(rows));
    await service.api("DELETE", "/relays/judged");
    const ran = await validateFiles({ "relays/judged.json": definition, "catalog.json": CATALOG }, "--json");
    const shown = JSON.parse(ran.said);
    expect(shown.files[0].warnings).toMatchObject(expected(rows));
    for (const { line, column } of shown.files[0].warnings) expect([line > 1, column > 1]).toEqual([true, true]);
    expect([ran.code, shown.warnings]).toEqual([0, rows.length]);
  });

  test("another relay's write into the watched collection is a warning on both sides, and the relay's own write is not", async () => {
    const definitions = {
      watcher: { name: "watcher", ...watching({}) },
      writer: { name: "writer", trigger: HOOKS, actions: [{ type: "write_record", collection: "orders", data: {} }] },
      later: {
        name: "later",
        trigger: { kind: "data_change", collection: "orders", on: ["updated", "deleted"] },
        actions: [{ type: "call_url", url: "https://example.com/x" }],
      },
    };
    const sides: [string, string, string, RegExp][] = [
      [
        "watcher",
        "relay_write_unseen",
        "trigger.collection",
        /the relay writer writes orders too, and a record that a relay writes never starts a relay/,
      ],
      [
        "writer",
        "relay_write_unseen",
        "actions.0.collection",
        /the relay watcher watches orders, but a record that a relay writes never starts a relay/,
      ],
    ];
    for (const definition of Object.values(definitions)) await service.api("POST", "/relays", { definition });
    const files = Object.fromEntries(Object.entries(definitions).map(([name, one]) => [`relays/${name}.json`, one]));
    const shown = JSON.parse((await validateFiles({ ...files, "catalog.json": CATALOG }, "--json")).said);
    for (const [name, code, field, says] of sides) {
      const looked = await service.api("POST", "/relays/validate", { definition: definitions[name as "writer"] });
      expect(looked.body.warnings.find((one: Told) => one.field === field)).toEqual({ code, field, message: expect.stringMatching(says) });
      const file = shown.files.find((one: { file: string }) => one.file.includes(`/${name}.json`));
      expect(file.warnings.find((one: Told) => one.field === field)).toMatchObject({ code, message: expect.stringMatching(says) });
    }
    const later = await service.api("POST", "/relays/validate", { definition: definitions.later });
    expect(later.body.warnings).toEqual([]);
    for (const name of Object.keys(definitions)) await service.api("DELETE", `/relays/${name}`);
  });
});

describe("two relays that sell different things on the same requests", () => {
  const STRIPE = {
    scheme: "signature",
    header: "Stripe-Signature",
    signatureKey: "v1",
    timestampKey: "t",
    signedPayload: "{timestamp}.{body}",
    encoding: "hex",
  };
  const MAP = { event_id: "id", event_type: "type", person_email: "email", product: "data.object.metadata.product" };
  const PAID = { event_type: "checkout.session.completed" };
  const selling = (name: string, when: object | null, verify: object = STRIPE, map: object = MAP, product = name) => ({
    name,
    trigger: { kind: "receiver", verify, map, ...(when === null ? {} : { when }) },
    actions: [{ type: "fulfil_product", product, ref: "{{mapped.event_id}}" }],
  });
  const ROWS: readonly [what: string, warns: boolean, one: object, other: object][] = [
    ["with equal filters", true, selling("one", PAID), selling("two", PAID)],
    ["of which only one filters by product", true, selling("one", PAID), selling("two", { ...PAID, product: "two" })],
    ["of which one has no filter", true, selling("one", null), selling("two", { ...PAID, product: "two" })],
    ["with lists that share a type", true, selling("one", { event_type: ["a", "b"] }), selling("two", { event_type: ["b", "c"] })],
    ["of which one verifies with the environment's secret", true, selling("one", PAID, { scheme: "processor" }), selling("two", PAID)],
    ["separated by the product", false, selling("one", { ...PAID, product: "one" }), selling("two", { ...PAID, product: "two" })],
    [
      "separated by one path under two names",
      false,
      selling("one", { ...PAID, product: "one" }),
      selling("two", { ...PAID, what: "two" }, STRIPE, { event_type: "type", email: "email", what: MAP.product }),
    ],
    ["for different events", false, selling("one", PAID), selling("two", { event_type: "invoice.paid" })],
    ["for different providers", false, selling("one", PAID), selling("two", PAID, { ...STRIPE, header: "X-Shop-Signature" })],
    ["that sell the same product", false, selling("one", PAID), selling("two", PAID, STRIPE, MAP, "one")],
  ];

  test.each(ROWS)("%s", async (_what, warns, one, other) => {
    const overlap = ({ code }: Told) => code === "sales_overlap";
    const says = (name: string) =>
      warns
        ? [
            {
              code: "sales_overlap",
              field: "trigger.when",
              message: expect.stringMatching(`the relay ${name} sells ${name}, and one payment can match both`),
            },
          ]
        : [];
    const first = await service.api("POST", "/relays", { definition: one });
    expect(first.body.warnings.filter(overlap)).toEqual([]);
    const second = await service.api("POST", "/relays", { definition: other });
    expect(second.body.warnings.filter(overlap)).toEqual(says("one"));
    const again = await service.api("PUT", "/relays/one", { definition: one, version: 1 });
    expect(again.body.warnings.filter(overlap)).toEqual(says("two"));
    for (const name of ["one", "two"]) await service.api("DELETE", `/relays/${name}`);
    const ran = await validateFiles({ "relays/one.json": one, "relays/two.json": other, "catalog.json": CATALOG }, "--json");
    const files: { warnings: Told[] }[] = JSON.parse(ran.said).files;
    const told = files.flatMap(({ warnings }) => warnings.filter(overlap));
    expect(told).toMatchObject([...says("two"), ...says("one")]);
  });
});

describe("relay validate", () => {
  const good = { name: "good", trigger: HOOKS, actions: [{ type: "write_record", collection: "orders", data: {} }] };
  const warned = { ...good, name: "warned", actions: [{ type: "write_record", collection: "ghosts", data: {} }] };

  test("counts its findings, and --strict fails on warnings", async () => {
    const clean = await validateFiles({ "relays/good.json": good, "catalog.json": CATALOG }, "--strict");
    expect([clean.code, clean.told]).toEqual([0, "2 files checked, no problems, no warnings."]);
    const files = { "relays/good.json": good, "relays/warned.json": warned, "catalog.json": CATALOG };
    const loose = await validateFiles(files);
    expect([loose.code, loose.said]).toEqual([0, ""]);
    expect(loose.told.split("\n")).toEqual([
      expect.stringMatching(
        /^service\/relays\/warned\.json:16:21 {2}warning: `actions\.0\.collection`: there is no collection named ghosts in these files yet; add it to catalog\.json .* {2}reference_missing$/,
      ),
      "3 files checked, no problems, 1 warning.",
    ]);
    expect((await validateFiles(files, "--strict")).code).toBe(1);
  });

  test("checks a named file together with its folder, and reports only the named file", async () => {
    const files = { "relays/good.json": good, "relays/warned.json": warned, "catalog.json": CATALOG };
    const ran = await validateFiles(files, "service/relays/good.json", "--strict");
    expect([ran.code, ran.told]).toEqual([0, "1 file checked, no problems, no warnings."]);
  });

  test("reports a missing `to` for the catalog's collection as a problem, because a save refuses it", async () => {
    const definition = { ...good, actions: [{ type: "write_record", collection: "notices", data: { title: "x" } }] };
    const ran = await validateFiles({ "relays/good.json": definition, "catalog.json": CATALOG });
    expect([ran.code, ran.said]).toEqual([
      1,
      expect.stringMatching(/good\.json:\d+:\d+ {2}`actions\.0\.to` is missing, but the collection notices is addressed/),
    ]);
  });

  test("warns in the catalog about a product whose relay is in no file", async () => {
    const catalog = { ...CATALOG, products: { lamp: { soldThrough: { kind: "relay", relay: "gone" } } } };
    const ran = await validateFiles({ "relays/good.json": good, "catalog.json": catalog });
    expect(ran.told).toMatch(/catalog\.json:\d+:\d+ {2}warning: `products\.lamp\.soldThrough\.relay`: there is no relay named gone in these files/);
  });

  test("reports a broken catalog without warnings that would follow from it", async () => {
    const ran = await validateFiles({ "relays/warned.json": warned, "catalog.json": "{" });
    expect([ran.code, ran.told]).toEqual([1, "2 files checked, 1 problem, no warnings."]);
  });

  test("recognizes a call to the service by its base URL", async () => {
    const definition = { ...good, actions: [{ type: "call_url", url: "https://relay.example.com/x" }] };
    const ran = await validateFiles({ "relays/good.json": definition }, "--base-url", "https://relay.example.com");
    expect(ran.told).toContain("`actions.0.url` is this service's own host");
  });

  test("reports what the save of a catalog item would refuse", async () => {
    const products = { lamp: { soldThrough: { kind: "payment_link", url: "https://user:word@pay.example" } }, bulb: { title: "two\nlines" } };
    const ran = await validateFiles({ "catalog.json": { products } });
    expect([ran.code, ran.said]).toEqual([
      1,
      expect.stringMatching(/`products\.lamp\.soldThrough\.url` is not a payment link[\s\S]*`products\.bulb\.title` /),
    ]);
  });
});

describe("a change of the catalog", () => {
  const relay = (name: string) => ({
    name,
    trigger: { kind: "data_change", collection: "tasks", on: ["created"], where: { done: true } },
    actions: [{ type: "grant_access", entitlement: "access:gold" }],
  });
  const problemsOf = async (name: string) => (await service.api("GET", `/relays/${name}`)).body.relay.problems;

  test("that breaks a running relay warns in its response, and is the relay's problem until it is fixed", async () => {
    await service.api("POST", "/collections", { name: "tasks", kind: "shared", fields: { done: "boolean" } });
    await service.api("PUT", "/access/gold", {});
    expect((await service.api("POST", "/relays", { definition: relay("broken") })).body.warnings).toEqual([]);
    const steps: [method: string, path: string, body: object | undefined, says: RegExp | null][] = [
      [
        "PUT",
        "/collections/tasks",
        { kind: "shared", fields: { done: "text" } },
        /relays\.broken\.trigger\.where\.done.*The relay broken: `trigger\.where\.done` is a boolean: it must be text/,
      ],
      ["PUT", "/collections/tasks", { kind: "shared", fields: { done: "boolean" } }, null],
      ["DELETE", "/collections/tasks", undefined, /there is no collection named tasks in this environment yet/],
      ["POST", "/collections", { name: "tasks", kind: "shared", fields: { done: "boolean" } }, null],
      ["DELETE", "/access/gold", undefined, /there is no access slug named gold/],
      ["PUT", "/access", { items: [{ slug: "gold" }] }, null],
      ["PUT", "/access?force=true", { items: [] }, /there is no access slug named gold/],
      ["PUT", "/access/gold", {}, null],
    ];
    for (const [method, path, body, says] of steps) {
      const { body: answer } = await service.api(method, path, body);
      const told = JSON.stringify(answer.warnings);
      const problems = await problemsOf("broken");
      if (says === null) expect([path, told, problems]).toEqual([path, "[]", []]);
      else {
        expect([path, told]).toEqual([path, expect.stringMatching(says)]);
        expect(problems).toEqual([{ code: "relay_misfit", message: expect.stringMatching(/^A change of the catalog broke this relay\. /) }]);
      }
    }
  });

  test("to a product or plan that the relay sells does too, and the relay's own save clears it", async () => {
    const sells = (product: string) => ({
      name: "sells",
      trigger: HOOKS,
      actions: [{ type: "fulfil_product", product, ref: "{{mapped.event_id}}" }],
    });
    await service.api("POST", "/relays", { definition: sells("cup") });
    expect(await problemsOf("sells")).toEqual([]);
    const sold = { soldThrough: { kind: "relay", relay: "sells" } };
    expect((await service.api("PUT", "/products/cup", sold)).body.warnings).toEqual([]);
    expect((await service.api("PUT", "/products/cup", {})).body.warnings).toEqual([
      { code: "not_sold_here", field: "relays.sells.actions.0.product", message: expect.stringContaining("The relay sells: ") },
    ]);
    expect(await problemsOf("sells")).toHaveLength(1);
    await service.api("PUT", "/products/mug", sold);
    await service.api("PUT", "/relays/sells", { definition: sells("mug"), version: 1 });
    expect(await problemsOf("sells")).toEqual([]);
    expect((await service.api("DELETE", "/products/mug")).body.warnings).toMatchObject([{ code: "reference_missing" }]);
    await service.api("DELETE", "/relays/sells");
  });

  test("that breaks nothing has no warning, and a relay saved before its references exist has no problem", async () => {
    const early = { name: "early", trigger: HOOKS, actions: [{ type: "write_record", collection: "coming", data: { a: "x" } }] };
    expect((await service.api("POST", "/relays", { definition: early })).body.warnings).toMatchObject([{ code: "reference_missing" }]);
    expect((await service.api("PUT", "/products/other", {})).body.warnings).toEqual([]);
    expect(await problemsOf("early")).toEqual([]);
    const made = await service.api("POST", "/collections", { name: "coming", kind: "shared", fields: { b: "text" } });
    expect(made.body.warnings).toMatchObject([{ code: "record_does_not_fit", field: "relays.early.actions.0.data.a" }]);
  });

  test("that affects more relays than one response checks counts the others", async () => {
    await service.api("POST", "/collections", { name: "wide", kind: "shared", fields: { a: "text" } });
    const definition = { trigger: HOOKS, actions: [{ type: "write_record", collection: "wide", data: { a: "x" } }] };
    const text = (name: string) => JSON.stringify({ name, ...definition });
    await service.api("POST", "/relays", { definition: { name: "wide", ...definition } });
    await service.service.store.write("app", async (tx) => {
      const row = (await tx.get<Record<string, string>>("SELECT * FROM relay WHERE name = 'wide'")) ?? {};
      const names = Object.keys(row);
      for (let copy = 0; copy < 30; copy++) {
        const name = `wide-${copy}`;
        const values = { ...row, id: `rly_wide${copy}`, name, definition: text(name) };
        await tx.run(`INSERT INTO relay (${names.join()}) VALUES (${names.map((one) => `$${one}`).join()})`, values);
      }
    });
    const { warnings } = (await service.api("PUT", "/collections/wide", { kind: "shared", fields: { b: "text" } })).body;
    expect(warnings.filter(({ code }: Told) => code === "record_does_not_fit")).toHaveLength(25);
    expect(warnings.at(-1)).toEqual({
      code: "relays_not_told",
      field: "relays",
      message: expect.stringMatching(/^6 more relays use what was changed/),
    });
    // None of the relays names an access slug.
    expect((await service.api("PUT", "/access", { items: [{ slug: "gold" }] })).body.warnings).toEqual([]);
  });
});
