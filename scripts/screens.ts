/**
 * Takes the pictures of docs/dashboard.md: each room of a shop that ran for eight days, in a browser. With `--all`, every room in light and
 * dark and at three widths, into the folder that is named; to be looked at.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openFullShop } from "../test/kit/full-shop.ts";

const DOCS = "docs/screens";
const HEIGHT = 900;

const all = process.argv.includes("--all");
const folder = all ? (process.argv.at(-1) ?? "") : DOCS;
mkdirSync(folder, { recursive: true });
await using night = await openFullShop();
await night.signIn();
const { page } = night;
const first = async (path: string): Promise<{ id: string }[]> => (await night.api("GET", path)).body.items;
const [dead] = await first("/events?state=dead&limit=1");
const [done] = await first("/events?state=done&relay=checkout&limit=1");
const person = (await first("/persons?limit=1"))[0];

const SCREENS: Readonly<Record<string, string>> = {
  home: "home",
  relays: "relays",
  relay: "relays/checkout",
  definition: "relays/checkout?tab=definition",
  test: "relays/checkout?tab=test",
  history: "relays/checkout?tab=history",
  secrets: "relays/newsletter?tab=secrets",
  events: "events",
  "events-panel": `events?open=${done?.id}`,
  event: `events/${done?.id}`,
  "event-dead": `events/${dead?.id}`,
  calls: "calls",
  people: "people",
  person: `people/${person?.id}`,
  records: "collections",
  rows: "collections/orders",
  "new-collection": "collections?new=invoices&relay=invoices",
  selling: "selling",
  mail: "mail",
  attention: "attention",
  audit: "audit",
  settings: "settings",
};
const LOOKS = process.env.QUICK
  ? [{ width: 1280, scheme: "light" as const }]
  : all
    ? [390, 1280, 1920].flatMap((width) => (["light", "dark"] as const).map((scheme) => ({ width, scheme })))
    : [{ width: 1280, scheme: "light" as const }];

for (const { width, scheme } of LOOKS) {
  await page.setViewportSize({ width, height: HEIGHT });
  await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
  for (const [name, path] of Object.entries(SCREENS)) {
    await page.goto(night.at(path));
    await page.waitForLoadState("load");
    await page
      .locator("main h1")
      .first()
      .waitFor({ timeout: 5_000 })
      .catch(() => console.log(`${path} has no heading`));
    await Bun.sleep(all ? 700 : 1_500);
    const file = all ? `${name}-${width}-${scheme}.png` : `${name}.png`;
    await page.screenshot({ path: join(folder, file), fullPage: all && width < 1_000 });
    console.log(file);
  }
}
if (night.complaints.length > 0) console.log("The console complained:", night.complaints);
