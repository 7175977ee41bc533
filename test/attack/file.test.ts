/** Hostile definition files. Each file in the folder gets one message at once, and harms no other file. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { showControls } from "../../src/base/log.ts";
import { listDefinitionFiles, readDefinitionFile } from "../../src/operator/sync/definition-file.ts";
import { parseFileText } from "../../src/operator/sync/json-file.ts";
import { readLocalSecrets } from "../../src/platform/secret/local-secrets.ts";
import { makePipe } from "../kit/pipe.ts";

let serviceDir: string;
let relays: string;

beforeAll(() => {
  serviceDir = mkdtempSync(join(tmpdir(), "relay-hostile-"));
  relays = join(serviceDir, "relays");
  mkdirSync(relays);
  mkdirSync(join(relays, "folder.json"));
});

afterAll(() => rmSync(serviceDir, { recursive: true }));

const definition = (name: string): string =>
  JSON.stringify({
    name,
    trigger: { kind: "schedule", every: "1d" },
    actions: [{ type: "call_url", url: "https://example.com/" }],
  });

function makeLarge(path: string): void {
  writeFileSync(path, "");
  truncateSync(path, 100 * 2 ** 20);
}

const FILES: readonly [name: string, make: (path: string) => void, says: RegExp][] = [
  ["a file of 100 MB", (path) => makeLarge(path), /104857600 bytes long: keep it under 1 MiB/],
  ["a pipe nobody writes to", makePipe, /no file but a pipe/],
  ["a link to a device without end", (path) => symlinkSync("/dev/zero", path), /no file but a pipe/],
  ["a link to itself", (path) => symlinkSync(path, path), /cannot be read \(ELOOP/],
  ["a link to nothing", (path) => symlinkSync("/nowhere/at/all", path), /There is no file/],
  ["bytes that are no UTF-8", (path) => writeFileSync(path, Buffer.from('{"name":"\xff\xfe"}', "latin1")), /not text in UTF-8/],
  ["nothing", (path) => writeFileSync(path, ""), /is empty/],
  ["a hundred thousand brackets", (path) => writeFileSync(path, "[".repeat(100_000)), /at most 64 levels/],
  ["a name with a path in it", (path) => writeFileSync(path, definition("../../evil")), /`name` is not in the right form/],
  ["another relay's name", (path) => writeFileSync(path, definition("other")), /give both the same name/],
  ["a name twice", (path) => writeFileSync(path, `{"name":"x",${definition("a-name").slice(1)}`), /is here twice/],
  ["__proto__", (path) => writeFileSync(path, '{"__proto__":{"name":"a-name"}}'), /`__proto__` is a reserved name/],
];

test.each(FILES)("%s", async (name, make, says) => {
  const path = join(relays, `file-${FILES.findIndex(([one]) => one === name)}.json`);
  make(path);
  const read = await readDefinitionFile(path);
  expect(read.ok ? "read" : read.problems.map(({ message }) => message).join("\n")).toMatch(says);
});

test("a good file among them is read, and a folder that is named like a file is ignored", async () => {
  writeFileSync(join(relays, "good.json"), definition("good"));
  expect((await readDefinitionFile(join(relays, "good.json"))).ok).toBe(true);
  expect(await listDefinitionFiles(serviceDir)).not.toContain(join(relays, "folder.json"));
});

/** Counts the characters that searches and slices of strings go through while the work runs. */
function countSearched(work: () => void): number {
  const { indexOf, lastIndexOf, slice } = String.prototype;
  let searched = 0;
  String.prototype.indexOf = function (this: string, part, from = 0) {
    const at = indexOf.call(this, part, from);
    searched += (at < 0 ? this.length : at) - from;
    return at;
  };
  String.prototype.lastIndexOf = function (this: string, part, from = Number.POSITIVE_INFINITY) {
    const at = lastIndexOf.call(this, part, from);
    searched += Math.min(from, this.length) - at;
    return at;
  };
  String.prototype.slice = function (this: string, ...ends) {
    const part = slice.apply(this, ends);
    searched += part.length;
    return part;
  };
  try {
    work();
  } finally {
    Object.assign(String.prototype, { indexOf, lastIndexOf, slice });
  }
  return searched;
}

test.each([
  ["on one line", ""],
  ["on a line each", "\n"],
])("seventy thousand fields %s get their positions in one pass over the text", (_name, gap) => {
  const text = `{${Array.from({ length: 70_000 }, (_, at) => `"k${at}":${gap}1`).join(",")}}`;
  let read = parseFileText({ text: "{}" });
  const searched = countSearched(() => {
    read = parseFileText({ text });
  });
  expect(read.ok ? read.places.places.get("k69999") : null).toEqual(gap === "" ? { line: 1, column: text.length - 1 } : { line: 70_001, column: 1 });
  // A search backward for each field would go through the text thousands of times.
  expect(searched / text.length).toBeLessThan(4);
});

test("a secrets file that is a pipe or a device is refused with a message", async () => {
  for (const make of [makePipe, (path: string) => symlinkSync("/dev/zero", path)]) {
    const path = join(serviceDir, ".secrets.json");
    make(path);
    const refused = await readLocalSecrets(serviceDir).catch((error: Error) => error.message);
    expect(refused).toContain("is not a file of at most 1 MiB");
    rmSync(path);
  }
});

test("control characters in a name never reach the terminal, and JSON keeps them", () => {
  const name = "red\u001b[31m \u009b2J\u0007\u0000 end";
  const shown = showControls(JSON.stringify({ name }));
  expect(shown).not.toMatch(/\p{Cc}/u);
  expect(JSON.parse(shown)).toEqual({ name });
  expect(showControls("two\tcolumns\nand lines")).toBe("two\tcolumns\nand lines");
});
