/**
 * Takes the screenshots of docs/dashboard.md in a browser: pages of a shop that ran for eight days. With `--all FOLDER` it takes every page in
 * light and dark at three widths, for a review of all of them.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openFullShop } from "../test/kit/full-shop.ts";

const DOCS = "docs/screens";
const HEIGHT = 900;

const all = process.argv.includes("--all");
const folder = all ? (process.argv.at(-1) ?? "") : DOCS;
mkdirSync(folder, { recursive: true });
await using visit = await openFullShop();
await visit.signIn();
const { page } = visit;
const first = async (path: string): Promise<{ id: string }[]> => (await visit.api("GET", path)).body.items;
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
  requests: "requests",
  people: "people",
  person: `people/${person?.id}`,
  records: "records",
  rows: "records/orders",
  "new-collection": "records?new=invoices&relay=invoices",
  catalog: "catalog",
  mail: "mail",
  alerts: "alerts",
  audit: "audit-log",
  settings: "settings",
};
type Look = readonly [name: string, width: number, scheme: "light" | "dark"];
/** The pages that docs/dashboard.md shows. */
const SHOWN =
  "home relay definition test events-panel event-dead requests person rows catalog mail audit settings".split(
    " ",
  );
const LOOKS: Look[] = all
  ? [390, 1280, 1920].flatMap((width) =>
      (["light", "dark"] as const).flatMap((scheme) =>
        Object.keys(SCREENS).map((name): Look => [name, width, scheme]),
      ),
    )
  : [...SHOWN.map((name): Look => [name, 1280, "light"]), ["home", 390, "dark"]];

/** Saves the page as lossless WebP, which is a third of its size as PNG. The executable contains these files. */
async function shoot(name: string, fullPage: boolean): Promise<void> {
  const png = await page.screenshot({ fullPage });
  await Bun.write(join(folder, `${name}.webp`), await new Bun.Image(png).webp({ lossless: true }).bytes());
  console.log(`${name}.webp`);
}

for (const [name, width, scheme] of LOOKS) {
  await page.setViewportSize({ width, height: HEIGHT });
  await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
  await page.goto(visit.at(SCREENS[name] ?? name));
  await page.locator("main h1").first().waitFor();
  // Some parts load after the heading.
  await Bun.sleep(1_000);
  const narrow = width < 1_000 ? "-narrow" : "";
  await shoot(all ? `${name}-${width}-${scheme}` : `${name}${narrow}`, all && width < 1_000);
}
if (!all) {
  await page.setViewportSize({ width: 1280, height: HEIGHT });
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto(visit.at("home"));
  await page.keyboard.press("Control+k");
  await page.keyboard.type("check");
  await Bun.sleep(1_000);
  await shoot("find", false);
}
if (visit.complaints.length > 0) console.log("The console complained:", visit.complaints);
