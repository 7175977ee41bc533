/** The output in a terminal: colors, widths, relative times, endings of ids and suggestions. A pipe gets every value in full. */
import { describe, expect, test } from "bun:test";
import { newId, numberedId } from "../../src/base/id.ts";
import { makeCursor, readCursor } from "../../src/base/page.ts";
import { EVENT_STATES } from "../../src/engine/event/event.ts";
import { formatUnknownChoice } from "../../src/interfaces/cli/command.ts";
import { EVENT_COLUMNS, writeOutcome } from "../../src/interfaces/cli/events/text.ts";
import { COMMANDS, GROUPS } from "../../src/interfaces/cli/registry.ts";
import { expandEventId, expandId } from "../../src/interfaces/cli/terminal/id-suffix.ts";
import { findPager, isLong } from "../../src/interfaces/cli/terminal/pager.ts";
import { keepPaint, PIPE, paint, readScreen, type Screen, toneOf } from "../../src/interfaces/cli/terminal/screen.ts";
import { type Column, drawTable } from "../../src/interfaces/cli/terminal/table.ts";
import { addAgo, formatTimes, readMoment } from "../../src/interfaces/cli/terminal/time-text.ts";

const NOW_MS = Date.UTC(2030, 0, 2);
const TTY = { isTTY: true, columns: 100, rows: 30 };

const COLOURS: readonly [rule: string, stream: object, env: Record<string, string>, colour: boolean][] = [
  ["a terminal has colors", TTY, {}, true],
  ["a pipe has none", {}, {}, false],
  ["NO_COLOR turns them off", TTY, { NO_COLOR: "1" }, false],
  ["an empty NO_COLOR has no effect", TTY, { NO_COLOR: "" }, true],
  ["NO_COLOR wins over FORCE_COLOR", TTY, { NO_COLOR: "1", FORCE_COLOR: "1" }, false],
  ["FORCE_COLOR gives a pipe colors", {}, { FORCE_COLOR: "1" }, true],
  ["FORCE_COLOR=0 turns them off", TTY, { FORCE_COLOR: "0" }, false],
  ["CLICOLOR_FORCE gives a pipe colors", {}, { CLICOLOR_FORCE: "1" }, true],
  ["CLICOLOR=0 turns them off", TTY, { CLICOLOR: "0" }, false],
  ["a dumb terminal has none", TTY, { TERM: "dumb" }, false],
];

describe("colors", () => {
  test.each(COLOURS)("%s", (_rule, stream, env, colour) => {
    expect(readScreen(stream, env).colour).toBe(colour);
  });

  test("use red only for failures", () => {
    const red = EVENT_STATES.filter((state) => /31/.test(paint(state, toneOf(state), readScreen(TTY, {}))));
    expect(red).toEqual(["failed", "dead"]);
    expect(["paused", "queued", "revoked", "ignored", "duplicate"].map(toneOf)).toEqual(["wait", "wait", "quiet", "quiet", "quiet"]);
  });

  test("are the only escape sequences that reach a terminal", () => {
    const [red, title, bidi] = ["\u001b[31mred\u001b[0m", "\u001b]0;title\u0007", "\u202egnp"];
    expect(keepPaint(`${red}${title}\u001b[2J${bidi}`)).toBe(`${red}\\u001b]0;title\\u0007\\u001b[2J\\u202egnp`);
  });
});

interface Row {
  id: string;
  at: string;
  state: string;
  name: string;
  about: string;
}

const COLUMNS: readonly Column<Row>[] = [
  { heading: "AT", value: ({ at }) => at },
  { heading: "STATE", value: ({ state }) => state, tone: true },
  { heading: "NAME", value: ({ name }) => name },
  { heading: "ID", value: ({ id }) => id },
  { heading: "ABOUT", value: ({ about }) => about, raw: true },
];
const ROWS: readonly Row[] = [
  { id: numberedId("evt", NOW_MS, 0x1a2f), at: "2030-01-01T23:58:00.000Z", state: "done", name: "checkout-completed", about: "你好世界".repeat(40) },
  {
    id: numberedId("evt", NOW_MS, 2),
    at: "2029-11-01T00:00:00.000Z",
    state: "dead",
    name: "résumé",
    about: "\u001b[31m\u202eevil\nline at 2030-01-01T23:58:00.000Z",
  },
];
const screenOf = (columns: number): Screen => ({ columns, rows: 40, colour: true, clever: true });

describe("tables", () => {
  test.each([40, 80, 120, 200])("fit a terminal of %d columns, and count wide characters by their width", (columns) => {
    const { text, left } = drawTable(COLUMNS, ROWS, { screen: screenOf(columns), nowMs: NOW_MS, uncut: false });
    for (const line of text.split("\n")) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns);
    const plain = Bun.stripANSI(text);
    expect(plain).toContain("2 min ago");
    expect(plain).toContain("00001a2f");
    for (const sign of ["\u001b", "\u202e"]) expect(plain).not.toContain(sign);
    expect(left).toEqual(columns === 40 ? ["ABOUT"] : []);
    if (columns > 40) expect(plain.includes("…")).toBe(true);
  });

  test("show every column of an event on a terminal of 80 columns", () => {
    const event = {
      id: ROWS[0]?.id ?? "",
      createdAt: "2030-01-01T23:18:00.000Z",
      state: "queued",
      relay: { name: "checkout-completed" },
      attempts: 3,
    };
    const rest = { eventType: "checkout.session.completed", preview: "ada@example.com", cameBy: null, reason: "http_error" };
    const waits = { for: "retry", until: "2030-01-02T00:04:00.000Z" };
    const items = [{ ...event, ...rest, waits }] as never[];
    const { text, left } = drawTable(EVENT_COLUMNS, items, { screen: screenOf(80), nowMs: NOW_MS, uncut: false });
    expect(left).toEqual([]);
    expect(Bun.stripANSI(text).split("\n")).toEqual([
      "ARRIVED     STATE   RELAY         ATTEMPTS  ID        ABOUT         REASON",
      "42 min ago  queued  checkout-co…         3  00001a2f  checkout.se…  http_error,…",
    ]);
  });

  test("leave out the last columns before a value is cut to less than ten characters", () => {
    const columns: Column<Row>[] = ["A", "B", "C", "D"].map((heading) => ({ heading, value: ({ name }) => name }));
    const { text, left } = drawTable(columns, ROWS.slice(0, 1), { screen: screenOf(40), nowMs: NOW_MS, uncut: false });
    expect(left).toEqual(["D"]);
    expect(Bun.stripANSI(text).split("\n")[1]).toBe("checkout-co…  checkout-co…  checkout-co…");
  });

  test("do not cut an id or a number", () => {
    const columns: Column<Row>[] = [
      { heading: "AMOUNT", value: () => "1,234,567.00 EUR", right: true },
      { heading: "ID", value: ({ id }) => id },
    ];
    const { text, left } = drawTable(columns, ROWS.slice(0, 1), { screen: screenOf(40), nowMs: NOW_MS, uncut: true });
    expect({ left, row: Bun.stripANSI(text).split("\n")[1] }).toEqual({ left: ["ID"], row: "1,234,567.00 EUR" });
  });

  test("show states in color in a terminal, and full times and ids with --whole", () => {
    const { text } = drawTable(COLUMNS, ROWS, { screen: screenOf(200), nowMs: NOW_MS, uncut: true });
    expect(text).toContain("\u001b[32mdone\u001b[0m");
    expect(text).toContain("\u001b[1;31mdead\u001b[0m");
    expect(text).toContain(ROWS[0]?.id ?? "?");
    expect(text).toContain("2030-01-01T23:58:00.000Z");
  });

  test("show every value in full in a pipe, aligned under its heading, without colors", () => {
    const [one] = ROWS;
    const { text } = drawTable(COLUMNS.slice(0, 4), ROWS.slice(0, 1), { screen: PIPE, nowMs: NOW_MS, uncut: false });
    const head = `AT${" ".repeat(24)}STATE  NAME${" ".repeat(16)}ID`;
    expect(text).toBe(`${head}\n${one?.at}  done   checkout-completed  ${one?.id}`);
  });

  test("show a full sentence, next to the other columns or below them", () => {
    const sentence = "The relay checkout-completed has refused every call since yesterday: paste the sender's new secret.";
    const columns: Column<Row>[] = [
      { heading: "STATE", value: ({ state }) => state },
      { heading: "WHAT", value: () => sentence, wrap: true },
    ];
    for (const width of [30, 40, 80]) {
      const { text } = drawTable(columns, ROWS.slice(0, 1), { screen: screenOf(width), nowMs: NOW_MS, uncut: false });
      for (const line of text.split("\n")) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(width);
      expect(Bun.stripANSI(text).replaceAll(/\s+/g, " ")).toContain(sentence);
    }
  });
});

const TIMES: readonly [at: string, said: string][] = [
  ["2030-01-01T23:59:58.000Z", "just now"],
  ["2030-01-01T23:59:30.000Z", "30 s ago"],
  ["2030-01-01T23:58:00.000Z", "2 min ago"],
  ["2030-01-01T21:00:00.000Z", "3 h ago"],
  ["2029-12-31T00:00:00.000Z", "2 days ago"],
  ["2029-11-30T00:00:00.000Z", "2029-11-30"],
  ["2030-01-02T00:04:00.000Z", "in 4 min"],
];

describe("times", () => {
  test.each(TIMES)("%s is %s", (at, said) => {
    expect(formatTimes(`next try ${at}`, NOW_MS)).toBe(`next try ${said}`);
  });

  test("show the full time and the time since for a single item", () => {
    expect(addAgo("since 2030-01-01T23:58:00.000Z.", NOW_MS)).toBe("since 2030-01-01T23:58:00.000Z (2 min ago).");
  });

  test.each([
    ["24h", NOW_MS - 86_400_000],
    ["90m", NOW_MS - 5_400_000],
    ["7d", NOW_MS - 7 * 86_400_000],
    ["2w", NOW_MS - 14 * 86_400_000],
    ["2030-01-01T12:00:00Z", Date.UTC(2030, 0, 1, 12)],
    ["yesterday", null],
    ["24", null],
    ["h", null],
    ["2030-02-30", null],
    ["2029-02-29T12:00:00Z", null],
    ["2030-01-01T12:00:00", null],
    ["2030-01-01 and more", null],
  ] as const)("%s as --since", (text, ms) => {
    expect(readMoment(text, NOW_MS)).toBe(ms);
  });
});

/** Pages a list of these ids, newest first, as a data directory and a server do. */
const pages = (ids: readonly string[]) => async (limit: number, cursor: string | null) => {
  const from = cursor === null ? 0 : Number(readCursor(cursor));
  const items = ids.slice(from, from + limit).map((id) => ({ id }));
  return { items, next: from + limit < ids.length ? makeCursor(String(from + limit)) : null };
};
/** Pages events by their number. */
const events =
  (...seqs: number[]) =>
  async (limit: number, cursor: string | null) => {
    const below = cursor === null ? Number.MAX_SAFE_INTEGER : Number(readCursor(cursor));
    const found = seqs.filter((seq) => seq < below).sort((one, other) => other - one);
    return { items: found.slice(0, limit).map((seq) => ({ id: numberedId("evt", NOW_MS, seq) })), next: null };
  };

describe("endings of ids", () => {
  const ids = Array.from({ length: 450 }, (_, at) => newId("alt", NOW_MS + at));
  const last = ids[440] ?? "";

  test("resolve to the only id with that ending, wherever it is in the list", async () => {
    expect(await expandId(last.slice(-8), "alerts", pages(ids))).toBe(last);
    expect(await expandId(`…${last.slice(-8).toUpperCase()}`, "alerts", pages(ids))).toBe(last);
  });

  test("refuse an ending that several ids have, and list them", async () => {
    const twins = ["alt_0000000000000000000000000000beef", "alt_1111111111111111111111111111beef"];
    expect(expandId("beef", "alerts", pages(twins))).rejects.toThrow(`2 ids of alerts end in beef (${twins.join(", ")}): write more of the id.`);
  });

  test("leave text that is no ending unchanged", async () => {
    for (const text of [last, "ada@example.com", "beefbeef", "xyz"]) expect(await expandId(text, "alerts", pages(ids))).toBe(text);
  });

  test("find an event by its number, among a million as among three", async () => {
    const id = numberedId("evt", NOW_MS, 0x1a2f);
    expect(await expandEventId("1a2f", events(0x1a2f, 0x3b01, 0xf4240))).toBe(id);
    expect(await expandEventId("00001a2f", events(0x1a2f, 0x31a2f))).toBe(id);
    expect(expandEventId("1a2f", events(0x1a2f, 0x31a2f))).rejects.toThrow("2 ids of events end in 1a2f");
    expect(expandEventId("1a2f", events(0x1a2f, 0x10000000))).rejects.toThrow("Many event ids can end in 1a2f");
    expect(await expandEventId("1a2e", events(0x1a2f))).toBe("1a2e");
  });
});

describe("suggestions", () => {
  test.each([
    ["ded", '--state is "ded": did you mean dead? The values are queued, running, done, failed, dead.'],
    ["frobnicated", '--state is "frobnicated": write one of queued, running, done, failed, dead.'],
  ])("%s", (given, sentence) => {
    expect(formatUnknownChoice("--state", given, EVENT_STATES)).toBe(sentence);
  });
});

describe("the pager", () => {
  test("reads PAGER literally, and uses no pager if it is empty or cat", () => {
    expect(findPager({ PAGER: "most -w" })).toEqual(["most", "-w"]);
    expect([findPager({ PAGER: "" }), findPager({ PAGER: "cat" })]).toEqual([null, null]);
  });

  test("is used for output that is longer than the screen, with wrapped lines counted", () => {
    expect(isLong("a\n".repeat(8), 80, 10)).toBe(false);
    expect(isLong("a\n".repeat(12), 80, 10)).toBe(true);
    expect(isLong("a".repeat(900), 80, 10)).toBe(true);
  });
});

describe("help", () => {
  test("lists every command once in four groups, and each with its summary fits a line of 80 columns", () => {
    expect(GROUPS.map(({ title }) => title)).toEqual(["Get started", "Every day", "Set up", "Operate"]);
    expect(new Set(COMMANDS).size).toBe(COMMANDS.length);
    for (const { words, summary } of COMMANDS) {
      const siblings = COMMANDS.filter((one) => one.words.length > 1 && one.words[0] === words[0]);
      const width = Math.max(...siblings.map((one) => one.words.join(" ").length));
      expect({ words, long: "  relay ".length + width + 2 + summary.length > 80 }).toEqual({ words, long: false });
    }
  });
});

test("prints an event's outcome on one line, without a period in its middle when a URL answered", () => {
  const message = "The URL answered 503: only a 2xx status is a success.";
  const failed = { type: "call_url", outcome: "failed", code: "http_error", message, answer: { status: 503, body: "" } };
  const event = { id: "evt_1", state: "queued", reason: "http_error", runs: [{ results: [failed] }] } as never;
  expect(writeOutcome(event)).toBe(
    "evt_1 is queued (http_error); call_url failed: http_error: The URL answered 503: only a 2xx status is a success: answer 503",
  );
});
