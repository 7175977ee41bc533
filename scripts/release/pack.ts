/**
 * Packs files into tar.gz and zip archives. The same entries and the same time give the same bytes: entries are sorted by their path, belong to
 * root, and have one time.
 */
import { buffer } from "node:stream/consumers";
import { type Zippable, zipSync } from "fflate";
import { pack } from "tar-stream";

export interface PackedFile {
  /** The path inside the archive. The path of a folder ends with a slash. */
  readonly path: string;
  /** The permissions, for example 0o755. */
  readonly mode: number;
  /** Null for a folder and for a link. */
  readonly content: Uint8Array | string | null;
  /** The target of a symbolic link. */
  readonly link?: string;
  /** The number of the user and of the group: by default root. */
  readonly owner?: number;
}

/** Compares two paths by their bytes, which does not depend on the language of the machine. */
export function comparePaths(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

function sortFiles(files: readonly PackedFile[]): PackedFile[] {
  return files.toSorted((one, other) => comparePaths(one.path, other.path));
}

/** Adds the folders of the files that are not in the list. Programs that unpack expect each folder before its files. */
export function withFolders(files: readonly PackedFile[]): PackedFile[] {
  const folders = new Set<string>();
  for (const { path } of files)
    for (let end = path.indexOf("/"); end >= 0; end = path.indexOf("/", end + 1))
      folders.add(path.slice(0, end + 1));
  for (const { path } of files) folders.delete(path);
  return [...[...folders].map((path) => ({ path, mode: 0o755, content: null })), ...files];
}

/** Packs a tar archive without compression. */
export async function makeTar(files: readonly PackedFile[], time: Date): Promise<Uint8Array<ArrayBuffer>> {
  const archive = pack();
  for (const { path, mode, content, link, owner = 0 } of sortFiles(files)) {
    const name = owner === 0 ? "root" : "";
    const header = { name: path, mode, mtime: time, uid: owner, gid: owner, uname: name, gname: name };
    if (link !== undefined) archive.entry({ ...header, type: "symlink", linkname: link });
    else if (content === null) archive.entry({ ...header, type: "directory" });
    else archive.entry(header, Buffer.from(content));
  }
  archive.finalize();
  return new Uint8Array(await buffer(archive));
}

export async function makeTarGz(files: readonly PackedFile[], time: Date): Promise<Uint8Array> {
  return gzip(await makeTar(files, time));
}

/** The system that a zip archive says it comes from: Unix, so that it keeps the permissions. */
const UNIX = 3;

export function makeZip(files: readonly PackedFile[], time: Date): Uint8Array {
  // A zip archive stores local time. Noon of the day is the same for every time zone of the machine.
  const mtime = new Date(time.getUTCFullYear(), time.getUTCMonth(), time.getUTCDate(), 12);
  const entries: Zippable = {};
  for (const { path, mode, content } of sortFiles(files)) {
    const bytes = Buffer.from(content ?? "");
    entries[path] = [bytes, { mtime, os: UNIX, attrs: (0o100_000 | mode) << 16 }];
  }
  return zipSync(entries, { level: 9 });
}

/** Compresses bytes. The same bytes give the same result with the same Bun. */
export function gzip(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return Bun.gzipSync(bytes, { library: "libdeflate", level: 9 });
}
