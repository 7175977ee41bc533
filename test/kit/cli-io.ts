/** Runs commands in a test. It collects their output, provides their input, and starts a service only if the test passes one. */

import { SYSTEM } from "../../src/base/system.ts";
import { readManual } from "../../src/boot/documentation.ts";
import type { Io } from "../../src/interfaces/cli/io.ts";
import { runCommandLine } from "../../src/interfaces/cli/run.ts";
import { VirtualClock } from "./virtual-clock.ts";

export interface CommandResult {
  code: number;
  /** Standard output. */
  said: string;
  /** Standard error. */
  told: string;
}

/** Runs one command in `cwd`. */
export async function runCommand(
  line: readonly string[],
  given: { cwd: string; input?: string | Uint8Array; hear?: (text: string) => void } & Partial<
    Omit<Io, "say" | "tell" | "draw" | "cwd" | "readInput" | "readInputBytes">
  >,
): Promise<CommandResult> {
  const { input = "", hear = () => undefined, ...parts } = given;
  const said: string[] = [];
  const told: string[] = [];
  const io: Io = {
    clock: new VirtualClock(Date.UTC(2030, 0, 1)),
    env: {},
    system: SYSTEM,
    machine: { name: "test-laptop", account: "ann" },
    interactive: false,
    screen: { columns: null, rows: null, colour: false, clever: false },
    page: () => Promise.resolve(false),
    redraw: () => undefined,
    confirm: () => Promise.resolve(false),
    untilStopped: () => Promise.resolve(),
    endWithin: () => () => undefined,
    findCommit: () => Promise.resolve(null),
    openBrowser: () => Promise.resolve(false),
    startService: () => Promise.reject(new Error("This test starts no service.")),
    readManual: () => Promise.resolve(readManual()),
    confirmAside: () => Promise.resolve(null),
    askSecret: () => Promise.resolve(null),
    watched: false,
    readInput: () => Promise.resolve(Buffer.from(input).toString()),
    readInputBytes: () => Promise.resolve(Buffer.from(input)),
    async *inputLines() {
      yield* Buffer.from(input).toString().split("\n");
    },
    ...parts,
    draw: (text) => void said.push(text),
    print: (text) => {
      said.push(text);
      hear(text);
    },
    inform: (text) => {
      told.push(text);
      hear(text);
    },
  };
  const code = await runCommandLine(line, io);
  return { code, said: said.join("\n"), told: told.join("\n") };
}
