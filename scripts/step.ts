/** Running one command of a script as a named step: what it prints goes to this terminal. It never decides what follows a failure. */

/** Runs the command with this Bun's environment; answers its exit code. `cwd`: where, the project's root by default; `env`: what it adds. */
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

/** The file of an installed package's command, run by this Bun so that no Node is needed. */
export function toolCommand(file: string, ...args: string[]): string[] {
  return [process.execPath, `node_modules/${file}`, ...args];
}
