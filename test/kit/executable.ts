/**
 * The compiled executable in a bare environment: the only file in its folder, with an empty PATH, a separate home and none of this machine's
 * variables. It runs commands, starts the service, and waits for output, never for a time.
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
  /** `usual`: the service chooses its port itself. Otherwise it gets a free port, unless the line names one. */
  port?: "usual";
  /** Command that starts the executable. The executable and its arguments follow it. */
  through?: readonly string[];
}

export interface Executable extends Disposable {
  file: string;
  /** Creates an empty folder, which is removed with the executable. */
  makeFolder(): string;
  /** Runs one command to its end. */
  run(line: readonly string[], options: RunOptions): Promise<Ran>;
  /** Starts `dev` or `serve`. Resolves once the service listens. */
  start(line: readonly string[], options: RunOptions): Promise<StartedExecutable>;
}

export interface StartedExecutable extends AsyncDisposable {
  /** Base URL of the service, such as `http://127.0.0.1:3000`. */
  url: string;
  pid: number;
  /** Writes a line to the service's standard input. */
  write(line: string): void;
  said: ProcessOutput;
  told: ProcessOutput;
  /** Sends the signal. Resolves with the exit code, or with null if the signal ended the process. */
  end(signal: "SIGTERM" | "SIGINT" | "SIGKILL"): Promise<number | null>;
  /** Resolves with the exit code once the process has ended. */
  ended: Promise<number>;
}

/** Builds the executable if needed, and copies it into a new folder that has no other files. */
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
