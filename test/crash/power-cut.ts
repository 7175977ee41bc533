/**
 * A disk whose power can be cut: an ext4 image on a loop device that is shut down without writing its log, so that what was not synced is
 * gone, and mounted again as after a power cut. Linux and root alone; the long crash loop uses it where `RELAY_CRASH_POWER` is set.
 */
import { dlopen } from "bun:ffi";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";

const IMAGE_BYTES = 1024 * 1024 * 1024;
/** ext4's own: EXT4_IOC_SHUTDOWN with "do not flush the log". */
const SHUTDOWN = 0x8004_587d;
const WITHOUT_LOG = new Uint32Array([2]);

const libc = dlopen("libc.so.6", { ioctl: { args: ["i32", "u64", "ptr"], returns: "i32" } });

interface CuttableDisk extends AsyncDisposable {
  /** A folder on it. */
  dataDir: string;
  /** Cuts the power: every write fails from here on. */
  cut(): void;
  /** Mounts it again, once nobody uses it. */
  restore(): Promise<void>;
}

export async function makeCuttableDisk(folder: string): Promise<CuttableDisk> {
  const image = join(folder, "disk.img");
  const mounted = join(folder, "disk");
  mkdirSync(mounted);
  await run("truncate", "-s", String(IMAGE_BYTES), image);
  await run("mkfs.ext4", "-q", "-F", image);
  await run("mount", "-o", "loop", image, mounted);
  return {
    dataDir: join(mounted, "data"),
    cut() {
      const file = openSync(mounted, "r");
      if (libc.symbols.ioctl(file, SHUTDOWN, WITHOUT_LOG) !== 0) throw new Error("The disk was not shut down.");
      closeSync(file);
    },
    async restore() {
      await run("umount", mounted);
      await run("mount", "-o", "loop", image, mounted);
    },
    async [Symbol.asyncDispose]() {
      await run("umount", mounted);
    },
  };
}

async function run(...command: string[]): Promise<void> {
  const child = Bun.spawn(command, { stdout: "ignore", stderr: "pipe" });
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: ${await new Response(child.stderr).text()}`);
}
