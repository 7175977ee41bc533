/**
 * Tests `relay files …` on a data directory and on a server: upload, list, download and delete. A download overwrites no file, and each error says
 * what to do.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { COMMAND_PLACES, runAt } from "../kit/cli-place.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const ALL_BYTES = Uint8Array.from({ length: 70_000 }, (_, at) => at % 256);
const MB = 1024 * 1024;
let running: RunningService;
let folder: string;

beforeEach(async () => {
  running = await startRunningService();
  folder = mkdtempSync(join(tmpdir(), "relay-files-"));
  writeFileSync(join(folder, "a picture.png"), ALL_BYTES);
});
afterEach(async () => {
  await running[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const listed = async () => (await running.api("GET", "/files")).body.items;
const audited = async () => (await running.api("GET", `/audit?target=file:${(await listed())[0]?.id}`)).body.items;

describe.each(COMMAND_PLACES)("%s", (place) => {
  const run = async (words: readonly string[], input = "", more = {}) => {
    const { code, told, said } = await runAt(place, running, ["files", ...words], input, more);
    return { code, said, told: told.trim() };
  };
  const keep = async (...words: string[]) => {
    const { said } = await run(["upload", ...words, "--json"]);
    return JSON.parse(said).file as { id: string; name: string; bytes: number; mediaType: string };
  };

  test("uploads a file, lists it, and downloads the same bytes", async () => {
    const kept = await keep(join(folder, "a picture.png"));
    expect(kept).toMatchObject({ name: "a picture.png", bytes: 70_000, mediaType: "image/png" });
    const { said } = await run(["list"]);
    expect(said.split("\n").map((line) => line.split(/ {2,}/).slice(1))).toEqual([
      ["ID", "BYTES", "TYPE", "NAME"],
      [kept.id, "70000", "image/png", "a picture.png"],
    ]);
    const to = join(folder, "back.png");
    const got = await run(["download", kept.id.slice(-8), "--to", to]);
    expect([got.code, got.told]).toEqual([0, `a picture.png is written to ${to} (70,000 bytes).`]);
    expect(new Uint8Array(readFileSync(to))).toEqual(ALL_BYTES);
    expect(await audited()).toMatchObject([
      ...(place === "beside the server"
        ? [{ action: "file.uploaded", actor: "command line", after: { mediaType: "image/png", bytes: 70_000 } }]
        : []),
    ]);
  });

  test("does not overwrite an existing file", async () => {
    const { id } = await keep(join(folder, "a picture.png"));
    const to = join(folder, "mine.txt");
    writeFileSync(to, "mine");
    const got = await run(["download", id, "--to", to]);
    expect([got.code, got.told]).toEqual([1, expect.stringContaining(`${to} exists already, so nothing was written: name another file with --to.`)]);
    expect(readFileSync(to, "utf8")).toBe("mine");
    const nowhere = await run(["download", id, "--to", join(folder, "no", "such", "folder")]);
    expect([nowhere.code, nowhere.told]).toEqual([1, expect.stringContaining("cannot be written (ENOENT): name another file with --to.")]);
  });

  test("stores standard input under the given name, and downloads it under that name without --to", async () => {
    const { code, told } = await run(["upload", "--name", "note.txt"], "hello\n");
    const [file] = await listed();
    expect([code, told]).toEqual([
      0,
      `note.txt is stored as ${file.id} (6 bytes, text/plain). To attach it to a record, write this id into a field of type file.`,
    ]);
    const here = join(running.dataDir, "note.txt");
    expect(existsSync(here)).toBe(false);
    expect((await run(["download", file.id])).told).toContain(`note.txt is written to ${here}`);
    expect(readFileSync(here, "utf8")).toBe("hello\n");
  });

  const REFUSED: [what: string, words: (folder: string) => string[], code: number, told: string][] = [
    ["a missing file", (at) => ["upload", join(at, "nothing")], 1, "nothing: name a file that exists."],
    ["a folder", (at) => ["upload", at], 1, "There is no file "],
    ["standard input without a name", () => ["upload"], 2, "--name is missing, and standard input has no name: add --name note.txt, or name a file."],
    ["a name with a slash", (at) => ["upload", join(at, "a picture.png"), "--name", "a/b"], 1, "`name` is not a file name"],
    [
      "an invalid media type",
      (at) => ["upload", join(at, "a picture.png"), "--type", "picture"],
      1,
      "`mediaType` is not a media type: use one such as image/png.",
    ],
    ["a download of an unknown file", () => ["download", "fil_nothing"], 1, "No file with this id exists in this environment"],
    [
      "a deletion of an unknown file",
      () => ["delete", "fil_nothing", "--confirm", "fil_nothing"],
      1,
      "No file with this id exists in this environment",
    ],
  ];
  test.each(REFUSED)("%s is rejected", async (_what, words, code, told) => {
    const refused = await run(words(folder), "x");
    expect([refused.code, refused.told]).toEqual([code, expect.stringContaining(told)]);
    expect(await listed()).toEqual([]);
  });

  test("rejects an oversized file before it sends it", async () => {
    writeFileSync(join(folder, "large.bin"), new Uint8Array(5 * MB + 1));
    const refused = await run(["upload", join(folder, "large.bin")]);
    expect([refused.code, refused.told]).toEqual([
      1,
      expect.stringContaining("The file has 5242881 bytes, over the limit of 5242880: store larger files elsewhere and save their address."),
    ]);
    expect(await listed()).toEqual([]);
  });

  test("deletes a file after a confirmation, and never while a record refers to it", async () => {
    const { id } = await keep(join(folder, "a picture.png"));
    await running.api("POST", "/collections", { name: "orders", kind: "shared", fields: { bill: { type: "file" } } });
    const { record } = (await running.api("POST", "/collections/orders/records", { data: { bill: id } })).body;
    const held = await run(["delete", id, "--confirm", id]);
    expect([held.code, held.told]).toEqual([
      1,
      expect.stringContaining(
        `The record ${record.id} of orders uses this file: change or delete the record first, with relay records delete orders ${record.id}.`,
      ),
    ]);
    await running.api("DELETE", `/collections/orders/records/${record.id}`);
    const silent = await run(["delete", id]);
    expect([silent.code, silent.told]).toEqual([1, expect.stringContaining(`write relay files delete ${id} --confirm ${id} to confirm.`)]);
    expect((await run(["delete", id, "--confirm", "other"])).code).toBe(2);
    expect(await listed()).toHaveLength(1);
    const asked: string[] = [];
    const yes = { interactive: true, confirm: (question: string) => Promise.resolve(asked.push(question) > 0) };
    const gone = await run(["delete", id], "", yes);
    expect([gone.code, gone.told, asked]).toEqual([0, `The file ${id} is deleted.`, [`Permanently delete the file ${id}?`]]);
    expect(await listed()).toEqual([]);
  });
});
