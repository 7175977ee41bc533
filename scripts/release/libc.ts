/**
 * Fetches the GNU C library of Debian for the container image, with apt and the sources that this machine has. apt keeps its lists in a folder of its
 * own, so nothing of the machine changes. The version and its checksums are fixed here, so an image is the same on each day and each machine.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { extract } from "tar-stream";
import { hashFile } from "./checksums.ts";
import type { PackedFile } from "./pack.ts";

/** The processors of the image in the words of Debian, which the OCI format shares. */
export const ARCHITECTURES = { x64: "amd64", arm64: "arm64" } as const;
export type Architecture = (typeof ARCHITECTURES)[keyof typeof ARCHITECTURES];

/** To use a newer version, write it here with the checksums of its two files. */
const VERSION = "2.36-9+deb12u14";
const SHA256: Readonly<Record<Architecture, string>> = {
  amd64: "ba4f88f73dbc3ae9055f3c20f4523bfdbaf1ad13ff95e258924f77d20b4fbedf",
  arm64: "01f4330719fd4f65580e16ea5a0527f372fca750e8f588d26deaf09f2d3b1cf4",
};

/** The license of the package. The image takes it and the libraries. */
const COPYRIGHT = "usr/share/doc/libc6/copyright";

export interface Libc {
  /** Every library of the package, its license and the loader's link, with paths relative to the root. */
  files: readonly PackedFile[];
  /** The description that scanners of images read. */
  control: string;
}

/** Fetches the library for each architecture into the empty folder. Throws with a sentence that says what to do. */
export async function fetchLibc(folder: string): Promise<Record<Architecture, Libc>> {
  for (const tool of ["apt-get", "dpkg-deb"])
    if (Bun.which(tool) === null)
      throw new Error(`This machine has no ${tool}. Build the image on Debian, or in a container of it.`);
  for (const name of ["lists/partial", "archives/partial"])
    mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(join(folder, "status"), "");
  const options = [
    `Dir::State=${folder}`,
    `Dir::State::status=${join(folder, "status")}`,
    `Dir::Cache=${folder}`,
    // The sandbox of apt is off, because its user may not write to the folder.
    "APT::Sandbox::User=root",
    ...Object.values(ARCHITECTURES).map((one) => `APT::Architectures::=${one}`),
  ].flatMap((option) => ["-o", option]);
  run(["apt-get", "-qq", ...options, "update"], folder);
  const fetchOne = async (architecture: Architecture): Promise<Libc> => {
    run(["apt-get", "-qq", ...options, "download", `libc6:${architecture}=${VERSION}`], folder);
    const file = join(folder, `libc6_${VERSION}_${architecture}.deb`);
    const sum = hashFile(file);
    if (sum !== SHA256[architecture])
      throw new Error(
        `libc6 ${VERSION} for ${architecture} has the checksum ${sum}, not the one in libc.ts: do not use it.`,
      );
    return {
      files: await listLibraries(run(["dpkg-deb", "--fsys-tarfile", file], folder)),
      control: run(["dpkg-deb", "--field", file], folder).toString(),
    };
  };
  return { amd64: await fetchOne("amd64"), arm64: await fetchOne("arm64") };
}

function run(command: readonly string[], cwd: string): Buffer {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command], {
    cwd,
    env: { ...process.env, LC_ALL: "C.UTF-8" },
  });
  if (exitCode !== 0)
    throw new Error(
      `${command[0]} failed: ${stderr.toString().trim()}. The image needs libc6 ${VERSION} of Debian 12. If Debian has a newer one, write its version and checksums into scripts/release/libc.ts.`,
    );
  return stdout;
}

async function listLibraries(tar: Buffer): Promise<PackedFile[]> {
  const unpack = extract();
  Readable.from([tar]).pipe(unpack);
  const files: PackedFile[] = [];
  for await (const entry of unpack) {
    const { name, type, mode = 0o644, linkname } = entry.header;
    const content = Buffer.concat(await Array.fromAsync(entry as AsyncIterable<Buffer>));
    const path = name.replace(/^\.\//, "");
    if (!/^lib(64)?\/.*\.so\.\d+$/.test(path) && path !== COPYRIGHT) continue;
    files.push(
      type === "symlink"
        ? { path, mode: 0o777, content: null, link: linkname ?? "" }
        : { path, mode, content },
    );
  }
  return files;
}
