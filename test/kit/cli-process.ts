/** Runs the compiled command line as a separate process. Tests wait for its lines, never for a time. */
import { join } from "node:path";
import { requireExecutable } from "./executable-build.ts";

export interface CliProcess extends AsyncDisposable {
  /** Resolves with the first line of either stream that contains the text, past or future. Rejects if the process ends first. */
  line(text: string): Promise<string>;
  /** All lines so far, of both streams. */
  lines(): readonly string[];
  kill(signal: "SIGINT" | "SIGTERM" | "SIGKILL" | "SIGSTOP" | "SIGCONT"): void;
  pid: number;
  /** The exit code. */
  exited: Promise<number>;
  /** Resolves once the process and its child processes have closed their output. */
  silent: Promise<unknown>;
}

/** Starts `relay <line>`, or another program if `command` is set. */
export function startCli(line: readonly string[], options: { cwd: string; env?: Record<string, string>; command?: readonly string[] }): CliProcess {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("RELAY_"));
  const child = Bun.spawn([...(options.command ?? [requireExecutable("relay")]), ...line], {
    cwd: options.cwd,
    // The profiles of the person who runs the tests must not affect them.
    env: { ...Object.fromEntries(inherited), XDG_CONFIG_HOME: join(options.cwd, ".config"), ...options.env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const lines = new Lines();
  const ended = Promise.all([lines.follow(child.stdout), lines.follow(child.stderr)]);
  void ended.then(() => lines.end());
  return {
    line: (text) => lines.find(text),
    lines: () => lines.seen,
    kill: (signal) => child.kill(signal),
    pid: child.pid,
    exited: child.exited,
    silent: ended,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

class Lines {
  readonly seen: string[] = [];
  #waiting: { text: string; resolve: (line: string) => void; reject: (error: Error) => void }[] = [];
  #ended = false;

  find(text: string): Promise<string> {
    const seen = this.seen.find((line) => line.includes(text));
    if (seen !== undefined) return Promise.resolve(seen);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ text, resolve, reject });
      if (this.#ended) this.end();
    });
  }

  async follow(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of stream) {
      const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = parts.pop() ?? "";
      for (const line of parts) this.#add(line);
    }
    if (rest !== "") this.#add(rest);
  }

  end(): void {
    this.#ended = true;
    for (const { text, reject } of this.#waiting.splice(0)) {
      reject(new Error(`The process ended without the line ${text}. It said:\n${this.seen.join("\n")}`));
    }
  }

  #add(line: string): void {
    this.seen.push(line);
    this.#waiting = this.#waiting.filter(({ text, resolve }) => {
      if (!line.includes(text)) return true;
      resolve(line);
      return false;
    });
  }
}

/** Returns a local port that no process listens on now. */
export async function findFreePort(): Promise<number> {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port } = server;
  await server.stop(true);
  return port ?? 0;
}
