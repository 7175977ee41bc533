/** Reads from an executable of Linux which libraries it needs. */

const DYNAMIC_SEGMENT = 2;
const LOADED_SEGMENT = 1;
const TAGS = { end: 0, needed: 1, strings: 5 };
const ENTRY_BYTES = 16;

interface Segment {
  kind: number;
  /** The position in the file, the address in memory, and the length in the file. */
  at: number;
  address: number;
  length: number;
}

/** Returns the names of the libraries, for example `libc.so.6`. The executable must be one for 64 bits in little-endian order. */
export function listNeeded(executable: Buffer): string[] {
  const segments = listSegments(executable);
  const dynamic = segments.find(({ kind }) => kind === DYNAMIC_SEGMENT);
  if (dynamic === undefined) return [];
  const entries: [tag: number, value: number][] = [];
  for (let at = dynamic.at; at < dynamic.at + dynamic.length; at += ENTRY_BYTES) {
    const tag = Number(executable.readBigUInt64LE(at));
    if (tag === TAGS.end) break;
    entries.push([tag, Number(executable.readBigUInt64LE(at + 8))]);
  }
  const address = entries.find(([tag]) => tag === TAGS.strings)?.[1] ?? 0;
  const home = segments.find(
    (one) => one.kind === LOADED_SEGMENT && address >= one.address && address < one.address + one.length,
  );
  if (home === undefined) throw new Error("The executable does not contain the names of its libraries.");
  const strings = address - home.address + home.at;
  return entries
    .filter(([tag]) => tag === TAGS.needed)
    .map(([, offset]) =>
      executable.toString("latin1", strings + offset, executable.indexOf(0, strings + offset)),
    );
}

function listSegments(executable: Buffer): Segment[] {
  const is64BitLittleEndian = executable.toString("latin1", 0, 6) === "\x7fELF\x02\x01";
  if (!is64BitLittleEndian) throw new Error("The file is not an executable of Linux for 64 bits.");
  const table = Number(executable.readBigUInt64LE(32));
  const [size, count] = [executable.readUInt16LE(54), executable.readUInt16LE(56)];
  return Array.from({ length: count }, (_, index) => {
    const at = table + index * size;
    return {
      kind: executable.readUInt32LE(at),
      at: Number(executable.readBigUInt64LE(at + 8)),
      address: Number(executable.readBigUInt64LE(at + 16)),
      length: Number(executable.readBigUInt64LE(at + 32)),
    };
  });
}
