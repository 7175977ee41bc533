/**
 * The folder that a run's tests write to: in memory where the system has room for that, so that no test's commit waits for a disk. It is removed at the
 * end of the run; the folder of a run that was killed is removed by the next run.
 */
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";

/** Where Linux keeps files in memory. */
const IN_MEMORY = "/dev/shm";
/** Clones with everything they install, and a dozen stores. */
const ROOM_BYTES = 8 * 2 ** 30;
const PREFIX = "relay-tests-";

/** Makes the folder; its name carries the process id of its run. */
export function makePlace(): string {
  for (const parent of new Set([IN_MEMORY, tmpdir()])) removeAbandoned(parent);
  const folder = mkdtempSync(join(isRoomInMemory() ? IN_MEMORY : tmpdir(), `${PREFIX}${process.pid}-`));
  // As /tmp is: a test that acts as another user reaches its own folder.
  chmodSync(folder, 0o711);
  return folder;
}

export function removePlace(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}

/** Removes the folders of runs whose process is gone. */
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

/** Whether enough is free, and programs can be started there. */
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
