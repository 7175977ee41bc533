/** Tests the plan of a test run: each file's database and order, and the parsing of the command's arguments. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readArguments } from "../../scripts/test/arguments.ts";
import { mostlyWaits, nameJob, planBatches, planJobs, readTimings, type Timings } from "../../scripts/test/plan.ts";
import { SOAK_FILES } from "../../scripts/test/soak-files.ts";
import { LONG_POSTGRES_SUITES, POSTGRES_SUITES } from "../kit/postgres-suite.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const TIMINGS = join(PROJECT_ROOT, "scripts/test/timings.json");
const files = ["test/a.test.ts", "test/b.test.ts", "test/c.test.ts"];
const timings: Timings = { "test/a.test.ts": [1, 1], "test/c.test.ts": [20, 2], "test/a.test.ts (PostgreSQL)": [9, 8] };
const named = (options: Partial<Parameters<typeof planJobs>[0]>) =>
  planJobs({ files, onPostgres: ["test/a.test.ts"], store: null, timings, ...options }).map(nameJob);

describe("the plan", () => {
  test("runs every file, those of both databases twice, and the longest first", () => {
    expect(named({})).toEqual(["test/c.test.ts", "test/a.test.ts (PostgreSQL)", "test/b.test.ts", "test/a.test.ts"]);
  });

  test("runs only the named database", () => {
    expect(named({ store: "postgres" })).toEqual(["test/a.test.ts (PostgreSQL)"]);
    expect(named({ store: "sqlite" })).toEqual(["test/c.test.ts", "test/b.test.ts", "test/a.test.ts"]);
  });

  test("gives a separate lane to a file that takes long and computes little", () => {
    const [waits, ...others] = planJobs({ files, onPostgres: [], store: null, timings });
    expect(waits !== undefined && mostlyWaits(waits)).toBe(true);
    expect(others.filter(mostlyWaits)).toEqual([]);
  });

  test("runs the short files of one folder and one database in one process, the longest batch first", () => {
    const made = (file: string, coreSeconds: number, store: "sqlite" | "postgres" = "sqlite") => ({ file, store, seconds: coreSeconds, coreSeconds });
    const [long, ...short] = [made("test/rule/long.test.ts", 20), made("test/rule/a.test.ts", 3), made("test/rule/b.test.ts", 2)];
    const others = [made("test/rule/a.test.ts", 1, "postgres"), made("test/flow/c.test.ts", 1.5), made("test/crash/d.test.ts", 0.5)];
    const jobs = [long as (typeof short)[0], ...short, ...others];
    const named = (isShared: boolean) => planBatches(jobs, isShared).map((batch) => batch.map(nameJob));
    expect(named(true)).toEqual([
      ["test/rule/long.test.ts"],
      ["test/rule/a.test.ts", "test/rule/b.test.ts"],
      ["test/flow/c.test.ts"],
      ["test/rule/a.test.ts (PostgreSQL)"],
      ["test/crash/d.test.ts"],
    ]);
    expect(named(false).every((batch) => batch.length === 1)).toBe(true);
  });

  test("ends a batch once its files compute for long enough", () => {
    const jobs = Array.from({ length: 20 }, (_, n) => ({ file: `test/rule/${n}.test.ts`, store: "sqlite" as const, seconds: 5, coreSeconds: 5 }));
    expect(planBatches(jobs, true).map((batch) => batch.length)).toEqual([4, 4, 4, 4, 4]);
  });

  test("leaves only existing files to the soak, each once", () => {
    expect(SOAK_FILES.filter((file) => !existsSync(join(PROJECT_ROOT, file)))).toEqual([]);
    expect([...new Set(SOAK_FILES)]).toEqual([...SOAK_FILES]);
  });

  test("has recorded timings only for existing files", () => {
    const recorded = Object.keys(readTimings(TIMINGS)).map((name) => name.replace(/ \(PostgreSQL\)$/, ""));
    expect(recorded.length).toBeGreaterThan(300);
    expect(recorded.filter((file) => !existsSync(join(PROJECT_ROOT, file)))).toEqual([]);
    expect(POSTGRES_SUITES.filter((file) => !existsSync(join(PROJECT_ROOT, file)))).toEqual([]);
    expect(LONG_POSTGRES_SUITES.filter((file) => !POSTGRES_SUITES.includes(file))).toEqual([]);
  });
});

describe("the arguments of the command", () => {
  const plain = { files: [], passedOn: [], soak: false, long: false, store: null, recordTimings: false };
  test.each([
    [[], {}, plain],
    [["./test/rule/x.test.ts"], {}, { ...plain, files: ["test/rule/x.test.ts"] }],
    [["rule", "-t", "a name"], {}, { ...plain, files: ["rule"], passedOn: ["-t", "a name"] }],
    [["--bail"], {}, { ...plain, passedOn: ["--bail"] }],
    [["--soak", "--postgres"], {}, { ...plain, soak: true, store: "postgres" }],
    [["--soak", "--long"], {}, { ...plain, soak: true, long: true }],
    [["--sqlite", "--record-timings"], {}, { ...plain, store: "sqlite", recordTimings: true }],
    [[], { TEST_STORE: "postgres" }, { ...plain, store: "postgres" }],
  ] as const)("%j with %j", (words, env, expected) => {
    expect(readArguments(words, env)).toEqual(expected as never);
  });
});
