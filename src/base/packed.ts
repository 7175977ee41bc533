/**
 * Compresses data that the executable contains and rarely reads, such as the texts of licenses. A macro packs when the file that imports it is
 * compiled, and the program unpacks at the first use.
 */

/** The level of zstd. Higher ones save 5 % and take ten times as long, for which a start from source would wait. */
const LEVEL = 9;

/** Returns the value as JSON, compressed, in base64. */
export function pack(value: unknown): string {
  return Bun.zstdCompressSync(JSON.stringify(value), { level: LEVEL }).toString("base64");
}

/** Returns the value that `pack` received. The caller names its type. */
export function unpack<Value>(packed: string): Value {
  return JSON.parse(Bun.zstdDecompressSync(Buffer.from(packed, "base64")).toString()) as Value;
}
