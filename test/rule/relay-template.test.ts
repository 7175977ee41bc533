/** The templates for a new relay are valid before a user changes them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { writeJson } from "../../src/base/json.ts";
import { checkCatalogFile } from "../../src/operator/sync/catalog-file.ts";
import { parseFileText } from "../../src/operator/sync/json-file.ts";
import { checkDefinition } from "../../src/rules/relay/definition.ts";
import type { Definition } from "../../src/rules/relay/definition-shape.ts";
import { RELAY_TEMPLATES } from "../../src/rules/relay/relay-template.ts";
import { findSender } from "../../src/rules/senders/registry.ts";
import type { Sender } from "../../src/rules/senders/sender.ts";
import { startDefinition } from "../../src/rules/senders/sender-start.ts";
import { listBlocks } from "../kit/docs-block.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

let running: RunningService;
beforeAll(async () => {
  running = await startRunningService();
});
afterAll(() => running[Symbol.asyncDispose]());

describe("a template", () => {
  for (const template of RELAY_TEMPLATES) {
    test(`${template.name} is a valid definition of that name, and its catalog a valid catalog`, () => {
      expect(checkDefinition(template.definition)).toMatchObject({ definition: { name: template.name } });
      expect(checkCatalogFile(parseFileText({ text: writeJson(template.catalog) }))).toMatchObject({ ok: true });
    });

    test(`${template.name} and its catalog can be saved unchanged, and nothing is missing then`, async () => {
      const { definition, catalog } = template;
      const trigger = definition.trigger;
      const isOwn = trigger.kind === "receiver" && trigger.verify.scheme !== "processor";
      const saved = await running.api("POST", "/relays", { definition, ...(isOwn ? { secret: "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS" } : {}) });
      expect(saved.status).toBe(201);
      for (const [name, product] of Object.entries(catalog.products ?? {})) {
        expect((await running.api("PUT", `/products/${name}`, product)).status).toBe(200);
      }
      const checked = await running.api("POST", "/relays/validate", { definition });
      expect(checked.body.problems).toEqual([]);
      const trusts = trigger.kind === "receiver" && trigger.trustUnsignedEvents === true;
      expect(checked.body.warnings).toMatchObject(
        trusts ? [{ code: "unsigned_events", message: expect.stringContaining("trustUnsignedEvents") }] : [],
      );
      await running.api("DELETE", `/relays/${template.name}`);
      for (const name of Object.keys(catalog.products ?? {})) await running.api("DELETE", `/products/${name}`);
    });
  }

  test("of a paid checkout equals the one on the page about selling, and its refund is only for a whole payment", async () => {
    const page = await Bun.file(join(import.meta.dir, "..", "..", "docs", "people-and-selling.md")).text();
    const shown = listBlocks("people-and-selling", page).filter(({ tag }) => tag === "json relay");
    const [checkout, refund, free] = shown.map(({ text }) => JSON.parse(text) as Definition);
    const definitionOf = (name: string) => RELAY_TEMPLATES.find((one) => one.name === name)?.definition;
    expect(checkout?.trigger).toEqual(definitionOf("checkout")?.trigger);
    expect(free).toEqual(definitionOf("checkout-free"));
    expect(refund?.trigger).toMatchObject({ map: { whole: "data.object.refunded" }, when: { event_type: "charge.refunded", whole: "true" } });
  });

  test("of a paid checkout, its refund and Stripe's preset match one product, also in the docs", async () => {
    const page = await Bun.file(join(import.meta.dir, "..", "..", "docs", "people-and-selling.md")).text();
    const shown = listBlocks("people-and-selling", page).filter(({ tag }) => tag.startsWith("json relay"));
    const checkouts = RELAY_TEMPLATES.filter(({ name }) => name.startsWith("checkout")).map(({ definition }) => definition);
    const preset = startDefinition(findSender("stripe") as Sender) as unknown as Definition;
    for (const { name, trigger } of [...shown.map(({ text }) => JSON.parse(text) as Definition), ...checkouts, preset]) {
      if (trigger.kind !== "receiver") throw new Error(`${name} is no receiver.`);
      expect([name, trigger.map.product, trigger.when?.product]).toEqual([name, "data.object.metadata.product", "premium"]);
    }
  });

  test("has a unique name", () => {
    expect(new Set(RELAY_TEMPLATES.map(({ name }) => name)).size).toBe(RELAY_TEMPLATES.length);
  });

  test("of an app-store purchase uses fulfil_product, of its expiry revoke_access, both by person_token", () => {
    const [purchase, expiry] = ["store-purchase", "store-expiry"].map((name) => RELAY_TEMPLATES.find((one) => one.name === name));
    expect(purchase?.definition.actions.map(({ type }) => type)).toEqual(["fulfil_product"]);
    expect(expiry?.definition.actions.map(({ type }) => type)).toEqual(["revoke_access"]);
    for (const one of [purchase, expiry]) {
      const trigger = one?.definition.trigger;
      expect(trigger?.kind === "receiver" && Object.hasOwn(trigger.map, "person_token")).toBe(true);
    }
  });

  test("is available without authentication", async () => {
    const response = await fetch(`${running.service.url}/api/relay-templates`);
    expect(response.status).toBe(200);
    const { items } = (await response.json()) as { items: unknown };
    expect(items).toEqual(JSON.parse(writeJson(RELAY_TEMPLATES)));
  });
});
