/** Which test files run on which database and in which order, and how the words of the command are read. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readArguments } from "../../scripts/test/arguments.ts";
import { mostlyWaits, nameJob, planJobs, readTimings, type Timings } from "../../scripts/test/plan.ts";
import { POSTGRES_SUITES } from "../kit/postgres-suite.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const TIMINGS = join(PROJECT_ROOT, "scripts/test/timings.json");
const files = ["test/a.test.ts", "test/b.test.ts", "test/c.test.ts"];
const timings: Timings = { "test/a.test.ts": [1, 1], "test/c.test.ts": [20, 2], "test/a.test.ts (PostgreSQL)": [9, 8] };
const named = (options: Partial<Parameters<typeof planJobs>[0]>) =>
  planJobs({ files, onPostgres: ["test/a.test.ts"], store: null, timings, ...options }).map(nameJob);

describe("the plan", () => {
  test("runs every file, those that run on both databases twice, and the longest first", () => {
    expect(named({})).toEqual(["test/c.test.ts", "test/a.test.ts (PostgreSQL)", "test/b.test.ts", "test/a.test.ts"]);
  });

  test("runs only one database when one is named", () => {
    expect(named({ store: "postgres" })).toEqual(["test/a.test.ts (PostgreSQL)"]);
    expect(named({ store: "sqlite" })).toEqual(["test/c.test.ts", "test/b.test.ts", "test/a.test.ts"]);
  });

  test("gives a lane of its own to a file that takes long and computes little", () => {
    const [waits, ...others] = planJobs({ files, onPostgres: [], store: null, timings });
    expect(waits !== undefined && mostlyWaits(waits)).toBe(true);
    expect(others.filter(mostlyWaits)).toEqual([]);
  });

  test("has recorded timings only of files that are there", () => {
    const recorded = Object.keys(readTimings(TIMINGS)).map((name) => name.replace(/ \(PostgreSQL\)$/, ""));
    expect(recorded.length).toBeGreaterThan(300);
    expect(recorded.filter((file) => !existsSync(join(PROJECT_ROOT, file)))).toEqual([]);
    expect(POSTGRES_SUITES.filter((file) => !existsSync(join(PROJECT_ROOT, file)))).toEqual([]);
  });
});

describe("the words of the command", () => {
  const plain = { files: [], passedOn: [], soak: false, store: null, recordTimings: false };
  test.each([
    [[], {}, plain],
    [["./test/rule/x.test.ts"], {}, { ...plain, files: ["test/rule/x.test.ts"] }],
    [["rule", "-t", "a name"], {}, { ...plain, files: ["rule"], passedOn: ["-t", "a name"] }],
    [["--bail"], {}, { ...plain, passedOn: ["--bail"] }],
    [["--soak", "--postgres"], {}, { ...plain, soak: true, store: "postgres" }],
    [["--sqlite", "--record-timings"], {}, { ...plain, store: "sqlite", recordTimings: true }],
    [[], { TEST_STORE: "postgres" }, { ...plain, store: "postgres" }],
  ] as const)("%j with %j", (words, env, expected) => {
    expect(readArguments(words, env)).toEqual(expected as never);
  });
});
