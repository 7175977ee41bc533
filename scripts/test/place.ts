/**
 * Creates the folder that a run's tests write to. It is in memory if the system has enough, so that no commit waits for a disk. The run removes
 * it at its end. The next run removes the folder of a killed run.
 */
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";

/** The folder where Linux stores files in memory. */
const IN_MEMORY = "/dev/shm";
/** Space for clones with all that they install, and a dozen stores. */
const ROOM_BYTES = 8 * 2 ** 30;
const PREFIX = "relay-tests-";

/** Creates the folder. Its name contains the process id of its run. */
export function makePlace(): string {
  for (const parent of new Set([IN_MEMORY, tmpdir()])) removeAbandoned(parent);
  const folder = mkdtempSync(join(isRoomInMemory() ? IN_MEMORY : tmpdir(), `${PREFIX}${process.pid}-`));
  // These permissions let a test that runs as another user reach its own folder, as in /tmp.
  chmodSync(folder, 0o711);
  return folder;
}

export function removePlace(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}

/** Removes the folders of runs whose process has ended. */
function removeAbandoned(parent: string): void {
  if (!existsSync(parent)) return;
  for (const name of readdirSync(parent)) {
    const pid = /^relay-tests-(\d+)-/.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) removePlace(join(parent, name));
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** True if enough memory is free and the folder allows programs to start. */
function isRoomInMemory(): boolean {
  if (!existsSync(IN_MEMORY)) return false;
  const { bavail, bsize } = statfsSync(IN_MEMORY);
  if (bavail * bsize < ROOM_BYTES || freemem() < ROOM_BYTES) return false;
  try {
    const folder = mkdtempSync(join(IN_MEMORY, `${PREFIX}${process.pid}-`));
    const program = join(folder, "program");
    writeFileSync(program, "#!/bin/sh\n", { mode: 0o755 });
    const { success } = Bun.spawnSync([program]);
    rmSync(folder, { recursive: true });
    return success;
  } catch {
    return false;
  }
}
