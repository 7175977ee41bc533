/** Runs the compiled command line to its end in a pseudo-terminal of a given size. */
import { join } from "node:path";
import { requireExecutable } from "./executable-build.ts";

interface Shown {
  code: number;
  /** Everything that the terminal received. */
  raw: string;
  /** The lines without colors. */
  lines: string[];
}

/** Runs `relay <line>` in a terminal of this size. */
export async function runInTerminal(
  line: readonly string[],
  { cwd, columns, rows = 50, env = {} }: { cwd: string; columns: number; rows?: number; env?: Record<string, string> },
): Promise<Shown> {
  const decoder = new TextDecoder();
  let raw = "";
  const ended = Promise.withResolvers<void>();
  const inherited = Object.entries(process.env).filter(([name]) => !/^(RELAY_|NO_COLOR|FORCE_COLOR|CLICOLOR|PAGER|LESS|COLUMNS)/.test(name));
  await using terminal = new Bun.Terminal({
    cols: columns,
    rows,
    data(_, chunk) {
      raw += decoder.decode(chunk, { stream: true });
      if (raw.includes(END)) ended.resolve();
    },
  });
  const all = { ...Object.fromEntries(inherited), TERM: "xterm-256color", XDG_CONFIG_HOME: join(cwd, ".config"), ...env };
  const child = Bun.spawn([requireExecutable("relay"), ...line], { cwd, env: all, terminal });
  const code = await child.exited;
  // The terminal receives this text after everything that the command wrote.
  Bun.spawn([process.execPath, "-e", `process.stdout.write(${JSON.stringify(END)})`], { terminal });
  await ended.promise;
  const shown = raw.slice(0, raw.indexOf(END));
  return { code, raw: shown, lines: Bun.stripANSI(shown).replaceAll("\r", "").trimEnd().split("\n") };
}

const END = "<that is all>";
