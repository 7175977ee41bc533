/** Reads the entries of tar archives that the project writes. */
import { Readable } from "node:stream";
import { extract } from "tar-stream";

export interface TarEntry {
  name: string;
  /** The permissions in octal digits, for example `755`. */
  mode: string;
  /** The numbers of the user and the group, for example `0:0`. */
  owner: string;
  time: string;
  /** The target of a symbolic link; empty for others. */
  link: string;
  bytes: Buffer;
  text: string;
}

const GZIP = Buffer.from([0x1f, 0x8b]);

/** Reads an archive, which may be compressed with gzip. */
export async function readTar(archive: Uint8Array<ArrayBuffer>): Promise<TarEntry[]> {
  const unpack = extract();
  Readable.from([GZIP.equals(archive.subarray(0, 2)) ? Bun.gunzipSync(archive) : archive]).pipe(unpack);
  const entries: TarEntry[] = [];
  for await (const entry of unpack) {
    const { name, mode = 0, uid, gid, mtime, linkname } = entry.header;
    const bytes = Buffer.concat(await Array.fromAsync(entry as AsyncIterable<Buffer>));
    const owner = `${uid}:${gid}`;
    entries.push({ name, mode: mode.toString(8), owner, time: mtime?.toISOString() ?? "", link: linkname ?? "", bytes, text: bytes.toString() });
  }
  return entries;
}
