/** A disk that is full for one process alone: every write of it to a file fails. What it prints goes to a pipe, which is none. */
import { dlopen, FFIType } from "bun:ffi";
import { expect } from "bun:test";

/** Starts a process without room, the command after it. */
export const NO_ROOM = ["/bin/sh", "-c", 'ulimit -S -f 0 && trap "" XFSZ && exec "$@"', "sh"];
/** Starts a process whose room can be taken later. */
export const ROOM_TO_TAKE = ["/bin/sh", "-c", 'trap "" XFSZ && exec "$@"', "sh"];

/** Takes all room from a process, lets it write again, or lets each of its files grow to so many bytes. */
export function setRoom(pid: number, room: "none" | "any" | number): void {
  const RLIMIT_FSIZE = 1;
  const libc = dlopen("libc.so.6", {
    prlimit: { args: [FFIType.i32, FFIType.i32, FFIType.ptr, FFIType.ptr], returns: FFIType.i32 },
  });
  const unlimited = 2n ** 64n - 1n;
  const limits = new BigUint64Array([room === "any" ? unlimited : BigInt(room === "none" ? 0 : room), unlimited]);
  expect(libc.symbols.prlimit(pid, RLIMIT_FSIZE, limits, null)).toBe(0);
}
