/** The words after `npm test --` and `npm run test:soak --`. It reads them and decides nothing else. */

interface TestArguments {
  /** Parts of paths: a test file runs when its path contains one of them. Empty: every file. */
  files: string[];
  /** Passed on to `bun test`, such as `-t` and its pattern. */
  passedOn: string[];
  /** Long rounds instead of the slice of `npm test`. */
  soak: boolean;
  /** As many rounds as take an hour instead of the soak's. */
  long: boolean;
  /** Only the pass on this database; null: both. */
  store: "sqlite" | "postgres" | null;
  /** Write what each file took to scripts/test/timings.json. */
  recordTimings: boolean;
}

/** Options of `bun test` whose value is a word of its own. */
const WITH_VALUE = new Set(["-t", "--test-name-pattern", "--seed", "--rerun-each", "--retry"]);

/** Reads the words; a word with a dot or a slash that is not an option names files. `env` may name the database by TEST_STORE. */
export function readArguments(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): TestArguments {
  const read: TestArguments = {
    files: [],
    passedOn: [],
    soak: false,
    long: false,
    store: env.TEST_STORE === "postgres" ? "postgres" : null,
    recordTimings: false,
  };
  const left = [...words];
  for (let word = left.shift(); word !== undefined; word = left.shift()) {
    if (word === "--soak") read.soak = true;
    else if (word === "--long") read.long = true;
    else if (word === "--postgres") read.store = "postgres";
    else if (word === "--sqlite") read.store = "sqlite";
    else if (word === "--record-timings") read.recordTimings = true;
    else if (WITH_VALUE.has(word)) read.passedOn.push(word, left.shift() ?? "");
    else if (word.startsWith("-")) read.passedOn.push(word);
    else read.files.push(word.replace(/^\.\//, ""));
  }
  return read;
}
