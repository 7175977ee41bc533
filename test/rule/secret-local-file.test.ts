import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readLocalSecrets, setLocalSecrets, setServerSecrets } from "../../src/platform/secret/local-secrets.ts";

const newDir = async () => join(await mkdtemp(join(tmpdir(), "relay-secrets-")), "service");
const readAll = async (dir: string) => Object.fromEntries(await readLocalSecrets(dir));

describe("the local secrets file", () => {
  test("does not exist before a secret is made", async () => {
    const dir = await newDir();
    expect(await readAll(dir)).toEqual({});
    await expect(stat(dir)).rejects.toThrow();
  });

  test("is readable only by its owner, has a line in .gitignore, and leaves no draft", async () => {
    const dir = await newDir();
    await setLocalSecrets(dir, "orders", { receiverSecret: "rcv_1" });
    expect((await stat(join(dir, ".secrets.json"))).mode & 0o777).toBe(0o600);
    expect((await readFile(join(dir, ".gitignore"), "utf8")).split("\n")).toContain(".secrets.json");
    expect((await readdir(dir)).sort()).toEqual([".gitignore", ".secrets.json"]);
    expect(JSON.parse(await readFile(join(dir, ".secrets.json"), "utf8"))).toEqual({
      orders: { receiverSecret: "rcv_1" },
    });
  });

  test.each([
    ["another file", "elsewhere"],
    ["no file", "not-there"],
  ])("is not created if .gitignore is a link to %s, and nothing is written through the link", async (_, name) => {
    const service = await newDir();
    const dir = dirname(service);
    await mkdir(service);
    const target = join(dir, name);
    if (name === "elsewhere") await writeFile(target, "mine\n");
    await symlink(target, join(service, ".gitignore"));
    const refused = await setLocalSecrets(service, "orders", { receiverSecret: "s" }).catch((error) => error);
    expect(refused).toMatchObject({ code: "invalid_input", message: expect.stringContaining("is a link") });
    expect(existsSync(target) ? await readFile(target, "utf8") : "").toBe(name === "elsewhere" ? "mine\n" : "");
    expect(await readdir(service)).toEqual([".gitignore"]);
  });

  test("accepts a .gitignore that is a link to a file with the line, and leaves it unchanged", async () => {
    const service = await newDir();
    const dir = dirname(service);
    await mkdir(service);
    await writeFile(join(dir, "said"), ".secrets.json\n");
    await symlink(join(dir, "said"), join(service, ".gitignore"));
    await setLocalSecrets(service, "orders", { receiverSecret: "s" });
    expect((await readLocalSecrets(service)).get("orders")).toEqual({ receiverSecret: "s" });
  });

  test("keeps the lines of .gitignore, and adds its own only once", async () => {
    const dir = await newDir();
    await setLocalSecrets(dir, "a", { receiverSecret: "1" });
    const once = await readFile(join(dir, ".gitignore"), "utf8");
    const other = await mkdtemp(join(tmpdir(), "relay-secrets-"));
    await writeFile(join(other, ".gitignore"), "node_modules");
    await setLocalSecrets(other, "a", { receiverSecret: "1" });
    expect(await readFile(join(other, ".gitignore"), "utf8")).toBe(`node_modules\n${once}`);
    const third = await mkdtemp(join(tmpdir(), "relay-secrets-"));
    await writeFile(join(third, ".gitignore"), ".secrets.json\r\n");
    await setLocalSecrets(third, "a", { receiverSecret: "1" });
    expect(await readFile(join(third, ".gitignore"), "utf8")).toBe(".secrets.json\r\n");
  });

  test("sets one secret and keeps the others", async () => {
    const dir = await newDir();
    await setLocalSecrets(dir, "orders", { receiverSecret: "r" });
    await setLocalSecrets(dir, "orders", { signingSecret: "s" });
    await setLocalSecrets(dir, "constructor", { receiverSecret: "c" });
    expect(await readAll(dir)).toEqual({
      orders: { receiverSecret: "r", signingSecret: "s" },
      constructor: { receiverSecret: "c" },
    });
  });

  test("stores secrets of servers next to local ones, and neither overwrites the other", async () => {
    const dir = await newDir();
    const place = "https://relay.example.com/shop/development";
    await setLocalSecrets(dir, "orders", { receiverSecret: "local" });
    await setServerSecrets(dir, place, new Map([["orders", { receiverSecret: "server" }]]));
    await setServerSecrets(dir, place, new Map([["orders", { signingSecret: "sgn" }]]));
    await setLocalSecrets(dir, "billing", { receiverSecret: "b" });
    expect(await readAll(dir)).toEqual({ billing: { receiverSecret: "b" }, orders: { receiverSecret: "local" } });
    const text = JSON.parse(await readFile(join(dir, ".secrets.json"), "utf8"));
    expect(text[place]).toEqual({ orders: { receiverSecret: "server", signingSecret: "sgn" } });
  });

  test("loses no secret in concurrent changes", async () => {
    const dir = await newDir();
    const names = Array.from({ length: 12 }, (_, at) => `relay-${at}`);
    await Promise.all(names.map((name) => setLocalSecrets(dir, name, { receiverSecret: name })));
    expect(Object.keys(await readAll(dir)).sort()).toEqual(names.sort());
  });

  test("is readable only by its owner again after its mode was opened", async () => {
    const dir = await newDir();
    await setLocalSecrets(dir, "a", { receiverSecret: "1" });
    await writeFile(join(dir, ".secrets.json"), "{}", { mode: 0o644 });
    await setLocalSecrets(dir, "a", { receiverSecret: "2" });
    expect((await stat(join(dir, ".secrets.json"))).mode & 0o777).toBe(0o600);
  });

  const broken: [string, string][] = [
    ["no JSON", "{ secret_abc"],
    ["a list", '["secret_abc"]'],
    ["a relay that is no object", '{"orders":"secret_abc"}'],
    ["a secret that is no text", '{"orders":{"receiverSecret":{"x":"secret_abc"}}}'],
  ];
  test.each(broken)("that cannot be read is refused without showing it, and is unchanged: %s", async (_rule, text) => {
    const dir = await mkdtemp(join(tmpdir(), "relay-secrets-"));
    await writeFile(join(dir, ".secrets.json"), text);
    const expected = expect.objectContaining({
      code: "invalid_input",
      message: expect.not.stringContaining("secret_abc"),
    });
    await expect(readLocalSecrets(dir)).rejects.toEqual(expected);
    await expect(setLocalSecrets(dir, "a", { receiverSecret: "1" })).rejects.toEqual(expected);
    expect(await readFile(join(dir, ".secrets.json"), "utf8")).toBe(text);
  });
});
