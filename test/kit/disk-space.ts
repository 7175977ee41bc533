/** Limits the size of the files that one process can write, as a full disk does. Output to a pipe is not limited. */
import { dlopen, FFIType } from "bun:ffi";
import { expect } from "bun:test";

/** The words before a command that start it without disk space. */
export const NO_DISK_SPACE = ["/bin/sh", "-c", 'ulimit -S -f 0 && trap "" XFSZ && exec "$@"', "sh"];
/** The words before a command that start it so that `setDiskSpace` can limit it later. */
export const LIMITED_DISK_SPACE = ["/bin/sh", "-c", 'trap "" XFSZ && exec "$@"', "sh"];

/** Lets a process write nothing, anything, or files of at most this many bytes. */
export function setDiskSpace(pid: number, space: "none" | "any" | number): void {
  const RLIMIT_FSIZE = 1;
  const libc = dlopen("libc.so.6", {
    prlimit: { args: [FFIType.i32, FFIType.i32, FFIType.ptr, FFIType.ptr], returns: FFIType.i32 },
  });
  const unlimited = 2n ** 64n - 1n;
  const limits = new BigUint64Array([space === "any" ? unlimited : BigInt(space === "none" ? 0 : space), unlimited]);
  expect(libc.symbols.prlimit(pid, RLIMIT_FSIZE, limits, null)).toBe(0);
}
