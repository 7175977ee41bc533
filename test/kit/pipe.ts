/** Creates a named pipe that no process writes to. It uses a system call, because a bare PATH has no command for it. */
import { dlopen } from "bun:ffi";

const libc = dlopen(process.platform === "darwin" ? "libSystem.dylib" : "libc.so.6", {
  mkfifo: { args: ["cstring", "u32"], returns: "i32" },
});

export function makePipe(path: string): void {
  if (libc.symbols.mkfifo(Buffer.from(`${path}\0`), 0o600) !== 0) throw new Error(`No pipe was made at ${path}.`);
}
