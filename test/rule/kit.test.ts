/** The selling kits: each file has the shape of a kit, and its definitions are valid, obey the unsigned-event rule and can be written by relay init. */
import { describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Errors } from "typebox/schema";
import { type JsonObject, writeJson } from "../../src/base/json.ts";
import type { Refusal } from "../../src/base/refusal.ts";
import { checkCatalogFile } from "../../src/operator/sync/catalog-file.ts";
import { parseFileText } from "../../src/operator/sync/json-file.ts";
import { checkDefinition } from "../../src/rules/relay/definition.ts";
import type { Definition } from "../../src/rules/relay/definition-shape.ts";
import { withScheme } from "../../src/rules/relay/source.ts";
import { checkUnsignedRule, rejectsUnsigned } from "../../src/rules/relay/unsigned-rule.ts";
import { type Kit, kitShape } from "../../src/rules/senders/kit.ts";
import { fillNames, KIT_NAMES, type KitNames, kitDefinitions } from "../../src/rules/senders/kit-definitions.ts";
import { playLife } from "../../src/rules/senders/kit-life.ts";
import { KITS } from "../../src/rules/senders/kit-registry.ts";
import { requireSender } from "../../src/rules/senders/registry.ts";
import { signsEvent } from "../../src/rules/senders/sender-start.ts";
import { runCommand } from "../kit/cli-io.ts";

const OTHER_NAMES: KitNames = { product: "e-book", plan: "small", plan2: "large" };

const definitionsOf = (kit: Kit, names = KIT_NAMES) => kitDefinitions(kit, requireSender(kit.sender), names);

describe("every file of kits/", () => {
  const folder = join(import.meta.dir, "..", "..", "kits");
  const files = readdirSync(folder).sort();

  test("is in the registry", () => {
    expect(KITS.map(({ sender }) => `${sender}.json`)).toEqual(files);
  });

  test.each(files)("%s has only the fields of a kit, and all of them", (file) => {
    const [, errors] = Errors(kitShape, JSON.parse(readFileSync(join(folder, file), "utf8")));
    expect(errors.map(({ instancePath, message }) => `${file}${instancePath}: ${message}`)).toEqual([]);
  });
});

describe.each(KITS.map((kit) => [kit.sender, kit] as const))("the kit of %s", (_name, kit) => {
  const sender = requireSender(kit.sender);

  test.each([KIT_NAMES, OTHER_NAMES])("has valid definitions with the names %o", (names) => {
    const { relays, catalog } = definitionsOf(kit, names);
    for (const relay of relays) expect(checkDefinition(relay)).toMatchObject({ definition: { name: relay.name } });
    expect(checkCatalogFile(parseFileText({ text: writeJson(catalog) }))).toMatchObject({ ok: true });
    expect(writeJson([relays, catalog])).not.toMatch(/\{(product|plan2?)\}/);
  });

  test("names its relays once, at most 20 of them, and the source first", () => {
    const names = definitionsOf(kit).relays.map(({ name }) => name);
    expect(names[0]).toBe(kit.sender);
    expect(names).toEqual([...new Set(names)]);
    expect(names.length).toBeLessThanOrEqual(20);
  });

  test("obeys the unsigned-event rule, and opts in only where it must", () => {
    const [source, ...followers] = definitionsOf(kit).relays as unknown[] as Definition[];
    const judged = [source, ...followers].map((one) => withScheme(one as Definition, source as Definition));
    expect(judged.flatMap(checkUnsignedRule)).toEqual([]);
    const optIns = judged.filter(({ trigger }) => trigger.kind === "receiver" && trigger.trustUnsignedEvents === true);
    const mustOptIn = judged.filter((one) => {
      const { trustUnsignedEvents: _, ...trigger } = one.trigger as Definition["trigger"] & { trustUnsignedEvents?: boolean };
      return !signsEvent(sender) && rejectsUnsigned({ ...one, trigger } as Definition);
    });
    expect(optIns.map(({ name }) => name)).toEqual(mustOptIn.map(({ name }) => name));
  });

  test("sells through its relays exactly what they give", () => {
    const { relays, catalog } = definitionsOf(kit);
    const given = (relays as unknown[] as Definition[]).flatMap(({ name, actions }) =>
      actions.flatMap((action) =>
        action.type === "fulfil_product" || action.type === "grant_plan" ? [`${action.product ?? action.plan} by ${name}`] : [],
      ),
    );
    const { products, plans } = catalog as Record<string, Record<string, { soldThrough?: { relay: string } }>>;
    const sold = Object.entries({ ...products, ...plans }).flatMap(([name, { soldThrough }]) =>
      soldThrough === undefined ? [] : [`${name} by ${soldThrough.relay}`],
    );
    expect(given.sort()).toEqual(sold.sort());
  });

  test("reads in every relay a field that a body of its lives has", () => {
    const playing = { names: KIT_NAMES, person: "ada@example.com", run: "100000000000", startMs: 0 };
    const requests = kit.lives.flatMap((life) => playLife(kit, life, playing).flatMap((step) => step.requests));
    const text = requests.map(({ body }) => body).join("\n");
    expect(text).not.toMatch(/\{(product|plan2?|run|event|at|person)\b/);
    for (const { map } of kit.relays) {
      for (const path of Object.values(map)) {
        const last =
          path
            .split(".")
            .filter((part) => !/^\d+$/.test(part))
            .at(-1) ?? path;
        expect([path, decodeURIComponent(text).includes(last)]).toEqual([path, true]);
      }
    }
  });

  test("plays only events that its endpoint gets", () => {
    const path = kit.source.event_type;
    if (kit.eventTypes.length === 0 || path === undefined) return;
    const playing = { names: KIT_NAMES, person: "ada@example.com", run: "100000000000", startMs: 0 };
    const requests = kit.lives.flatMap((life) => playLife(kit, life, playing).flatMap((step) => step.requests));
    const types = requests.map(({ body }) => {
      if (kit.form === true) return new URLSearchParams(body).get(path) ?? "";
      return String(path.split(".").reduce<unknown>((value, name) => (value as Record<string, unknown>)[name], JSON.parse(body)));
    });
    expect(types.filter((type) => !kit.eventTypes.includes(type))).toEqual([]);
    const wanted = kit.relays.flatMap(({ when }) => when.event_type ?? []);
    expect(wanted.filter((type) => !kit.eventTypes.includes(type))).toEqual([]);
  });

  test("writes its texts as sentences", () => {
    const texts = [
      ...kit.cannot,
      ...kit.prepare,
      ...kit.relays.map(({ does }) => does),
      ...kit.lives.flatMap(({ steps }) => steps.map(({ does }) => does)),
    ];
    expect(texts.filter((text) => !/^[\p{Lu}`].*\.$/su.test(fillNames(text, KIT_NAMES) as string))).toEqual([]);
  });
});

describe("the lives of the kits", () => {
  const ALL = ["purchase", "delayed-payment", "refund", "dispute", "subscription-life"];
  test.each([
    ["chargebee", ["refund", "dispute"], "The event of a refund or a dispute does not say whether all the money went back"],
    ["gumroad", ["delayed-payment"], ""],
    ["lemon-squeezy", ["dispute"], "Lemon Squeezy sends no event about a dispute"],
    ["paddle", [], ""],
    ["polar", ["dispute"], "Polar sends no event about a dispute"],
    ["revenuecat", ["delayed-payment", "dispute"], "A store sends no event about a dispute"],
    ["shopify", ["subscription-life"], "so this kit sells no plans"],
    ["stripe", [], ""],
  ])("%s plays all but %o", (sender, missing, cannot) => {
    const kit = KITS.find((one) => one.sender === sender) as Kit;
    const names = kit.lives.map(({ name }) => name);
    expect(ALL.filter((name) => !names.includes(name))).toEqual(missing);
    expect(kit.cannot.join(" ")).toContain(cannot);
  });

  test("are listed for every kit", () => expect(KITS).toHaveLength(8));
});

describe("the names of a kit", () => {
  const [kit] = KITS as readonly [Kit];
  test.each([
    ["an empty name", { plan: "" }, "The name of the first plan (`plan`) is"],
    ["capital letters", { product: "Course" }, "write 1 to 40 lowercase letters, digits and hyphens"],
    ["a name twice", { plan2: "basic" }, "which is already the name of the first plan"],
    ["the name of the free plan", { plan: "free" }, "which is already the name of the plan of people without a subscription"],
    ["a name of 41 characters", { product: "p".repeat(41) }, "write 1 to 40"],
  ])("cannot be %s", (_rule, change, message) => {
    expect(() => definitionsOf(kit, { ...KIT_NAMES, ...change })).toThrow(
      expect.objectContaining({ message: expect.stringContaining(message) }) as Refusal,
    );
  });
});

describe("relay init --from … --sell", () => {
  const within = async (work: (cwd: string) => Promise<void>): Promise<void> => {
    const cwd = mkdtempSync(join(tmpdir(), "relay-kit-"));
    try {
      await work(cwd);
    } finally {
      rmSync(cwd, { recursive: true });
    }
  };

  test.each(KITS.map(({ sender }) => sender))("writes the kit of %s, which is valid, and prints the steps in order", (sender) =>
    within(async (cwd) => {
      const kit = KITS.find((one) => one.sender === sender) as Kit;
      const { said, told, code } = await runCommand(["init", "--from", sender, "--sell"], { cwd });
      const { relays, catalog } = definitionsOf(kit);
      expect([code, said.split("\n").slice(0, relays.length)]).toEqual([0, relays.map(({ name }) => `service/relays/${name}.json`)]);
      for (const relay of relays) expect(JSON.parse(readFileSync(join(cwd, `service/relays/${relay.name}.json`), "utf8"))).toEqual(relay);
      expect(JSON.parse(readFileSync(join(cwd, "service/catalog.json"), "utf8"))).toEqual(catalog);
      const numbers = [...told.matchAll(/^(\d+)\. /gm)].map(([, number]) => Number(number));
      expect(numbers).toEqual(numbers.map((_, index) => index + 1));
      for (const type of kit.eventTypes) expect(told).toContain(type);
      const checked = await runCommand(["validate"], { cwd });
      const warnings = relays.filter(({ trigger }) => (trigger as JsonObject).trustUnsignedEvents === true).length;
      const counted = warnings === 0 ? "no warnings" : `${warnings} warnings`;
      expect([checked.code, checked.told]).toEqual([0, expect.stringContaining(`${relays.length + 1} files checked, no problems, ${counted}.`)]);
      expect(checked.told.match(/unsigned_events$/gm)?.length ?? 0).toBe(warnings);
    }),
  );

  test("takes the seller's names", () =>
    within(async (cwd) => {
      await runCommand(["init", "--from", "lemon-squeezy", "--sell", "--product", "e-book", "--plans", "small,large"], { cwd });
      const { products, plans } = JSON.parse(readFileSync(join(cwd, "service/catalog.json"), "utf8"));
      expect([Object.keys(products), Object.keys(plans)]).toEqual([["e-book"], ["free", "small", "large"]]);
      expect(readdirSync(join(cwd, "service/relays"))).toContain("lemon-squeezy-plan-large.json");
    }));

  test("adds to a catalog only what is missing, and no second default plan", () =>
    within(async (cwd) => {
      await runCommand(["init"], { cwd });
      const file = join(cwd, "service/catalog.json");
      const before = JSON.parse(readFileSync(file, "utf8"));
      writeFileSync(file, JSON.stringify({ ...before, plans: { starter: { default: true } } }));
      expect((await runCommand(["init", "--from", "lemon-squeezy", "--sell"], { cwd })).code).toBe(0);
      const { collections, plans } = JSON.parse(readFileSync(file, "utf8"));
      expect(collections.orders).toEqual(before.collections.orders);
      expect(Object.keys(plans)).toEqual(["starter", "basic", "pro"]);
      expect((await runCommand(["validate"], { cwd })).code).toBe(0);
    }));

  test.each([
    ["an unknown provider", ["--from", "lemon-squezy", "--sell"], "did you mean lemon-squeezy?"],
    ["a provider without a kit", ["--from", "github", "--sell"], "--from is github, which has no selling kit yet: omit --sell"],
    ["--sell without a provider", ["--sell"], "--sell needs --from"],
    ["names without --sell", ["--from", "lemon-squeezy", "--plans", "a,b"], "--plans needs --sell"],
    ["one plan", ["--from", "lemon-squeezy", "--sell", "--plans", "a"], "--plans must name two plans"],
    ["the name of one relay", ["--from", "lemon-squeezy", "--sell", "--name", "orders"], "--name names one relay, and --sell writes several"],
    ["equal names", ["--from", "lemon-squeezy", "--sell", "--plans", "a,a"], "choose another name"],
  ])("refuses %s and writes no file", (_rule, words, message) =>
    within(async (cwd) => {
      const { code, told } = await runCommand(["init", ...words], { cwd });
      expect([code === 0, told]).toEqual([false, expect.stringContaining(message)]);
      expect(readdirSync(cwd)).toEqual([]);
    }),
  );

  test("refuses a folder that has one of its relays or entries, and names it", () =>
    within(async (cwd) => {
      const sell = ["init", "--from", "lemon-squeezy", "--sell"];
      expect((await runCommand(sell, { cwd })).code).toBe(0);
      const again = await runCommand(sell, { cwd });
      expect([again.code, again.told]).toEqual([1, expect.stringContaining("service/relays/lemon-squeezy.json")]);
      rmSync(join(cwd, "service/relays"), { recursive: true });
      const file = join(cwd, "service/catalog.json");
      const catalog = JSON.parse(readFileSync(file, "utf8"));
      writeFileSync(file, JSON.stringify({ ...catalog, products: { course: { title: "Mine" } } }));
      const taken = await runCommand(sell, { cwd });
      expect([taken.code, taken.told]).toEqual([1, expect.stringContaining("`products.course` exists in")]);
      expect(() => readdirSync(join(cwd, "service/relays"))).toThrow();
      expect((await runCommand([...sell, "--product", "second"], { cwd })).code).toBe(0);
    }));
});
