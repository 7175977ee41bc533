/** Long output goes through a pager on a terminal: PAGER's, else less where it is there, else none. */

type Env = Readonly<Record<string, string | undefined>>;

/** The pager's command; null: there is none, or none is wanted. */
export function findPager(env: Env): string[] | null {
  const named = env.PAGER?.trim();
  if (named === undefined) return Bun.which("less") === null ? null : ["less", "-R"];
  const command = named.split(/\s+/).filter((word) => word !== "");
  return command.length === 0 || command[0] === "cat" ? null : command;
}

/** Whether the text is longer than the screen is high, its lines as wide as they are. */
export function isLong(text: string, columns: number, rows: number): boolean {
  let lines = 0;
  for (const line of text.split("\n")) {
    lines += Math.max(1, Math.ceil(Bun.stringWidth(line) / columns));
    if (lines >= rows) return true;
  }
  return false;
}

/** Shows the text in the pager, and answers when it is left; false: it could not be started. */
export async function runPager(command: readonly string[], text: string, env: Env): Promise<boolean> {
  // Ctrl+C belongs to the pager while it is there.
  const ignore = (): void => undefined;
  process.on("SIGINT", ignore);
  try {
    const child = Bun.spawn([...command], {
      env: { ...env, LESS: env.LESS ?? "FRX" },
      stdin: "pipe",
      stdout: "inherit",
      stderr: "inherit",
    });
    try {
      child.stdin.write(`${text}\n`);
      await child.stdin.end();
    } catch {
      // It was left before it had read everything.
    }
    return (await child.exited) !== 127;
  } catch {
    return false;
  } finally {
    process.off("SIGINT", ignore);
  }
}
