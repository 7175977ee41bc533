/**
 * Tests that no failure is silent on a server. Each row stages one failure and measures where an owner learns of it without asking. The test asserts
 * the sum of the scores. It uses the compiled executable, HTTP, the management API, the log, and a test clock.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { listParts, type Meaning } from "../../src/base/code/code.ts";
import { makeAuthority } from "../kit/certificate.ts";
import { runCommand } from "../kit/cli-io.ts";
import { type Executable, placeExecutable } from "../kit/executable.ts";
import { STAGED_CALLS } from "../kit/staged-call.ts";
import { STAGED_EVENTS } from "../kit/staged-event.ts";
import { Stand, scoreOf } from "../kit/staged-failure.ts";
import { STAGED_SAVES } from "../kit/staged-save.ts";
import { type Called, StagedServer, startCalled } from "../kit/staged-server.ts";

const ROWS = [...STAGED_CALLS, ...STAGED_EVENTS, ...STAGED_SAVES];
const scores = new Map<string, number>();
const codes = new Set<string>();

let executable: Executable;
let authorityFile: string;
let called: Called;
let shared: StagedServer;

beforeAll(async () => {
  executable = placeExecutable("staged");
  const authority = makeAuthority("Staged failures");
  authorityFile = join(executable.makeFolder(), "authority.pem");
  writeFileSync(authorityFile, authority.cert);
  called = startCalled(authority);
  shared = await StagedServer.start(executable, authorityFile);
  // The first test that needs the executable builds it.
});

afterAll(async () => {
  await shared[Symbol.asyncDispose]();
  await called[Symbol.asyncDispose]();
  executable[Symbol.dispose]();
});

describe("a server reports, with the cause", () => {
  test.each(ROWS.map((row) => [row.name, row] as const))("%s", async (name, row) => {
    await using own = row.alone === true ? await StagedServer.start(executable, authorityFile) : null;
    const stand = await Stand.start(
      own ?? shared,
      called,
      name
        .toLowerCase()
        .replace(/[^a-z]+/g, "_")
        .replace(/^_|_$/g, ""),
    );
    await row.stage(stand);
    const { score, places, told } = await scoreOf(row, stand);
    scores.set(name, score);
    for (const [, code = ""] of told.matchAll(/"code":"(\w+)"/g)) codes.add(code);
    if (row.hidden !== undefined) expect(`${told}${stand.server.log.join("\n")}`).not.toContain(row.hidden);
    if (score < 3)
      throw new Error(`${name}: ${score} of 3, told with its cause in [${places.join(", ")}], not in all of [${row.where.join(", ")}]
${told}`);
  });

  test("every reported code has its page, and relay help prints the same", async () => {
    for (const code of codes) {
      const page = await fetch(`${shared.url}/docs/errors/${code}`);
      expect([code, page.status]).toEqual([code, 200]);
      const { meanings } = (await page.json()) as { meanings: Meaning[] };
      const { said } = await runCommand(["help", code], { cwd: executable.makeFolder() });
      for (const { label, text } of meanings.flatMap(listParts)) expect(said).toMatch(new RegExp(`^  ${label} +${RegExp.escape(text)}$`, "m"));
    }
    expect(codes.size).toBeGreaterThan(20);
  });

  test("39 staged failures with at least 105 of 117 points", () => {
    expect(scores.size).toBe(39);
    expect([...scores.values()].reduce((sum, score) => sum + score, 0)).toBeGreaterThanOrEqual(105);
  });
});
