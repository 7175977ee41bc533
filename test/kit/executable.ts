/**
 * The compiled executable as a stranger has it: alone in a folder, with an empty PATH, a home elsewhere and none of this machine's
 * variables. It runs commands, starts the service, and waits for what they print, never for a time to pass.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { copyExecutable, type Program } from "./executable-build.ts";
import { ProcessOutput } from "./executable-output.ts";

interface Ran {
  code: number;
  /** Standard output. */
  said: string;
  /** Standard error. */
  told: string;
}

interface RunOptions {
  cwd: string;
  input?: string;
  env?: Record<string, string>;
  /** `usual`: the service chooses its port itself; else a free one, unless the line names one. */
  port?: "usual";
  /** Starts it by this command, the executable and its words after it. */
  through?: readonly string[];
}

export interface Executable extends Disposable {
  file: string;
  /** A new empty folder, gone with the executable. */
  makeFolder(): string;
  /** Runs one command to its end. */
  run(line: readonly string[], options: RunOptions): Promise<Ran>;
  /** Starts `dev` or `serve` and resolves once it listens. */
  start(line: readonly string[], options: RunOptions): Promise<StartedExecutable>;
}

export interface StartedExecutable extends AsyncDisposable {
  /** Where it listens: `http://127.0.0.1:3000`. */
  url: string;
  pid: number;
  /** A line on its standard input. */
  write(line: string): void;
  said: ProcessOutput;
  told: ProcessOutput;
  /** Sends the signal and resolves with the exit code, null where the signal ended it. */
  end(signal: "SIGTERM" | "SIGINT" | "SIGKILL"): Promise<number | null>;
  /** Resolves with the exit code once it has ended by itself. */
  ended: Promise<number>;
}

/** Builds where that is needed, and puts the executable alone into a folder of its own. */
export function placeExecutable(program: Program = "relay"): Executable {
  const place = mkdtempSync(join(tmpdir(), "relay-executable-"));
  for (const name of ["bin", "home", "path"]) mkdirSync(join(place, name));
  const file = join(place, "bin", process.platform === "win32" ? "relay.exe" : "relay");
  copyExecutable(file, program);
  chmodSync(file, 0o755);
  const spawn = <Stdin extends "pipe" | "ignore" | Blob>(line: readonly string[], stdin: Stdin, { cwd, env, through = [] }: RunOptions) =>
    Bun.spawn([...through, file, ...line], {
      cwd,
      env: { PATH: join(place, "path"), HOME: join(place, "home"), ...env },
      stdin,
      stdout: "pipe",
      stderr: "pipe",
    });
  return {
    file,
    makeFolder: () => mkdtempSync(join(place, "work-")),
    async run(line, options) {
      const child = spawn(line, options.input === undefined ? "ignore" : new Blob([options.input]), options);
      const [said, told, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
      return { code, said, told };
    },
    async start(line, options) {
      const chosen = options.port === "usual" || line.includes("--port");
      const child = spawn(chosen ? line : [...line, "--port", "0"], program === "staged" ? "pipe" : "ignore", options);
      const said = new ProcessOutput(child.stdout);
      const told = new ProcessOutput(child.stderr);
      const started: StartedExecutable = {
        url: "",
        pid: child.pid,
        write(words) {
          child.stdin?.write(`${words}\n`);
          child.stdin?.flush();
        },
        said,
        told,
        ended: child.exited,
        async end(signal) {
          child.kill(signal);
          await child.exited;
          return child.exitCode;
        },
        async [Symbol.asyncDispose]() {
          child.kill("SIGKILL");
          await child.exited;
        },
      };
      try {
        const where = await said.waitFor(line[0] === "serve" ? "Listening" : "Dashboard");
        return Object.assign(started, { url: new URL(where.split(/\s+/)[1] ?? "").origin });
      } catch {
        await child.exited;
        throw new Error(`relay ${line.join(" ")} ended with ${child.exitCode}: ${told.text}`);
      }
    },
    [Symbol.dispose]: () => rmSync(place, { recursive: true, force: true }),
  };
}
