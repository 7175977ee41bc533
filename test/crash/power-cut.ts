/**
 * A disk whose power a test can cut: an ext4 image on a loop device. The cut shuts the file system down without writing its log, so unsynced data is
 * lost, and mounts it again. A cut can also tear a write in progress: of its unsynced sectors, some arrive and some do not, in any order. It needs
 * Linux and root. The long crash loop uses it if `RELAY_CRASH_POWER` is set.
 */
import { dlopen } from "bun:ffi";
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";

/**
 * The image uses no space until data is written. A thousand kills leave about a hundred thousand events, and replaying them in one transaction needs
 * a log as large as their database.
 */
const IMAGE_BYTES = 8 * 1024 * 1024 * 1024;
/** The ioctl EXT4_IOC_SHUTDOWN of ext4 with the flag "do not flush the log". */
const SHUTDOWN = 0x8004_587d;
const WITHOUT_LOG = new Uint32Array([2]);

/** The unit that a disk writes atomically. */
const SECTOR_BYTES = 512;
/** Number of tries to find a write before its sync, because the two are close together. */
const TEAR_TURNS = 300;
/** Files that are written in place. Every other file is complete once it is synced. */
const TORN_FILES = ["relay.db", "relay.db-wal"];

/** System call that tells which parts of a file are in memory and not yet on the disk: Linux 6.5, the same number on every platform. */
const CACHESTAT = 451n;
const WHOLE_FILE = new BigUint64Array([0n, 0n]);
const DIRTY_PAGES = 1;
const PAGES_BEING_WRITTEN = 2;

const libc = dlopen("libc.so.6", {
  ioctl: { args: ["i32", "u64", "ptr"], returns: "i32" },
  syscall: { args: ["i64", "i64", "ptr", "ptr", "i64"], returns: "i64" },
});

interface CuttableDisk extends AsyncDisposable {
  /** A folder on the disk. */
  dataDir: string;
  /** Returns the contents of the files as their writer sees them, or null if everything is synced. No process may write at the same time. */
  look(): Written | null;
  /** Cuts the power. Every later write fails. */
  cut(): void;
  /** Mounts the disk again. No process may use it. */
  restore(): Promise<void>;
  /** Makes some of the unsynced data arrive. Returns how many sectors arrived and how many did not. */
  tear(written: Written, random: () => number): { arrived: number; lost: number };
}

/** Contents by file. */
type Written = ReadonlyMap<string, Buffer>;

export async function makeCuttableDisk(folder: string): Promise<CuttableDisk> {
  const image = join(folder, "disk.img");
  const mounted = join(folder, "disk");
  mkdirSync(mounted);
  await run("truncate", "-s", String(IMAGE_BYTES), image);
  await run("mkfs.ext4", "-q", "-F", image);
  await run("mount", "-o", "loop", image, mounted);
  const dataDir = join(mounted, "data");
  const list = (): string[] => TORN_FILES.map((name) => join(dataDir, name)).filter((file) => existsSync(file));
  return {
    dataDir,
    look: () => (list().some(isDirty) ? new Map(list().map((file) => [file, readFileSync(file)])) : null),
    cut() {
      const file = openSync(mounted, "r");
      if (libc.symbols.ioctl(file, SHUTDOWN, WITHOUT_LOG) !== 0) throw new Error("The disk was not shut down.");
      closeSync(file);
    },
    async restore() {
      await run("umount", mounted);
      await run("mount", "-o", "loop", image, mounted);
    },
    tear(written, random) {
      const [share, torn] = [random(), { arrived: 0, lost: 0 }];
      for (const file of list()) tearFile(file, written.get(file), () => random() < share, torn);
      return torn;
    },
    async [Symbol.asyncDispose]() {
      await run("umount", mounted);
    },
  };
}

function isDirty(path: string): boolean {
  const pages = new BigUint64Array(5);
  const file = openSync(path, "r");
  if (Number(libc.symbols.syscall(CACHESTAT, file, WHOLE_FILE, pages, 0)) !== 0) throw new Error("Linux 6.5 or later is needed.");
  closeSync(file);
  return pages[DIRTY_PAGES] !== 0n || pages[PAGES_BEING_WRITTEN] !== 0n;
}

/** Number of power cuts, how many of them tore a write in progress, and how many of its sectors arrived and were lost. */
export interface PowerCuts {
  power: number;
  torn: number;
  arrived: number;
  lost: number;
}

/** Cuts the power under the service. The returned function restores the disk once the service is dead. */
export async function cutPower(disk: CuttableDisk, pid: number, tears: boolean): Promise<(random: () => number) => Promise<PowerCuts>> {
  const written = tears ? await stopInWrite(disk, pid) : null;
  disk.cut();
  return async (random) => {
    await disk.restore();
    const { arrived, lost } = written === null ? { arrived: 0, lost: 0 } : disk.tear(written, random);
    return { power: 1, torn: arrived + lost > 0 ? 1 : 0, arrived, lost };
  };
}

/** Stops the service while some data is written but not synced. Returns null if no such moment was found. */
async function stopInWrite(disk: CuttableDisk, pid: number): Promise<Written | null> {
  for (let turn = 0; turn < TEAR_TURNS; turn++) {
    process.kill(pid, "SIGSTOP");
    while (!areStopped(pid)) await Bun.sleep(1);
    const written = disk.look();
    if (written !== null) return written;
    process.kill(pid, "SIGCONT");
    await Bun.sleep(turn % 7);
  }
  return null;
}

/** Returns whether all threads of the process are stopped. */
function areStopped(pid: number): boolean {
  const threads = `/proc/${pid}/task`;
  // The state follows the name in brackets.
  return readdirSync(threads).every((thread) => /.*\) T/s.test(readFileSync(join(threads, thread, "stat"), "utf8")));
}

export function addCut(cuts: PowerCuts, one: PowerCuts): void {
  for (const key of Object.keys(cuts) as (keyof PowerCuts)[]) cuts[key] += one[key];
}

function tearFile(path: string, written: Buffer | undefined, arrives: () => boolean, torn: { arrived: number; lost: number }): void {
  if (written === undefined) return;
  const synced = readFileSync(path);
  const file = openSync(path, "r+");
  for (let at = 0; at < written.length; at += SECTOR_BYTES) {
    const sector = written.subarray(at, at + SECTOR_BYTES);
    if (sector.equals(synced.subarray(at, at + SECTOR_BYTES))) continue;
    if (!arrives()) torn.lost += 1;
    else {
      writeSync(file, sector, 0, sector.length, at);
      torn.arrived += 1;
    }
  }
  closeSync(file);
}

async function run(...command: string[]): Promise<void> {
  const child = Bun.spawn(command, { stdout: "ignore", stderr: "pipe" });
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: ${await new Response(child.stderr).text()}`);
}
