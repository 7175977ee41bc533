/** The real command line as a process of its own, compiled as it is released; its lines are awaited, never a time. */
import { join } from "node:path";
import { requireExecutable } from "./executable-build.ts";

export interface CliProcess extends AsyncDisposable {
  /** Resolves with the first line (of either stream, seen or to come) that holds the text; rejects when the process ends before. */
  line(text: string): Promise<string>;
  /** Every line so far. */
  lines(): readonly string[];
  kill(signal: "SIGINT" | "SIGTERM" | "SIGKILL" | "SIGSTOP" | "SIGCONT"): void;
  pid: number;
  /** The exit code. */
  exited: Promise<number>;
  /** Resolves once neither it nor a process that it started can say anything more. */
  silent: Promise<unknown>;
}

/** Starts `relay <line>`, or with `command` another program in its place. */
export function startCli(line: readonly string[], options: { cwd: string; env?: Record<string, string>; command?: readonly string[] }): CliProcess {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("RELAY_"));
  const child = Bun.spawn([...(options.command ?? [requireExecutable("relay")]), ...line], {
    cwd: options.cwd,
    // Nobody's own profiles are looked at.
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

/** A port of this machine that nobody listens on now. */
export async function findFreePort(): Promise<number> {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port } = server;
  await server.stop(true);
  return port ?? 0;
}
