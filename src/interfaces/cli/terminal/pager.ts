/** Shows long output through a pager on a terminal: the one in PAGER, otherwise less if it is installed, otherwise none. */

type Env = Readonly<Record<string, string | undefined>>;

/** Returns the pager's command, or null if there is none or the user wants none. */
export function findPager(env: Env): string[] | null {
  const named = env.PAGER?.trim();
  if (named === undefined) return Bun.which("less") === null ? null : ["less", "-R"];
  const command = named.split(/\s+/).filter((word) => word !== "");
  return command.length === 0 || command[0] === "cat" ? null : command;
}

/** Reports whether the text needs more lines than the screen has, including wrapped lines. */
export function isLong(text: string, columns: number, rows: number): boolean {
  let lines = 0;
  for (const line of text.split("\n")) {
    lines += Math.max(1, Math.ceil(Bun.stringWidth(line) / columns));
    if (lines >= rows) return true;
  }
  return false;
}

/** Shows the text in the pager, and resolves when the user leaves it. Resolves to false if it could not start. */
export async function runPager(command: readonly string[], text: string, env: Env): Promise<boolean> {
  // Ctrl+C belongs to the pager while it runs.
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
      // The user left the pager before it read everything.
    }
    return (await child.exited) !== 127;
  } catch {
    return false;
  } finally {
    process.off("SIGINT", ignore);
  }
}
