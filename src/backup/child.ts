/** Making a backup in a process of its own, by this very program: copying a large database takes a while and must not hold up the server. */
import { constants, setPriority } from "node:os";

/** A running one. */
export interface BackupProcess {
  /** Resolves when it is made; rejects with what the process said. */
  done: Promise<void>;
  /** Ends it at once. */
  stop(): void;
}

export type StartBackup = (file: string) => BackupProcess;

/** Starts `relay backup <file>` on the data directory, with the least claim on the processor. `command` is how this program is called. */
export function backupInChild(dataDir: string, command: readonly string[] = ownCommand()): StartBackup {
  return (file) => {
    const { RELAY_MASTER_KEY: _, ...env } = process.env;
    const child = Bun.spawn([...command, "backup", file, "--data-dir", dataDir, "--json"], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
      env,
    });
    yieldProcessor(child.pid);
    return { done: settle(child), stop: () => child.kill() };
  };
}

async function settle(child: Bun.Subprocess<"ignore", "ignore", "pipe">): Promise<void> {
  const said = await new Response(child.stderr).text();
  const code = await child.exited;
  if (code === 0) return;
  throw new Error(
    said.trim().split("\n")[0] || `the backup's process ended with ${child.signalCode ?? code}`,
  );
}

/** How this program is called: alone where it was compiled into one file, else the runtime with the main file. */
function ownCommand(): string[] {
  const embedded = /^\/\$bunfs\/|^[A-Z]:[\\/]~BUN[\\/]/i.test(Bun.main);
  return embedded ? [process.execPath] : [process.execPath, Bun.main];
}

function yieldProcessor(pid: number): void {
  try {
    setPriority(pid, constants.priority.PRIORITY_LOW);
  } catch {
    // It ended already, or the system does not let us: then it runs as any other.
  }
}
