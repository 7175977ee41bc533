/**
 * Tests the code that verifies a call on the called server: each language runs it on notices that the service signed. JavaScript always runs. Another
 * language runs where this machine has its program, because the tests install none.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { signNotice } from "../../src/platform/outbound/notice-signature.ts";
import { EXAMPLE_SIGNING_SECRET } from "../../src/platform/secret/secret-text.ts";
import { NOTICE_VERIFIERS } from "../../src/rules/action/notice-verifier.ts";
import { type ApiServer, startApi } from "../kit/api-server.ts";
import { runCommand } from "../kit/cli-io.ts";
import { tellNotRun } from "../kit/not-run.ts";
import { PATIENCE_MS } from "../kit/patience.ts";

const SENT_MS = 1_767_603_600_000;
const OWN_SECRET = "sgn_Yh3cWq0pZsT7nLxKd5vRb8mGjE2aFuNiQk7bXFQsq4O";
/** A notice of the service, with letters, an emoji and a number that a parser would change. */
const NOTICE = readFileSync(join(import.meta.dir, "../golden/outbound-notice.json"));
const SIGNED = signNotice(OWN_SECRET, NOTICE.toString("utf8"), SENT_MS);

/** The signature during the overlap of a rotation, the new secret first. */
const BOTH = signNotice([OWN_SECRET, EXAMPLE_SIGNING_SECRET], NOTICE.toString("utf8"), SENT_MS);
/** The own signature after others. */
const withSignatures = (others: number) => SIGNED.replace(",v1=", `${`,v1=${"0".repeat(64)}`.repeat(others)},v1=`);

interface Case {
  rule: string;
  body: Buffer;
  header: string;
  secret: string;
  nowSeconds: number;
  isGood: boolean;
}

const SENT_SECONDS = SENT_MS / 1_000;
const good = { body: NOTICE, header: SIGNED, secret: OWN_SECRET, nowSeconds: SENT_SECONDS, isGood: true };
const bad = (change: Partial<Case>) => ({ ...good, isGood: false, ...change });
const withSignature = (text: string) => SIGNED.replace(/v1=.*/, `v1=${text}`);

const CASES: Case[] = [
  { rule: "a notice of the service", ...good },
  {
    rule: "a notice that is signed with the example secret",
    ...good,
    header: signNotice(EXAMPLE_SIGNING_SECRET, NOTICE.toString("utf8"), SENT_MS),
    secret: EXAMPLE_SIGNING_SECRET,
  },
  { rule: "a notice that took five minutes", ...good, nowSeconds: SENT_SECONDS + 300 },
  { rule: "a notice of a clock that is five minutes ahead", ...good, nowSeconds: SENT_SECONDS - 300 },
  { rule: "a notice of an overlap, by the new secret", ...good, header: BOTH },
  { rule: "a notice of an overlap, by the previous secret", ...good, header: BOTH, secret: EXAMPLE_SIGNING_SECRET },
  { rule: "a notice with eight signatures", ...good, header: withSignatures(7) },
  { rule: "a notice with nine signatures", ...bad({ header: withSignatures(8) }) },
  { rule: "a notice of an overlap, by a third secret", ...bad({ header: BOTH, secret: `${OWN_SECRET}x` }) },
  { rule: "two values of the header", ...bad({ header: `${SIGNED}, ${SIGNED}` }) },
  { rule: "a second time", ...bad({ header: `${SIGNED},t=1` }) },
  { rule: "a body with one more space", ...bad({ body: Buffer.concat([NOTICE, Buffer.from(" ")]) }) },
  { rule: "a body that a parser wrote again", ...bad({ body: Buffer.from(JSON.stringify(JSON.parse(NOTICE.toString("utf8")))) }) },
  { rule: "a body in another encoding", ...bad({ body: Buffer.from(NOTICE.toString("utf8"), "latin1") }) },
  { rule: "a notice from more than five minutes ago", ...bad({ nowSeconds: SENT_SECONDS + 301 }) },
  { rule: "a notice from more than five minutes ahead", ...bad({ nowSeconds: SENT_SECONDS - 301 }) },
  { rule: "another time with the same signature", ...bad({ header: SIGNED.replace(/t=\d+/, `t=${SENT_SECONDS + 1}`) }) },
  { rule: "a wrong secret", ...bad({ secret: EXAMPLE_SIGNING_SECRET }) },
  { rule: "an empty secret, with which anyone can sign", ...bad({ header: signNotice("", NOTICE.toString("utf8"), SENT_MS), secret: "" }) },
  { rule: "a signature of zeros", ...bad({ header: withSignature("0".repeat(64)) }) },
  { rule: "a signature that is too short", ...bad({ header: withSignature("00") }) },
  { rule: "a signature that is no hex", ...bad({ header: withSignature("z".repeat(64)) }) },
  { rule: "a line after the signature", ...bad({ header: `${SIGNED}\n` }) },
  { rule: "a time of many digits", ...bad({ header: SIGNED.replace(/t=\d+/, `t=${"9".repeat(30)}`) }) },
  { rule: "no signature", ...bad({ header: "" }) },
];

/** A program that reads the cases from `cases.json` and prints a list of true and false. */
interface Runner {
  program: string | null;
  /** The files next to the code; `main` last. */
  files: Record<string, string>;
  command(main: string): string[];
}

const RUNNERS: Record<string, Runner> = {
  javascript: {
    program: process.execPath,
    files: {
      "main.mjs": `import { readFileSync } from "node:fs";
import { isFromRelay } from "./relay_notice.mjs";
const cases = JSON.parse(readFileSync("cases.json", "utf8"));
console.log(JSON.stringify(cases.map((one) => isFromRelay(Buffer.from(one.body, "base64"), one.header, one.secret, one.now * 1000))));`,
    },
    command: (program) => [program, "main.mjs"],
  },
  python: {
    program: Bun.which("python3"),
    files: {
      "main.py": `import base64, json
from relay_notice import is_from_relay
cases = json.load(open("cases.json"))
print(json.dumps([is_from_relay(base64.b64decode(c["body"]), c["header"], c["secret"], c["now"]) for c in cases]))`,
    },
    command: (program) => [program, "main.py"],
  },
  go: {
    program: Bun.which("go"),
    files: {
      "go.mod": "module check\n\ngo 1.19\n",
      "main.go": `package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"check/relay"
)

func main() {
	text, err := os.ReadFile("cases.json")
	if err != nil {
		panic(err)
	}
	var cases []struct {
		Body           []byte
		Header, Secret string
		Now            int64
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		panic(err)
	}
	results := []bool{}
	for _, c := range cases {
		results = append(results, relay.IsFromRelay(c.Body, c.Header, c.Secret, time.Unix(c.Now, 0)))
	}
	shown, _ := json.Marshal(results)
	fmt.Println(string(shown))
}`,
    },
    command: (program) => [program, "run", "."],
  },
  ruby: {
    program: Bun.which("ruby"),
    files: {
      "main.rb": `require "json"
require_relative "relay_notice"
cases = JSON.parse(File.read("cases.json"))
puts JSON.generate(cases.map { |c| from_relay?(c["body"].unpack1("m"), c["header"], c["secret"], Time.at(c["now"])) })`,
    },
    command: (program) => [program, "main.rb"],
  },
  php: {
    program: Bun.which("php"),
    files: {
      "main.php": `<?php
require 'relay_notice.php';
$cases = json_decode(file_get_contents('cases.json'), true);
echo json_encode(array_map(fn ($c) => is_from_relay(base64_decode($c['body']), $c['header'], $c['secret'], $c['now']), $cases));`,
    },
    command: (program) => [program, "main.php"],
  },
};

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "relay-verifier-"));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the code of a language on each case. */
function runCases(language: string, { program, files, command }: Runner): boolean[] {
  const { file, code } = requireVerifier(language);
  const cwd = join(folder, language);
  // The code in Go is a package of its own.
  const place = language === "go" ? join(cwd, "relay") : cwd;
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, file), code);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);
  const shown = CASES.map(({ body, nowSeconds, header, secret }) => ({ body: body.toString("base64"), header, secret, now: nowSeconds }));
  writeFileSync(join(cwd, "cases.json"), JSON.stringify(shown));
  const env = { ...process.env, GOFLAGS: "-mod=mod", GOCACHE: join(folder, "cache"), PYTHONDONTWRITEBYTECODE: "1" };
  const { exitCode, stdout, stderr } = Bun.spawnSync(command(program ?? ""), { cwd, env, timeout: PATIENCE_MS });
  if (exitCode !== 0) throw new Error(`The program ended with ${exitCode}: ${stderr}`);
  return JSON.parse(stdout.toString());
}

function requireVerifier(language: string) {
  const found = NOTICE_VERIFIERS.find((one) => one.language === language);
  if (found === undefined) throw new Error(`There is no code in ${language}.`);
  return found;
}

for (const [language, runner] of Object.entries(RUNNERS)) {
  if (runner.program === null) {
    tellNotRun(`the code in ${language} that verifies a notice`, `this machine has no ${language === "python" ? "python3" : language}`);
    continue;
  }
  test(`the code in ${language} accepts each good notice and refuses each other one`, () => {
    const results = runCases(language, runner);
    const shown = (isGood: (at: number) => boolean | undefined) => CASES.map(({ rule }, at) => [rule, isGood(at)]);
    expect(shown((at) => results[at])).toEqual(shown((at) => CASES[at]?.isGood));
  });
}

describe("every language", () => {
  /** Texts that each file must contain: a comparison in constant time, the tolerance, and only imports of the standard library. */
  const RULES: [language: string, compare: string, tolerance: RegExp, imports: RegExp, most: string[]][] = [
    ["javascript", "timingSafeEqual(", /= 300;/, /from "(.*)"/g, ["node:buffer", "node:crypto"]],
    ["python", "hmac.compare_digest(", /= 300$/m, /^import (.*)$/gm, ["hashlib", "hmac", "re", "time"]],
    [
      "go",
      "hmac.Equal(",
      /5 \* time\.Minute/,
      /^\t"(.*)"$/gm,
      ["crypto/hmac", "crypto/sha256", "encoding/hex", "regexp", "strconv", "strings", "time"],
    ],
    ["ruby", "fixed_length_secure_compare(", /= 300$/m, /^require "(.*)"$/gm, ["openssl"]],
    ["php", "hash_equals(", /= 300;/, /^(?:require|use) (.*)$/gm, []],
  ];

  test.each(RULES)(
    "%s compares in constant time, limits the age, and needs only its standard library",
    (language, compare, tolerance, imports, most) => {
      const { code } = requireVerifier(language);
      expect(code).toContain(compare);
      expect(code).toMatch(tolerance);
      expect([...code.matchAll(imports)].map(([, name]) => name as string)).toEqual(most);
    },
  );

  test("is in the API, in the documentation and in the command", async () => {
    await using api: ApiServer = await startApi();
    const { json } = await api.call("/api/verifiers");
    expect(json.items).toEqual(NOTICE_VERIFIERS);
    expect(json.items.map(({ language }: { language: string }) => language)).toEqual(Object.keys(RUNNERS));
    const docs = (await api.call("/docs/actions.md")).text;
    for (const { language, file, code } of NOTICE_VERIFIERS) {
      expect(docs).toContain(code.trimEnd());
      expect((await runCommand(["verifiers", language], { cwd: folder })).said).toBe(code.trimEnd());
      expect((await runCommand(["verifiers"], { cwd: folder })).said).toContain(file);
    }
    expect((await runCommand(["verifiers", "cobol"], { cwd: folder })).told).toContain(
      'There is no code in "cobol": choose one of javascript, python, go, ruby, php.',
    );
  });
});
