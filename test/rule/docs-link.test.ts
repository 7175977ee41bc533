/** Every link on every page of the documentation leads to an existing page and anchor. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { listCodes } from "../../src/base/code/code.ts";
import { readManual } from "../../src/boot/documentation.ts";
import { ROUTES } from "../../src/interfaces/api/route-list.ts";
import { listLinks } from "../../src/interfaces/docs/html.ts";
import { splitSections } from "../../src/interfaces/docs/page.ts";
import { SCREENS } from "../../src/interfaces/docs/screen.ts";
import { ACTIONS } from "../../src/rules/action/registry.ts";
import { DOCS, docsOfField } from "../../web/component/docs-link.ts";
import { PROJECT_ROOT } from "../house/source-tree.ts";

const docs = readManual();
const addresses = new Set([
  "/docs",
  "/docs/search",
  "/docs/definition.schema.json",
  "/docs/catalog.schema.json",
  "/openapi.json",
  "/changes.txt",
  ...Object.keys(SCREENS).map((name) => `/docs/screens/${name}`),
  ...docs.pages.flatMap((page) => splitSections(page).map(({ anchor }) => `/docs/${page.id}${anchor === "" ? "" : `#${anchor}`}`)),
]);

test("every link on every page leads to an existing page and anchor", () => {
  const links = docs.pages.flatMap((page) =>
    listLinks(page.text).map((link) => ({ page: page.id, link: link.startsWith("#") ? `/docs/${page.id}${link}` : link })),
  );
  const broken = links.filter(({ link }) => !/^https?:\/\//.test(link) && !addresses.has(link));
  expect(broken).toEqual([]);
  expect(links.length).toBeGreaterThan(100);
});

test("every route is on a page of the API, and every file of docs/ is a page", () => {
  const told = docs.pages.filter(({ parent }) => parent === "api").flatMap((page) => splitSections(page).slice(1));
  expect(told.length).toBe(ROUTES.length);
  const files = readdirSync(join(PROJECT_ROOT, "docs")).filter((name) => name.endsWith(".md"));
  expect(files.filter((name) => docs.find(name.slice(0, -".md".length)) === null)).toEqual([]);
});

test("every link of the dashboard leads to an existing page and anchor", () => {
  const fields = [
    "name",
    "trigger.kind",
    "trigger.verify.header",
    "trigger.verify.signedPayload",
    "trigger.map.order",
    "trigger.when.event_type",
    "trigger.customer.id",
  ];
  const links = [
    ...Object.values(DOCS),
    ...[...fields, "trigger.trustUnsignedEvents", "actions"].map((field) => docsOfField(field, () => null)),
    docsOfField("actions.0", () => null),
    ...ACTIONS.map(({ type }) => docsOfField("actions.0.type", () => type)),
  ];
  expect(links.filter((link) => !addresses.has(link))).toEqual([]);
});

test("every code that a refusal, a result or an alert links to has its page", () => {
  expect(listCodes().filter((code) => docs.find(`errors/${code}`) === null)).toEqual([]);
});

test("every page says in one sentence what it is about, and a search for its title finds it", () => {
  for (const { id, title, summary } of docs.pages) {
    expect([id, summary]).toEqual([id, expect.stringMatching(/^[A-Z`0-9].*[.:]$/s)]);
    expect([id, docs.search(title).some(({ page }) => page.id === id)]).toEqual([id, true]);
  }
});
