/** Checks that the list of mutants fits the current sources. Tests the command that runs it: its verdicts, its cleanup and its exit codes. */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Mutant, mutate, readMutants } from "../../scripts/mutants/list.ts";
import { POSTGRES_SUITES } from "../kit/postgres-suite.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const mutants = readMutants(PROJECT_ROOT);

/** Lists faults from outside audits that no test of version 0.17 found. */
const FOUND_BY_AUDITORS = [
  "dedupe-oldest-segment",
  "plan-mark-back",
  "clock-back-recorded",
  "lease-taken-twice",
  "cap-verified-charged",
  "cap-group-rolled-back",
];

describe("the list", () => {
  test("holds at least 60 mutants with unique names, including the auditors'", () => {
    const ids = mutants.map(({ id }) => id);
    expect(ids.length).toBeGreaterThanOrEqual(60);
    expect(ids.length).toBe(new Set(ids).size);
    expect(FOUND_BY_AUDITORS.filter((id) => !ids.includes(id))).toEqual([]);
  });

  test("changes a part of one line that occurs once in its file, and gives the reason", () => {
    const wrong = mutants.flatMap((mutant) => {
      const { id, before, after, why } = mutant;
      if (before === after || `${before}${after}`.includes("\n") || !why.endsWith(".")) return [`${id}: no change of one line, or no sentence`];
      const mutated = mutate(PROJECT_ROOT, mutant);
      return "fault" in mutated ? [`${id}: ${mutated.fault}`] : [];
    });
    expect(wrong).toEqual([]);
  });

  test("names existing tests, and for PostgreSQL only suites that run there", () => {
    const wrong = mutants.flatMap(({ id, suites, on }) =>
      suites.length === 0
        ? [`${id}: no suites`]
        : suites
            .filter((suite) => !existsSync(join(PROJECT_ROOT, suite)) || (on === "postgres" && !POSTGRES_SUITES.includes(suite)))
            .map((suite) => `${id}: ${suite}`),
    );
    expect(wrong).toEqual([]);
  });
});

const MUTANT: Omit<Mutant, "area" | "id" | "before" | "after"> = {
  file: "src/limit.ts",
  why: "One more passes.",
  suites: ["test/limit.test.ts"],
};
const TEST = `import { expect, test } from "bun:test";
import { isFull, isOdd } from "../src/limit.ts";
test("a limit is full", () => expect([isFull(2), isFull(3)]).toEqual([false, true]));
test("one is odd", () => expect(isOdd(1)).toBe(true));
`;
const FILES: Readonly<Record<string, string>> = {
  "src/limit.ts":
    "export const isFull = (count: number): boolean => count >= 3;\nexport const isOdd = (count: number): boolean => count % 2 === 1;\n",
  "test/limit.test.ts": TEST,
  "test/mutants/cap.json": JSON.stringify([
    { id: "cap-full", before: "count >= 3", after: "count > 3", ...MUTANT },
    { id: "cap-odd", before: "count % 2 === 1", after: "count % 4 === 1", ...MUTANT },
    { id: "cap-gone", before: "count > 4", after: "count > 5", ...MUTANT },
  ]),
};

/** Creates a small project with a separate folder for the command's temporary files. */
function makeProject(files: Readonly<Record<string, string>> = FILES) {
  const folder = mkdtempSync(join(tmpdir(), "relay-mutants-test-"));
  const [root, scratch] = [join(folder, "project"), join(folder, "tmp")];
  mkdirSync(scratch);
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
  const start = (...args: string[]) =>
    Bun.spawn([process.execPath, join(PROJECT_ROOT, "scripts/mutants/main.ts"), ...args], {
      cwd: root,
      env: { ...process.env, TMPDIR: scratch },
      stdout: "pipe",
      stderr: "inherit",
    });
  return {
    root,
    start,
    left: () => readdirSync(scratch),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

describe("the command", () => {
  test("reports killed and survived mutants, changes nothing and fails", async () => {
    using project = makeProject();
    const child = project.start();
    const lines = (await new Response(child.stdout).text()).replace(/\(\d+\.\d s\)/g, "(0 s)").split("\n");
    expect(await child.exited).toBe(1);
    expect(lines.slice(0, 3)).toEqual([
      "1/3 killed cap-full (0 s): test/limit.test.ts > a limit is full",
      "2/3 survived cap-odd (0 s): One more passes.",
      "3/3 not judged cap-gone (0 s): its text stands 0 times in src/limit.ts",
    ]);
    expect(lines.at(-2)).toBe("1 killed, 1 survived, 1 not judged");
    expect(readFileSync(join(project.root, "src/limit.ts"), "utf8")).toBe(FILES["src/limit.ts"] ?? "");
    expect(project.left()).toEqual([]);
  });

  test("runs only the named mutants, and succeeds if every one is killed", async () => {
    using project = makeProject();
    const child = project.start("--only", "cap-full");
    expect((await new Response(child.stdout).text()).trimEnd().split("\n").at(-1)).toBe("1 killed, 0 survived");
    expect(await child.exited).toBe(0);
  });

  test("judges no mutant by a test that also fails without it", async () => {
    using project = makeProject({ ...FILES, "test/limit.test.ts": TEST.replace("isOdd(1)", "isOdd(2)") });
    const child = project.start("--only", "cap-odd");
    expect(await new Response(child.stdout).text()).toContain("test/limit.test.ts fails without a mutant: one is odd");
    expect(await child.exited).toBe(1);
  });

  test("ends its processes on a signal, and leaves no folder", async () => {
    using project = makeProject({ ...FILES, "test/limit.test.ts": WAITS });
    const child = project.start();
    const note = join(project.root, "..", "waits");
    while (!existsSync(note)) await Bun.sleep(20);
    child.kill("SIGINT");
    expect(await child.exited).toBe(130);
    expect(project.left()).toEqual([]);
    while (runs(Number(readFileSync(note, "utf8")))) await Bun.sleep(20);
  });
});

/** Starts a process and waits for it. A file next to the command's folder holds the process id. */
const WAITS = `import { test } from "bun:test";
import { renameSync, writeFileSync } from "node:fs";
test("waits", async () => {
  const { pid, exited } = Bun.spawn([process.execPath, "-e", "setTimeout(() => undefined, 600_000)"]);
  writeFileSync("../pid", String(pid));
  renameSync("../pid", "../../../waits");
  await exited;
});
`;

function runs(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
