/** Definition and catalog files: the command reports every problem at once, each with its line and column. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { Type } from "typebox";
import { Compile } from "typebox/compile";
import { EXAMPLE_CATALOG, EXAMPLE_DEFINITION } from "../../src/interfaces/cli/sync/init.ts";
import { checkCatalogFile } from "../../src/operator/sync/catalog-file.ts";
import { checkDefinitionFile } from "../../src/operator/sync/definition-file.ts";
import { parseFileText } from "../../src/operator/sync/json-file.ts";
import { runCommand } from "../kit/cli-io.ts";

const MISTAKES: readonly [rule: string, text: string, line: number, column: number, message: RegExp][] = [
  ["an extra comma", '{\n  "a": 1,\n}', 3, 1, /a name in "quotes" was expected/],
  ["a missing comma", '{\n  "a": 1\n  "b": 2\n}', 3, 3, /a comma or } was expected, and a text begins here/],
  ["a missing colon", '{ "a" 1 }', 1, 7, /a colon was expected/],
  ["a name without quotes", "{ a: 1 }", 1, 3, /a name in "quotes" was expected/],
  ["single quotes", "{ 'a': 1 }", 1, 3, /a name in "quotes" was expected/],
  ["a comment", '{\n  // note\n  "a": 1\n}', 2, 3, /a comment begins here/],
  ["an unterminated text", '{ "a": "b }', 1, 8, /a text that ends on its line/],
  ["a file that ends early", '{ "a": [1, 2', 1, 13, /the file ends here/],
  ["two values", "{} {}", 1, 4, /the end was expected/],
  ["an unknown word as a value", '{ "a": yes }', 1, 8, /a value was expected/],
  ["a number with a leading zero", '{ "a": 01 }', 1, 9, /a comma or } was expected/],
];

describe("a JSON mistake", () => {
  test.each(MISTAKES)("%s is reported at its line and column", (_rule, text, line, column, message) => {
    const file = parseFileText({ text });
    expect(file).toMatchObject({ ok: false, problems: [{ message: expect.stringMatching(message), place: { line, column } }] });
  });

  test("is what the positional reader and JSON.parse both refuse", () => {
    const text = fc.oneof(fc.json(), fc.string({ unit: fc.constantFrom(...'{}[],:"1-.eE0 \n\\utruefalsn/') }));
    fc.assert(
      fc.property(text, (candidate) => {
        let isJson = true;
        try {
          JSON.parse(candidate);
        } catch {
          isJson = false;
        }
        const file = parseFileText({ text: candidate });
        if (file.ok) expect([isJson, file.places.mistake]).toEqual([true, null]);
        else expect([isJson, file.problems[0]?.place === null]).toEqual([false, candidate.trim() === ""]);
      }),
      { numRuns: 3_000 },
    );
  });

  test("a byte order mark is ignored", () => {
    expect(parseFileText({ text: '\uFEFF{"a":1}' })).toMatchObject({ ok: true, value: { a: 1 } });
  });

  test("an empty file says so", () => {
    expect(parseFileText({ text: " \n" })).toMatchObject({
      ok: false,
      problems: [{ message: expect.stringMatching(/empty/) }],
    });
  });
});

describe("a definition file", () => {
  const check = (name: string, text: string) => checkDefinitionFile(name, parseFileText({ text: text }));
  const written = (change: object) => JSON.stringify({ ...EXAMPLE_DEFINITION, ...change }, null, 2);

  test("returns its definition when it is valid", () => {
    expect(check("checkout-completed", written({}))).toMatchObject({
      ok: true,
      name: "checkout-completed",
      warnings: [],
    });
  });

  test("must have the relay's name", () => {
    expect(check("other", written({}))).toMatchObject({
      ok: false,
      problems: [
        {
          field: "name",
          place: { line: 2, column: 11 },
          message: expect.stringMatching(/file is other\.json/),
        },
      ],
    });
  });

  test("reports every problem at the position of its field", () => {
    const file = check("checkout-completed", written({ extra: 1, actions: [{ type: "call_url", url: "https://a.example", retries: 3 }] }));
    expect(file).toMatchObject({ ok: false });
    if (file.ok) return;
    expect(file.problems.map(({ field }) => field).sort()).toEqual(["actions.0.retries", "extra"]);
    for (const { place } of file.problems) expect(place?.line).toBeGreaterThan(1);
  });

  test("reports a missing field at the position of its object", () => {
    const file = check("checkout-completed", '{\n  "name": "checkout-completed",\n  "trigger": {},\n  "actions": []\n}');
    if (file.ok) throw new Error("It must not be taken.");
    expect(file.problems.find(({ field }) => field === "trigger.kind")?.place).toEqual({
      line: 3,
      column: 14,
    });
  });

  test("refuses a name that appears twice, although JSON keeps the last", () => {
    const text = written({}).replace('"name"', '"name": "first",\n  "name"');
    expect(check("checkout-completed", text)).toMatchObject({
      ok: false,
      problems: [{ field: "name", message: expect.stringMatching(/is here twice/) }],
    });
  });

  test("reports a name that appears many times once", () => {
    const text = written({}).replace('"name"', '"name": "first",\n  "name": "second",\n  "name"');
    const file = check("checkout-completed", text);
    expect(file.ok ? [] : file.problems.map(({ field }) => field)).toEqual(["name"]);
  });

  test.each([
    ["a space that JSON does not allow", "\u00a0", "U+00A0"],
    ["a second byte order mark", "\ufeff\ufeff", "U+FEFF"],
    ["a mark that changes the text direction", "\u202e", "U+202E"],
  ])("names %s by its code point, because it is invisible in quotes", (_name, sign, code) => {
    expect(check("checkout-completed", `${sign}${written({})}`)).toMatchObject({
      ok: false,
      problems: [
        {
          message: `The file is not JSON at line 1, column 1: a value was expected, and ${code}, which shows as nothing or as a space, is here.`,
        },
      ],
    });
  });
});

const CATALOGS: readonly [rule: string, catalog: unknown, field: string, message: RegExp][] = [
  ["refuses an unknown section by name", { product: {} }, "product", /rename it to `products`/],
  ["refuses an unknown field of a product by name", { products: { ebook: { price: 1 } } }, "products.ebook.price", /not a known field/],
  ["refuses a name with capitals", { access: { Members: {} } }, "access.Members", /lowercase/],
  ["refuses a collection without a kind", { collections: { orders: { fields: {} } } }, "collections.orders.kind", /shared, private/],
  [
    "refuses a field without a type",
    { collections: { orders: { kind: "shared", fields: { a: { type: "int" } } } } },
    "collections.orders.fields.a.type",
    /text, number/,
  ],
  [
    "refuses two default plans",
    { plans: { free: { default: true }, pro: { default: true } } },
    "plans.pro.default",
    /free is the default plan already/,
  ],
  ["refuses a product and a plan with the same name", { products: { pro: {} }, plans: { pro: {} } }, "plans.pro", /share one name space/],
  [
    "refuses an unknown way of selling",
    { products: { ebook: { soldThrough: { kind: "shop" } } } },
    "products.ebook.soldThrough.kind",
    /payment_link, relay/,
  ],
  ["refuses negative credits", { products: { ebook: { credits: -1 } } }, "products.ebook.credits", /integer from 0/],
];

describe("a catalog file", () => {
  const check = (catalog: unknown) => checkCatalogFile(parseFileText({ text: JSON.stringify(catalog) }));

  test.each(CATALOGS)("%s", (_rule, catalog, field, message) => {
    const file = check(catalog);
    if (file.ok) throw new Error("It must not be taken.");
    expect(file.problems).toMatchObject([{ field, message: expect.stringMatching(message) }]);
    expect(file.problems[0]?.place).not.toBeNull();
  });

  test("accepts the example and an empty catalog", () => {
    expect(check(EXAMPLE_CATALOG)).toMatchObject({
      ok: true,
      catalog: { collections: [{ name: "orders", kind: "addressed" }] },
    });
    expect(check({})).toMatchObject({ ok: true });
  });

  test("refuses a value that is no object", () => {
    expect(check([])).toMatchObject({ ok: false });
  });
});

describe("relay validate", () => {
  test("prints the warnings of a save: an end in the past, and a key that is not in the catalog", async () => {
    const cwd = mkdtempSync(join(tmpdir(), "relay-validate-"));
    mkdirSync(join(cwd, "service/relays"), { recursive: true });
    const late = { type: "grant_access", entitlement: "access:a", expiresAt: "2020-01-01" };
    const trigger = { kind: "receiver", verify: { scheme: "hooks" }, map: { person_id: "p" } };
    writeFileSync(join(cwd, "service/relays/late.json"), JSON.stringify({ name: "late", trigger, actions: [late] }));
    writeFileSync(join(cwd, "service/catalog.json"), JSON.stringify({ products: { lamp: { key: "access:light" } } }));
    const { code, told } = await runCommand(["validate"], { cwd });
    rmSync(cwd, { recursive: true });
    expect(code).toBe(0);
    expect(told).toMatch(/late\.json:1:\d+ {2}warning: `actions\.0\.expiresAt` is past \(2020-01-01\)/);
    expect(told).toMatch(/catalog\.json:1:\d+ {2}warning: `products\.lamp\.key` names access:light/);
  });

  const cwd = mkdtempSync(join(tmpdir(), "relay-cli-"));
  afterAll(() => rmSync(cwd, { recursive: true }));

  test("fails with nothing to check, so that a wrong folder never passes", async () => {
    expect(await runCommand(["validate"], { cwd })).toMatchObject({
      code: 1,
      said: "",
      told: expect.stringMatching(/nothing to check/),
    });
  });

  test("accepts the files of relay init, which leaves existing files unchanged", async () => {
    expect((await runCommand(["init"], { cwd })).said.split("\n")).toEqual([
      "service/relays/checkout-completed.json",
      "service/catalog.json",
      "service/relay.schema.json",
      "service/catalog.schema.json",
      ".vscode/settings.json",
    ]);
    expect(await runCommand(["validate"], { cwd })).toMatchObject({
      code: 0,
      said: "",
      told: "2 files checked, no problems, no warnings.",
    });
    const again = await runCommand(["init"], { cwd });
    expect(again.said).toBe("service/relay.schema.json\nservice/catalog.schema.json");
    expect(again.told).not.toContain("settings.json");
  });

  test("binds the editor to both schemas, which equal the output of relay schema and fit the example", async () => {
    const { "json.schemas": bound } = JSON.parse(readFileSync(join(cwd, ".vscode", "settings.json"), "utf8"));
    expect(bound).toEqual([
      { fileMatch: ["/service/relays/*.json"], url: "./service/relay.schema.json" },
      { fileMatch: ["/service/catalog.json"], url: "./service/catalog.schema.json" },
    ]);
    const read = (name: string) => JSON.parse(readFileSync(join(cwd, "service", name), "utf8"));
    expect(JSON.parse((await runCommand(["schema", "catalog"], { cwd })).said)).toEqual(read("catalog.schema.json"));
    expect((await runCommand(["schema", "other"], { cwd })).code).toBe(2);
    const fits = Compile(Type.Unsafe(read("catalog.schema.json")));
    const cases: [unknown, boolean][] = [
      [read("catalog.json"), true],
      [{ collections: { orders: { kind: "shared", fields: { order: "text", paid: { type: "boolean" } } } } }, true],
      [{ collections: { orders: { kind: "odd", fields: {} } } }, false],
      [{ collections: { orders: { kind: "shared", fields: { order: "string" } } } }, false],
      [
        {
          products: { lamp: { credits: 3, soldThrough: { kind: "relay", relay: "checkout" } } },
          plans: { free: { default: true } },
          access: { beta: {} },
        },
        true,
      ],
      [{ products: { lamp: { colour: "red" } } }, false],
      [{ thing: {} }, false],
    ];
    for (const [value, expected] of cases) expect([value, fits.Check(value)]).toEqual([value, expected]);
  });

  test("prints each problem on one line: file, line, column, sentence", async () => {
    mkdirSync(join(cwd, "service", "relays"), { recursive: true });
    writeFileSync(join(cwd, "service", "relays", "broken.json"), '{\n  "name": "broken",\n  "trigger": { "kind": "clock" },\n  "actions": []\n}\n');
    const { code, said } = await runCommand(["validate"], { cwd });
    expect(code).toBe(1);
    expect(said.split("\n")).toEqual([
      expect.stringMatching(/^service\/relays\/broken\.json:3:24 {2}`trigger\.kind` is "clock"/),
      expect.stringMatching(/^service\/relays\/broken\.json:4:14 {2}`actions` is empty/),
    ]);
    const json = await runCommand(["validate", "service/relays/broken.json", "--json"], { cwd });
    expect(JSON.parse(json.said).files).toMatchObject([
      {
        problems: [
          { line: 3, column: 24 },
          { line: 4, column: 14 },
        ],
      },
    ]);
  });
});
