/**
 * Tests the packages of client/ as a release publishes them and a user gets them: packed, installed in an empty folder without scripts and without a registry, then imported and
 * type-checked. Bun always runs. Node with npm, and Deno, run where this machine has them.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageJson from "../../package.json";
import { writeNpmPackages } from "../../scripts/release/npm.ts";
import { signNotice } from "../../src/platform/outbound/notice-signature.ts";
import { PROJECT_ROOT } from "../house/source-tree.ts";
import { tellNotRun } from "../kit/not-run.ts";
import { PATIENCE_MS } from "../kit/patience.ts";

interface Package {
  name: string;
  files: string[];
  exports: string[];
}

const PACKAGES: readonly Package[] = [
  {
    name: "relay-service-client",
    files: ["LICENSE", "README.md", "g.js", "package.json", "types.d.ts"],
    exports: ["RelayError", "createClient"],
  },
  {
    name: "relay-service-verifier",
    files: ["LICENSE", "README.md", "package.json", "types.d.ts", "verify.js"],
    exports: ["VerificationError", "verify"],
  },
];

/** A package manager with the runtime of its users. */
interface Tool {
  name: string;
  runtime: string[];
  /** Commands that write the package of the current folder to `to`, and that install the files. */
  pack(to: string): string[];
  install(files: string[]): string[];
}

const bun = process.execPath;
const [npm, node, deno] = [Bun.which("npm"), Bun.which("node"), Bun.which("deno")];
const BUN: Tool = {
  name: "Bun",
  runtime: [bun],
  pack: (to) => [bun, "pm", "pack", "--destination", to, "--ignore-scripts", "--quiet"],
  install: (files) => [bun, "add", "--ignore-scripts", ...files],
};
const TOOLS: readonly Tool[] = [
  BUN,
  ...(deno === null ? [] : [{ ...BUN, name: "Deno", runtime: [deno, "run", "--allow-all"] }]),
  ...(npm === null || node === null
    ? []
    : [
        {
          name: "npm and Node",
          runtime: [node],
          pack: (to: string) => [npm, "pack", "--pack-destination", to, "--ignore-scripts", "--silent"],
          install: (files: string[]) => [npm, "install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", ...files],
        },
      ]),
];
if (npm === null || node === null) tellNotRun("the client packages in Node", "this machine does not have npm and node");
if (deno === null) tellNotRun("the client packages in Deno", "this machine has no deno");

const SENT_SECONDS = 1_767_603_600;
const SECRET = "whsec_bm8tc2VydmVyLXVzZXMtdGhpcy1zZWNyZXQtbm93";
const OLD_SECRET = "sgn_Yh3cWq0pZsT7nLxKd5vRb8mGjE2aFuNiQk7bXFQsq4O";
/** A notice of the service, with letters, an emoji and a number that a parser would change. */
const NOTICE = readFileSync(join(import.meta.dir, "../golden/outbound-notice.json"), "utf8");
const SIGNED = signNotice(SECRET, NOTICE, SENT_SECONDS * 1000);

/** The signature during the overlap of a rotation, the new secret first. */
const BOTH = signNotice([SECRET, OLD_SECRET], NOTICE, SENT_SECONDS * 1000);

/** Options of `verify` as JSON. `form` says how the program passes body and headers. */
interface Case {
  rule: string;
  body: unknown;
  headers: Record<string, unknown>;
  secret: unknown;
  toleranceSeconds?: unknown;
  now: number;
  form?: "bytes" | "view" | "buffer" | "Headers";
  /** The code or the kind of the error, or `verified`. */
  result: string;
}

const headers = { "x-service-signature": SIGNED };
const good = { body: NOTICE, headers, secret: SECRET, now: SENT_SECONDS, result: "verified" };
const withHeader = (value: unknown) => ({ headers: { "x-service-signature": value } });
const withSignature = (text: string) => withHeader(SIGNED.replace(/v1=.*/, `v1=${text}`));
const mismatch = { ...good, result: "signature_mismatch" };
const malformed = { ...good, result: "signature_malformed" };
const misuse = { ...good, result: "TypeError" };

const CASES: readonly Case[] = [
  { rule: "a notice as text", ...good },
  { rule: "a notice as bytes", ...good, form: "bytes" },
  { rule: "a notice as a part of a larger buffer", ...good, form: "view" },
  { rule: "a notice as an ArrayBuffer", ...good, form: "buffer" },
  { rule: "a Headers object", ...good, form: "Headers" },
  { rule: "a header in capital letters", ...good, headers: { "X-Service-Signature": SIGNED } },
  { rule: "a header in a list", ...good, ...withHeader([SIGNED]) },
  { rule: "an older secret", ...good, secret: OLD_SECRET, ...withHeader(signNotice(OLD_SECRET, NOTICE, SENT_SECONDS * 1000)) },
  { rule: "the second of two secrets", ...good, secret: [OLD_SECRET, SECRET] },
  { rule: "a notice of an overlap, by the new secret", ...good, ...withHeader(BOTH) },
  { rule: "a notice of an overlap, by the previous secret", ...good, ...withHeader(BOTH), secret: OLD_SECRET },
  { rule: "a notice of an overlap, by a third secret", ...mismatch, ...withHeader(BOTH), secret: `${SECRET}x` },
  { rule: "a notice with nine signatures", ...malformed, ...withHeader(SIGNED + `,v1=${"0".repeat(64)}`.repeat(8)) },
  { rule: "a secret next to one that is not set", ...good, secret: [SECRET, null] },
  { rule: "a secret with a line break at the end", ...good, secret: `${SECRET}\n` },
  { rule: "a notice that took five minutes", ...good, now: SENT_SECONDS + 300 },
  { rule: "a notice of a clock that is five minutes ahead", ...good, now: SENT_SECONDS - 300 },
  { rule: "a notice within another tolerance", ...good, toleranceSeconds: 3_600, now: SENT_SECONDS + 3_600 },
  { rule: "a notice from more than five minutes ago", ...good, now: SENT_SECONDS + 301, result: "too_old" },
  { rule: "a notice from more than five minutes ahead", ...good, now: SENT_SECONDS - 301, result: "too_new" },
  { rule: "a notice outside of another tolerance", ...good, toleranceSeconds: 0, now: SENT_SECONDS + 1, result: "too_old" },
  { rule: "a body with one more space", ...mismatch, body: `${NOTICE} ` },
  { rule: "a body that a parser wrote again", ...mismatch, body: JSON.stringify(JSON.parse(NOTICE)) },
  { rule: "an empty body", ...mismatch, body: "" },
  { rule: "another secret", ...mismatch, secret: [OLD_SECRET, `${SECRET}x`] },
  { rule: "another time with the same signature", ...mismatch, ...withHeader(SIGNED.replace(/t=\d+/, `t=${SENT_SECONDS + 1}`)) },
  { rule: "an old notice with another time", ...mismatch, ...withHeader(SIGNED.replace(/t=\d+/, "t=1")) },
  { rule: "a signature of zeros", ...mismatch, ...withSignature("0".repeat(64)) },
  { rule: "no header", ...good, headers: {}, result: "signature_missing" },
  { rule: "a Headers object without the header", ...good, headers: {}, form: "Headers", result: "signature_missing" },
  { rule: "an empty header", ...malformed, ...withHeader("") },
  { rule: "a signature that is too short", ...malformed, ...withSignature("00") },
  { rule: "a signature that is no hex", ...malformed, ...withSignature("z".repeat(64)) },
  { rule: "a line after the signature", ...malformed, ...withHeader(`${SIGNED}\n`) },
  { rule: "a time of many digits", ...malformed, ...withHeader(SIGNED.replace(/t=\d+/, `t=${"9".repeat(30)}`)) },
  { rule: "a header in two spellings", ...malformed, headers: { ...headers, "X-Service-Signature": SIGNED } },
  { rule: "two headers in a list", ...malformed, ...withHeader([SIGNED, SIGNED]) },
  { rule: "a parsed body", ...misuse, body: JSON.parse(NOTICE) },
  { rule: "no body", ...misuse, body: null },
  { rule: "no headers", ...misuse, headers: null as never },
  { rule: "an empty secret", ...misuse, secret: " " },
  { rule: "no secret", ...misuse, secret: null },
  { rule: "a list without a secret", ...misuse, secret: [null, ""] },
  { rule: "a secret that is a number", ...misuse, secret: 5 },
  { rule: "a tolerance that is no number", ...misuse, toleranceSeconds: "300" },
  { rule: "a tolerance below 0", ...misuse, toleranceSeconds: -1 },
];

/** Runs `verify` on each case. JSON has no undefined, so null is the value of a variable that is not set. */
const PROGRAM = `import { readFileSync } from "node:fs";
import * as client from "relay-service-client";
import * as verifier from "relay-service-verifier";
const set = (value) => value ?? undefined;
const cases = JSON.parse(readFileSync("cases.json", "utf8"));
const results = [];
for (const { body: text, headers, secret, toleranceSeconds, now, form } of cases) {
  Date.now = () => now * 1000;
  const bytes = new TextEncoder().encode(text);
  const body = form === "bytes" ? bytes : form === "buffer" ? bytes.buffer : form === "view" ? new Uint8Array([1, ...bytes, 2]).subarray(1, -1) : set(text);
  const options = { body, headers: form === "Headers" ? new Headers(headers) : set(headers), secret: Array.isArray(secret) ? secret.map(set) : set(secret), toleranceSeconds };
  try {
    results.push({ result: "verified", notice: await verifier.verify(options) });
  } catch (error) {
    results.push({ result: error instanceof verifier.VerificationError ? error.code : error.name, message: error.message });
  }
}
const g = client.createClient({ url: "https://relay.example.com", key: "ak_live_x" });
console.log(JSON.stringify({ results, client: Object.keys(client).sort(), verifier: Object.keys(verifier).sort(), signedIn: await g.auth.isSignedIn() }));`;

/** Uses both packages with their types, and must compile. */
const TYPED = `import { createClient, type Client, type Person, RelayError } from "relay-service-client";
import { type Notice, VerificationError, type VerificationCode, verify } from "relay-service-verifier";
const g: Client = createClient({ url: "https://relay.example.com", key: "ak_live_x" });
const person: Person = await g.auth.signIn("ada@example.com", "123456");
async function take(request: Request): Promise<string> {
  const { headers } = request;
  const notice: Notice = await verify({ body: await request.arrayBuffer(), headers, secret: ["a", undefined], toleranceSeconds: 60 });
  await verify({ body: new Uint8Array(1), headers: { "x-service-signature": ["a"] }, secret: "a" });
  return notice.person === null ? notice.id : notice.person.email;
}
const codeOf = (error: unknown): VerificationCode | string | null =>
  error instanceof VerificationError || error instanceof RelayError ? error.code : null;
// @ts-expect-error A secret is required.
await verify({ body: "", headers: {} });
// @ts-expect-error A parsed body cannot be verified.
await verify({ body: { id: "evt_1" }, headers: {}, secret: "a" });
`;

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "relay-packages-"));
  writeNpmPackages({ built: folder, out: join(folder, "written"), systems: [] });
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(command: string[], cwd: string): string {
  const env = { ...process.env, npm_config_cache: join(folder, "npm-cache"), BUN_INSTALL_CACHE_DIR: join(folder, "bun-cache") };
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd, env, timeout: PATIENCE_MS });
  if (exitCode !== 0) throw new Error(`${command.join(" ")} ended with ${exitCode}: ${stderr}${stdout}`);
  return stdout.toString();
}

/** Packs both packages and installs them in an empty folder. Returns that folder. */
function installPackages({ name, pack, install }: Tool): string {
  const place = join(folder, name.replaceAll(" ", "-"));
  const [packed, home] = [join(place, "packed"), join(place, "home")];
  for (const path of [packed, home]) mkdirSync(path, { recursive: true });
  for (const one of PACKAGES) run(pack(packed), join(folder, "written", one.name));
  writeFileSync(join(home, "package.json"), JSON.stringify({ name: "home", private: true, type: "module" }));
  const files = readdirSync(packed).map((file) => join(packed, file));
  run(install(files), home);
  return home;
}

describe.each(TOOLS.map((tool) => [tool.name, tool] as const))("the packages with %s", (_name, tool) => {
  let home: string;
  // biome-ignore lint/suspicious/noExplicitAny: the output of the program
  let output: any;

  beforeAll(() => {
    home = installPackages(tool);
    writeFileSync(join(home, "main.js"), PROGRAM);
    writeFileSync(join(home, "cases.json"), JSON.stringify(CASES));
    output = JSON.parse(run([...tool.runtime, "main.js"], home));
  });

  test.each(PACKAGES.map((one) => [one.name, one] as const))("%s has its files only, and needs no other package", (name, { files }) => {
    const installed = join(home, "node_modules", name);
    // Bun adds a file to what it installs.
    expect(
      readdirSync(installed)
        .filter((file) => file !== ".bun-tag")
        .sort(),
    ).toEqual(files);
    const { dependencies, scripts, license, engines, type, main, version } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
    const imported = new Bun.Transpiler({ loader: "js" }).scanImports(readFileSync(join(installed, main), "utf8"));
    expect(imported).toEqual([]);
    expect([dependencies, scripts, license, engines, type]).toEqual([undefined, undefined, "MIT", { node: ">=20" }, "module"]);
    expect(version).toBe(packageJson.version);
    expect(readFileSync(join(installed, "LICENSE"), "utf8")).toBe(readFileSync(join(PROJECT_ROOT, "LICENSE"), "utf8"));
  });

  test.each(PACKAGES.map(({ name }) => name))("%s says how to install and to import it", (name) => {
    const readme = readFileSync(join(home, "node_modules", name, "README.md"), "utf8");
    expect(readme).toContain(`npm install ${name}\n`);
    expect(readme).toContain(`from "${name}";`);
  });

  test("are imported as ES modules", () => {
    const [client, verifier] = PACKAGES;
    expect([output.client, output.verifier, output.signedIn]).toEqual([client?.exports, verifier?.exports, false]);
  });

  test("verify each good notice and refuse each other one", () => {
    const shown = (resultOf: (at: number) => string) => CASES.map(({ rule }, at) => [rule, resultOf(at)]);
    expect(shown((at) => output.results[at].result)).toEqual(shown((at) => CASES[at]?.result ?? ""));
    expect(output.results[0].notice).toEqual(JSON.parse(NOTICE));
  });

  test("refuse in sentences that say what to do, without the secret", () => {
    const messages = output.results.flatMap(({ message }: { message?: string }) => message ?? []);
    for (const message of messages) expect(message).toMatch(/^.{30,260}\.$/);
    for (const secret of [SECRET, OLD_SECRET]) expect(messages.join(" ")).not.toContain(secret);
    expect(new Set(messages).size).toBeGreaterThanOrEqual(10);
  });

  test.each([
    ["nodenext", "nodenext"],
    ["esnext", "bundler"],
  ])("have types that resolve with module %s and moduleResolution %s", (module, moduleResolution) => {
    writeFileSync(join(home, "typed.ts"), TYPED);
    const compilerOptions = {
      module,
      moduleResolution,
      target: "es2022",
      lib: ["es2022", "dom"],
      types: [],
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
    };
    const config = join(home, `tsconfig-${module}.json`);
    writeFileSync(config, JSON.stringify({ compilerOptions, files: ["typed.ts"] }));
    expect(run([bun, join(PROJECT_ROOT, "node_modules/typescript-compiler/bin/tsc"), "-p", config], home)).toBe("");
  });
});
