/**
 * Lists the released systems. `npm run build -- --all` and the packages of a release follow from this table, so that they name the same systems.
 */

export interface ReleasedSystem {
  /** The system in names of files and packages. */
  readonly name: string;
  /** The system in sentences. */
  readonly title: string;
  /** The Bun that the executable contains. Baseline also runs on processors without AVX2. */
  readonly target: `bun-${string}`;
  /** The words of Node and npm for the operating system and the processor. */
  readonly os: "linux" | "darwin" | "win32";
  readonly cpu: "x64" | "arm64";
  /** The C library and the file of it that starts the executable. Null for a system that has only one C library. */
  readonly libc: { readonly name: "glibc" | "musl"; readonly loader: string } | null;
}

export const RELEASED: readonly ReleasedSystem[] = [
  {
    name: "linux-x64",
    title: "Linux x64 with the GNU C library",
    target: "bun-linux-x64-baseline",
    os: "linux",
    cpu: "x64",
    libc: { name: "glibc", loader: "/lib64/ld-linux-x86-64.so.2" },
  },
  {
    name: "linux-arm64",
    title: "Linux arm64 with the GNU C library",
    target: "bun-linux-arm64",
    os: "linux",
    cpu: "arm64",
    libc: { name: "glibc", loader: "/lib/ld-linux-aarch64.so.1" },
  },
  {
    name: "linux-x64-musl",
    title: "Linux x64 with musl (Alpine)",
    target: "bun-linux-x64-musl-baseline",
    os: "linux",
    cpu: "x64",
    libc: { name: "musl", loader: "/lib/ld-musl-x86_64.so.1" },
  },
  {
    name: "linux-arm64-musl",
    title: "Linux arm64 with musl (Alpine)",
    target: "bun-linux-arm64-musl",
    os: "linux",
    cpu: "arm64",
    libc: { name: "musl", loader: "/lib/ld-musl-aarch64.so.1" },
  },
  {
    name: "darwin-arm64",
    title: "macOS arm64",
    target: "bun-darwin-arm64",
    os: "darwin",
    cpu: "arm64",
    libc: null,
  },
  {
    name: "darwin-x64",
    title: "macOS x64",
    target: "bun-darwin-x64",
    os: "darwin",
    cpu: "x64",
    libc: null,
  },
  {
    name: "windows-x64",
    title: "Windows x64",
    target: "bun-windows-x64",
    os: "win32",
    cpu: "x64",
    libc: null,
  },
];

/** Returns the name of the executable in the folder of a release. */
export function executableFile({ name, os }: ReleasedSystem): string {
  return `relay-${name}${os === "win32" ? ".exe" : ""}`;
}
