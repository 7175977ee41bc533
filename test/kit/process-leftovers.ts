/**
 * Runs before every test file. It fails if a file leaves something in its process that affects the next file. The check runs at the end of the
 * process, so run one file by itself to check only that file.
 */
import { afterAll } from "bun:test";
import { readdirSync, readlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import process from "node:process";

/** Events whose listeners are compared. Signals are left out, because the browser that all files share listens for them. */
const LISTENED = ["uncaughtException", "unhandledRejection", "warning"];
/** Variable with the URL of the PostgreSQL that all tests share. The first test that asks for it sets the variable. */
const SHARED_VARIABLE = "RELAY_TEST_DATABASE";
const DESCRIPTORS = "/proc/self/fd";

/** Reads what tests replace for a while, by name. */
function readGlobals(): Record<string, unknown> {
  return {
    fetch: globalThis.fetch,
    WebSocket: globalThis.WebSocket,
    Date: globalThis.Date,
    "Date.now": Date.now,
    "Math.random": Math.random,
    "performance.now": performance.now,
    setTimeout: globalThis.setTimeout,
    setInterval: globalThis.setInterval,
    setImmediate: globalThis.setImmediate,
    "console.log": console.log,
    "console.error": console.error,
    "process.stdout.write": process.stdout.write,
    "process.stderr.write": process.stderr.write,
    "process.exit": process.exit,
    "process.kill": process.kill,
    "Bun.spawn": Bun.spawn,
    "working directory": process.cwd(),
    "process.exitCode": process.exitCode,
    ...Object.fromEntries(LISTENED.map((name) => [`listeners of ${name}`, process.listenerCount(name)])),
    ...Object.fromEntries(
      Object.entries(process.env)
        .filter(([name]) => name !== SHARED_VARIABLE)
        .map(([name, value]) => [`variable ${name}`, value]),
    ),
  };
}

/** Lists the files of the temporary folder that this process has open. Only Linux shows them. */
function listOpenFiles(): string[] {
  let descriptors: string[];
  try {
    descriptors = readdirSync(DESCRIPTORS);
  } catch {
    return [];
  }
  return descriptors.flatMap((one) => {
    try {
      const file = readlinkSync(`${DESCRIPTORS}/${one}`);
      return file.startsWith(`${tmpdir()}/`) ? [file] : [];
    } catch {
      return [];
    }
  });
}

const before = readGlobals();
const filesBefore = listOpenFiles();

afterAll(() => {
  const after = readGlobals();
  const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((name) => before[name] !== after[name]);
  const open = listOpenFiles().filter((file) => !filesBefore.includes(file));
  const found = [...changed, ...open.map((file) => `open file ${file}`)];
  if (found.length > 0) throw new Error(`These were not set back at the end of a test file: ${found.join(", ")}.`);
});
