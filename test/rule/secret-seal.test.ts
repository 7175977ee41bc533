import { describe, expect, test } from "bun:test";
import { mkdtemp, readdir, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadMasterKey } from "../../src/platform/secret/master-key.ts";
import { Sealer } from "../../src/platform/secret/seal.ts";
import { SECRET } from "../kit/sender-call.ts";

const sealer = new Sealer(Buffer.alloc(32, 1));

describe("a sealed secret", () => {
  test("opens only with the same context and master key", () => {
    const sealed = sealer.seal(SECRET, "receiver:rly_1");
    expect(sealer.unseal(sealed, "receiver:rly_1")).toBe(SECRET);
    expect(new Sealer(Buffer.alloc(32, 1)).unseal(sealed, "receiver:rly_1")).toBe(SECRET);
    expect(() => sealer.unseal(sealed, "receiver:rly_2")).toThrow("cannot be opened");
    expect(() => new Sealer(Buffer.alloc(32, 2)).unseal(sealed, "receiver:rly_1")).toThrow("cannot be opened");
  });

  test("opens from any view of bytes, as databases return them", () => {
    const sealed = sealer.seal("é", "c");
    const padded = new Uint8Array(sealed.length + 10);
    padded.set(sealed, 5);
    expect(sealer.unseal(padded.subarray(5, 5 + sealed.length), "c")).toBe("é");
  });

  test("does not contain the secret and never repeats", () => {
    const sealed = Buffer.from(sealer.seal(SECRET, "c"));
    expect(sealed.includes(SECRET)).toBe(false);
    expect(Buffer.from(sealer.seal(SECRET, "c")).equals(sealed)).toBe(false);
  });

  test("does not open if any bit is changed, or if it is shorter or longer", () => {
    const sealed = Buffer.from(sealer.seal(SECRET, "c"));
    for (let at = 0; at < sealed.length; at++) {
      const changed = Buffer.from(sealed);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(() => sealer.unseal(changed, "c")).toThrow("cannot be opened");
      expect(() => sealer.unseal(sealed.subarray(0, at), "c")).toThrow("cannot be opened");
    }
    expect(() => sealer.unseal(Buffer.concat([sealed, Buffer.of(0)]), "c")).toThrow("cannot be opened");
  });

  test("can be empty", () => {
    expect(sealer.unseal(sealer.seal("", "c"), "c")).toBe("");
  });
});

describe("a digest", () => {
  test("is the same for the same secret and differs for another secret or master key", () => {
    const digest = Buffer.from(sealer.digest(SECRET));
    expect(digest).toHaveLength(32);
    expect(digest.equals(sealer.digest(SECRET))).toBe(true);
    expect(digest.equals(sealer.digest(`${SECRET}x`))).toBe(false);
    expect(digest.equals(new Sealer(Buffer.alloc(32, 2)).digest(SECRET))).toBe(false);
  });
});

describe("the master key", () => {
  const newDir = () => mkdtemp(join(tmpdir(), "relay-key-"));

  test("is made once with 32 bytes, is readable only by its owner, and leaves no draft", async () => {
    const dir = join(await newDir(), "data");
    const key = await loadMasterKey(dir, null);
    expect(key).toHaveLength(32);
    expect(Buffer.from(await loadMasterKey(dir, null)).equals(key)).toBe(true);
    expect((await stat(join(dir, "master.key"))).mode & 0o777).toBe(0o600);
    expect(await readdir(dir)).toEqual(["master.key"]);
  });

  test("is the same for processes that start together", async () => {
    const dir = await newDir();
    const keys = await Promise.all(Array.from({ length: 8 }, () => loadMasterKey(dir, null)));
    expect(new Set(keys.map((key) => Buffer.from(key).toString("hex"))).size).toBe(1);
  });

  test("of the environment takes precedence, in hex or base64, and no file is made", async () => {
    const dir = await newDir();
    const bytes = Buffer.alloc(32, 7);
    for (const text of [bytes.toString("hex"), bytes.toString("base64"), ` ${bytes.toString("hex")}\n`]) {
      expect(Buffer.from(await loadMasterKey(dir, text)).equals(bytes)).toBe(true);
    }
    expect(await readdir(dir)).toEqual([]);
  });

  const wrong: [string, string][] = [
    ["nothing", ""],
    ["31 bytes", "ab".repeat(31)],
    ["33 bytes", "ab".repeat(33)],
    ["words", "correct horse battery staple"],
  ];
  test.each(wrong)("of a wrong length is refused with a message that does not show it: %s", async (_rule, text) => {
    const dir = await newDir();
    const expected = expect.objectContaining({
      code: "invalid_input",
      message: expect.stringContaining("32 bytes"),
    });
    await expect(loadMasterKey(dir, text)).rejects.toEqual(expected);
    await writeFile(join(dir, "master.key"), text);
    await expect(loadMasterKey(dir, null)).rejects.toEqual(expected);
    await expect(loadMasterKey(dir, text)).rejects.toThrow(/^(?!.*(abab|staple)).*$/);
  });
});
