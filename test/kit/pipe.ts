/** A named pipe that nobody writes to, made by the system's own call: a bare PATH has no command for it. */
import { dlopen } from "bun:ffi";

const libc = dlopen(process.platform === "darwin" ? "libSystem.dylib" : "libc.so.6", {
  mkfifo: { args: ["cstring", "u32"], returns: "i32" },
});

export function makePipe(path: string): void {
  if (libc.symbols.mkfifo(Buffer.from(`${path}\0`), 0o600) !== 0) throw new Error(`No pipe was made at ${path}.`);
}
