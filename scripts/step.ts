/** Runs the commands of a script on this terminal. The script decides what happens after a failure. */

/** Runs the command and returns its exit code. `cwd` defaults to the current folder. `env` is added to the environment of this process. */
export async function runStep(
  command: readonly string[],
  options: { cwd?: string; env?: Record<string, string> } = {},
): Promise<number> {
  const child = Bun.spawn([...command], {
    cwd: options.cwd ?? process.cwd(),
    env: { ...process.env, ...options.env },
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
  });
  return await child.exited;
}

/** Returns the command that runs a file of an installed package with this Bun, so Node is not needed. */
export function toolCommand(file: string, ...args: string[]): string[] {
  return [process.execPath, `node_modules/${file}`, ...args];
}
