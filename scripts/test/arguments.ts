/** Reads the arguments of `npm test` and `npm run test:soak`. It decides nothing else. */

interface TestArguments {
  /** Parts of paths. A test file runs if its path contains one of them. Empty means every file. */
  files: string[];
  /** Arguments for `bun test`, for example `-t` and its pattern. */
  passedOn: string[];
  /** Runs long rounds instead of the few of `npm test`. */
  soak: boolean;
  /** Runs rounds for an hour, more than the soak's. */
  long: boolean;
  /** Limits the run to this database; null for both. */
  store: "sqlite" | "postgres" | null;
  /** Writes the timing of each file to scripts/test/timings.json. */
  recordTimings: boolean;
}

/** Options of `bun test` that take the next argument as their value. */
const WITH_VALUE = new Set(["-t", "--test-name-pattern", "--seed", "--rerun-each", "--retry"]);

/** Reads the arguments. An argument with a dot or a slash that is not an option names files. TEST_STORE in `env` can name the database. */
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
    else if (word === "--long") read.soak = read.long = true;
    else if (word === "--postgres") read.store = "postgres";
    else if (word === "--sqlite") read.store = "sqlite";
    else if (word === "--record-timings") read.recordTimings = true;
    else if (WITH_VALUE.has(word)) read.passedOn.push(word, left.shift() ?? "");
    else if (word.startsWith("-")) read.passedOn.push(word);
    else read.files.push(word.replace(/^\.\//, ""));
  }
  return read;
}
