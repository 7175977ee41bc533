import { afterAll, expect, test } from "bun:test";
import { openDashboard } from "../kit/browser.ts";
import { readHostileEvent, sendHostileEvent } from "../kit/hostile-event.ts";
import { answerHostile, HOSTILE } from "../kit/hostile-payload.ts";

const dashboard = await openDashboard();
const { page, running, at, complaints } = dashboard;
afterAll(() => dashboard[Symbol.asyncDispose]());

let eventId = "";
const readEvent = (): Promise<object> => readHostileEvent(running, eventId);

test("setup: a relay whose warnings and results quote the payload", async () => {
  eventId = await sendHostileEvent(running);
  await page.goto(at(`events/${eventId}`));
  await page.getByRole("group", { name: "Payload" }).waitFor();
});

test("a payload never becomes markup", async () => {
  const payload = page.getByRole("group", { name: "Payload" });
  expect(await payload.innerText()).toContain("<img src=x onerror=");
  expect(await page.locator("img, main script, [onmouseover], [onerror]").count()).toBe(0);
  expect(await page.evaluate(() => (globalThis as { broken?: number }).broken ?? null)).toBeNull();
});

test("right-to-left letters do not move quotes, signs and escapes", async () => {
  const turned = () =>
    [...document.querySelectorAll("main bdi, main .escaped")].filter((one) => {
      const { direction, unicodeBidi } = getComputedStyle(one);
      return direction !== "ltr" || unicodeBidi !== "isolate";
    }).length;
  expect(await page.locator("main .escaped").count()).toBeGreaterThan(0);
  expect(await page.evaluate(turned)).toBe(0);
});

test("integers beyond 2^53 show every digit", async () => {
  const text = await page.getByRole("group", { name: "Payload" }).innerText();
  expect(text).toContain("id: 9007199254740993");
  expect(text).toContain("big: 123456789012345678901234567890");
  expect(text).toContain("negative: -9223372036854775808");
});

test("characters that reverse or hide text are shown as escapes, and emoji as they are", async () => {
  const payload = page.getByRole("group", { name: "Payload" });
  const escapes = await payload.locator(".escaped").allInnerTexts();
  expect(escapes).toContain("\\u202e");
  expect(escapes).toContain("\\u200b");
  expect(escapes).not.toContain("\\u200d");
  const text = (await payload.textContent()) ?? "";
  expect(text).not.toContain("\u202e");
  expect(text).toContain("👩‍👩‍👧");
});

test("deeply nested values are folded until they are opened", async () => {
  const folded = page.getByRole("group", { name: "Payload" }).locator('.json-fold[aria-expanded="false"]');
  const drawn = page.getByRole("group", { name: "Payload" }).locator(".json-branch");
  expect(await folded.count()).toBe(1);
  const before = await drawn.count();
  expect(before).toBeLessThan(10);
  await folded.click();
  expect(await drawn.count()).toBe(before + 1);
  expect(await folded.count()).toBe(1);
});

test("a text of 5 MB is truncated, and shown completely on request", async () => {
  const long = "x".repeat(5_000_000);
  const event = { ...(await readEvent()), id: "evt_long", payload: { long }, warnings: ["<b>markup</b>"] };
  await page.route("**/api/**/events/evt_long", (route) => route.fulfill({ json: { event } }));
  await page.goto(at("events/evt_long"));
  const payload = page.getByRole("group", { name: "Payload" });
  const show = payload.getByRole("button", { name: "Show all 5,000,000 characters" });
  await show.waitFor();
  const shown = (): Promise<number> => payload.evaluate((tree) => tree.textContent?.length ?? 0);
  expect(await shown()).toBeLessThan(1_200);
  await show.click();
  await show.waitFor({ state: "detached" });
  expect(await shown()).toBeGreaterThan(5_000_000);
  expect(await page.locator("main b", { hasText: "markup" }).count()).toBe(0);
});

test("an answer nested deeper than the stack is still shown", async () => {
  const depth = 5_000;
  const payload = `{"id":12345678901234567890,"deep":${"[".repeat(depth)}${"]".repeat(depth)}}`;
  const event = JSON.stringify({ ...(await readEvent()), id: "evt_deep", payload: null });
  const body = `{"event":${event.replace('"payload":null', () => `"payload":${payload}`)}}`;
  await page.route("**/api/**/events/evt_deep", (route) => route.fulfill({ contentType: "application/json", body }));
  await page.goto(at("events/evt_deep"));
  await page.getByText("12345678901234567890").waitFor();
});

test("all of these together become no markup, and the panel and the page stay usable", async () => {
  const event = JSON.stringify({ ...(await readEvent()), payload: null, warnings: [HOSTILE.html] });
  await page.addInitScript(answerHostile, { id: eventId, event, texts: HOSTILE });
  // Tests the side panel, and the page on a screen too narrow for a panel. The benchmark measures the speed.
  for (const [key, width] of [
    ["j", 1_280],
    ["Enter", 1_100],
  ] as const) {
    await page.setViewportSize({ width, height: 860 });
    await page.goto(at("events"));
    await page.locator("main [data-row]").first().focus();
    await page.keyboard.press(key);
    await page.getByRole("group", { name: "Payload" }).getByRole("button", { name: "event: 10,008 fields" }).waitFor();
    const drawn = await page.evaluate(() => document.querySelectorAll("main *").length);
    expect(drawn).toBeLessThan(1_500);
  }
  await page.getByRole("button", { name: "event: 10,008 fields" }).click();
  await page.getByRole("button", { name: "Show more of 10,008" }).waitFor();
  await page.getByLabel("Find in the payload").fill("key 9999");
  await page.getByText("2 found; click one to copy its path.").waitFor();
  await page.getByRole("button", { name: "Raw" }).click();
  await page.locator("pre.preview").waitFor();
  expect(await page.locator("main :is(img, script, b[onclick], [onload], [onmouseover], [onerror])").count()).toBe(0);
  expect(await page.locator("svg[onload], img[src='x']").count()).toBe(0);
  expect(await page.evaluate(() => (globalThis as { broken?: number }).broken ?? null)).toBeNull();
  expect(await page.locator("main").textContent()).not.toContain("\u202e");
  expect(await page.title()).not.toContain("\u202e");
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
});

/** Contains markup, a direction override and a text without line breaks. The names have the maximum length. */
const WIDE = `<img src=x onerror="globalThis.broken=5">\u202e${"W".repeat(120)}`;
const LONGEST = `w${"w".repeat(62)}`;
const ADDRESS = `${"a".repeat(64)}@${"b".repeat(60)}.example`;

/** Writes hostile text to every place that a stranger, a sender or a careless owner can write to. */
async function writeHostile(): Promise<{ person: string; record: string }> {
  const api = async (method: string, path: string, body: object) => {
    const answer = await running.api(method, path, body, "local");
    expect([path, answer.status < 300 ? "ok" : answer.body]).toEqual([path, "ok"]);
    return answer.body;
  };
  const { person } = await api("POST", "/persons", { email: ADDRESS });
  const at = `/persons/${person.id}`;
  await api("PATCH", at, { attributes: { [WIDE.slice(0, 60)]: WIDE, nested: { html: WIDE } } });
  await api("PUT", `${at}/tokens`, { token: WIDE.replace("\u202e", "") });
  await api("POST", "/collections", { name: LONGEST, kind: "shared", fields: { [LONGEST]: { type: "text" }, json: { type: "json" } } });
  const { record } = await api("POST", `/collections/${LONGEST}/records`, { data: { [LONGEST]: WIDE, json: { [WIDE]: WIDE } } });
  await api("PUT", `/collections/${LONGEST}/records/${record.id}`, { data: { [LONGEST]: HOSTILE.attribute, json: { [HOSTILE.html]: WIDE } } });
  await api("PUT", `/products/${LONGEST}`, { title: WIDE });
  await api("PUT", `/plans/p${LONGEST.slice(1)}`, { title: WIDE });
  await api("PUT", `/access/${LONGEST}`, { title: WIDE });
  await api("POST", `${at}/grants`, { entitlement: `access:${LONGEST}`, reason: WIDE });
  await api("POST", `${at}/credits`, { amount: 1, reason: WIDE, key: "k" });
  const trigger = { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id", html: "html", [LONGEST]: "html" } };
  const actions = [{ type: "grant_credits", amount: 1, reason: WIDE }];
  await api("POST", "/relays", { definition: { name: LONGEST, trigger, actions } });
  const headers = { "content-type": WIDE.slice(0, 30), "webhook-id": `<b>${"i".repeat(200)}`, "webhook-signature": HOSTILE.attribute };
  await running.hook(LONGEST, { headers, body: `{"id":"x","html":${JSON.stringify(WIDE)}}` });
  await running.hook("%3Cimg%20src=x%20onerror=alert(1)%3E", { headers, body: "{}" });
  await running.hook(`${LONGEST}w`, { headers, body: "{}" });
  const values = { person: person.id, text: WIDE, nowMs: Date.now(), target: `relay:${LONGEST}` };
  await running.service.store.write("dashboard", async (tx) => {
    const environment = (await tx.get<{ id: number }>("SELECT id FROM environment WHERE name = 'local'"))?.id ?? 0;
    const own = { ...values, environment };
    for (const [into, columns] of [
      [
        "email (id, environment_id, person_id, recipient, sender, kind, subject, text, state, message, created_at)",
        `'eml_${"0".repeat(32)}', $environment, $person, $text, $text, 'event', $text, $text, 'failed', $text, $nowMs`,
      ],
      [
        "problem (id, environment_id, code, target, message, raised_at)",
        `'prb_${"0".repeat(32)}', $environment, 'template_empty', $target, $text, $nowMs`,
      ],
      [
        "alert (id, environment_id, code, target, message, at, last_at)",
        `'alr_${"0".repeat(32)}', $environment, 'relay_failed', $target, $text, $nowMs, $nowMs`,
      ],
    ] as const) {
      const sql = `INSERT INTO ${into} VALUES (${columns})`;
      await tx.run(sql, Object.fromEntries(Object.entries(own).filter(([name]) => sql.includes(`$${name}`))));
    }
    await tx.run("UPDATE session SET agent = ?1", WIDE);
    await tx.run("UPDATE api_key SET name = ?1", WIDE.slice(0, 100));
  });
  return { person: person.id, record: record.id };
}

/** Lists pages, and the control that opens more of each. */
const ROOMS: [path: string, opens?: string][] = [
  ["home"],
  ["relays"],
  [`relays/${LONGEST}`],
  [`relays/${LONGEST}?tab=definition`],
  [`relays/${LONGEST}?tab=test`],
  [`relays/${LONGEST}?tab=history`],
  [`relays/${LONGEST}?tab=secrets`],
  ["events"],
  ["calls"],
  ["people"],
  ["people/{person}"],
  ["people/%E2%80%AEmoc.elpmaxe@ada"],
  ["collections"],
  [`collections/${LONGEST}`],
  [`collections/${LONGEST}/{record}`],
  ["selling"],
  ["selling?tab=plans"],
  ["selling?tab=access"],
  ["selling?tab=receipts"],
  ["mail", "main [data-row]"],
  ["attention"],
  ["audit", "main .audit-row [data-row]"],
  ["settings"],
  ["settings?tab=keys"],
  ["settings?tab=sessions"],
];

test("no text from outside becomes markup on any page, or makes it wider than 360 px", async () => {
  const ids = await writeHostile();
  await page.setViewportSize({ width: 360, height: 780 });
  const found: string[] = [];
  let shown = 0;
  for (const [path, opens] of ROOMS) {
    await page.goto(at(path.replace("{person}", ids.person).replace("{record}", ids.record)));
    await page.locator("main h1").first().waitFor();
    await page.waitForFunction(() => document.querySelector("main [aria-busy]") === null);
    if (opens !== undefined) await page.locator(opens).first().click();
    const seen = await page.evaluate(() => {
      const foreign = document.querySelectorAll("main :is(img, script, iframe), [onerror], [onmouseover], b[onclick]");
      const text = document.body.textContent ?? "";
      const wide = [...document.querySelectorAll("main *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1);
      const width = document.documentElement.scrollWidth;
      return {
        faults: [
          ...[...foreign].map((one) => `markup: ${one.outerHTML.slice(0, 80)}`),
          ...(text.includes("\u202e") || document.title.includes("\u202e") ? ["it turns text"] : []),
          ...[...document.querySelectorAll("[aria-label], [title]")]
            .flatMap((one) => [one.ariaLabel ?? "", one.getAttribute("title") ?? ""])
            .filter((words) => words.includes("\u202e"))
            .map((words) => `a label turns text: ${words.slice(0, 40)}`),
          ...(width > innerWidth ? [`${width} wide: ${wide[0]?.tagName} ${wide[0]?.className}`] : []),
        ],
        isShown: /onerror=|w{62}/.test(text),
      };
    });
    if (process.env.RELAY_SHOTS !== undefined)
      await page.screenshot({ path: `${process.env.RELAY_SHOTS}/${path.replace(/\W+/g, "-").slice(-40)}.png`, fullPage: true });
    found.push(...seen.faults.map((fault) => `${path}: ${fault}`));
    if (seen.isShown) shown++;
    else if (process.env.RELAY_SHOTS !== undefined) console.log("shows none of it:", path);
  }
  expect(found).toEqual([]);
  expect(shown).toBeGreaterThan(ROOMS.length - 6);
  expect(await page.evaluate(() => (globalThis as { broken?: number }).broken ?? null)).toBeNull();
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
