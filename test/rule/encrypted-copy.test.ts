/** The encrypted form of a backup: it opens only complete, unchanged and with its passphrase. */
import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { decryptCopy, encryptCopy, encryptedSize } from "../../src/operator/backup/encrypted-copy.ts";

const PASSPHRASE = "correct horse battery staple";
const HEADER = 64;
const CHUNK = 256 * 1024;
const SEALED = CHUNK + 16;

/** Yields the bytes in pieces of this size. */
async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function collect(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of source) parts.push(part);
  return Buffer.concat(parts);
}

/** A cost that takes a millisecond. */
const FAST = { logN: 10, r: 8, p: 1 };
const encrypt = (bytes: Uint8Array, passphrase = PASSPHRASE) => collect(encryptCopy(inPieces(bytes, 65_536), passphrase, FAST));
const decrypt = (bytes: Uint8Array, passphrase = PASSPHRASE, piece = 65_536) => collect(decryptCopy(inPieces(bytes, piece), passphrase));

describe("an encrypted copy", () => {
  test.each([0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 7])(
    "of %d bytes opens with its passphrase, however it is split",
    async (size) => {
      const plain = randomBytes(size);
      const sealed = await encrypt(plain);
      expect(sealed.length).toBe(encryptedSize(size));
      for (const piece of [977, SEALED, 1_000_000]) expect((await decrypt(sealed, PASSPHRASE, piece)).equals(plain)).toBe(true);
    },
  );

  test("of the usual cost opens", async () => {
    const plain = randomBytes(1_000);
    expect((await decrypt(await collect(encryptCopy(inPieces(plain, 100), PASSPHRASE)))).equals(plain)).toBe(true);
  });

  test("contains nothing of the plain text, and differs each time", async () => {
    const plain = Buffer.from("SQLite format 3 and a customer's address".repeat(1_000));
    const [one, other] = [await encrypt(plain), await encrypt(plain)];
    expect(one.includes("customer")).toBe(false);
    expect(one.equals(other)).toBe(false);
  });

  test("opens with a passphrase that another keyboard composes differently", async () => {
    const sealed = await encrypt(Buffer.from("data"), "grüße an alle\u0065\u0301");
    expect(String(await decrypt(sealed, "grüße an alle\u00e9"))).toBe("data");
  });

  test("a wrong passphrase is refused as such", async () => {
    const sealed = await encrypt(randomBytes(1_000));
    await expect(decrypt(sealed, "another passphrase")).rejects.toThrow(/passphrase does not open this copy/);
  });

  const plain = randomBytes(2 * CHUNK + 5_000);
  const sealed = encrypt(plain);
  const part = async (from: number, to: number) => (await sealed).subarray(HEADER + from * SEALED, to === 3 ? undefined : HEADER + to * SEALED);
  const header = async () => (await sealed).subarray(0, HEADER);

  test.each([HEADER, HEADER + 15, HEADER + SEALED, HEADER + 2 * SEALED, HEADER + 2 * SEALED + 8, encryptedSize(plain.length) - 1])(
    "cut off after %d bytes is refused as incomplete",
    async (length) => {
      await expect(decrypt((await sealed).subarray(0, length))).rejects.toThrow(/not complete/);
    },
  );

  const DAMAGES: readonly (readonly [name: string, make: () => Promise<Buffer>])[] = [
    ["with two chunks exchanged", async () => Buffer.concat([await header(), await part(1, 2), await part(0, 1), await part(2, 3)])],
    ["without a chunk in the middle", async () => Buffer.concat([await header(), await part(0, 1), await part(2, 3)])],
    ["with a chunk twice", async () => Buffer.concat([await header(), await part(0, 1), await part(0, 3)])],
    ["with more after its end", async () => Buffer.concat([await sealed, Buffer.alloc(40)])],
    [
      "with one bit changed",
      async () => {
        const changed = Buffer.from(await sealed);
        changed.writeUInt8(changed.readUInt8(HEADER + SEALED + 99) ^ 1, HEADER + SEALED + 99);
        return changed;
      },
    ],
  ];
  test.each(DAMAGES)("%s is refused", async (_, make) => {
    await expect(decrypt(await make())).rejects.toThrow(/The copy is (damaged|not complete)/);
  });

  test.each([0, 7, 8])("with byte %d of its header changed is refused", async (at) => {
    const changed = Buffer.from(await sealed);
    changed.writeUInt8(changed.readUInt8(at) + 1, at);
    await expect(decrypt(changed)).rejects.toThrow(at === 8 ? /newer version/ : /not an encrypted copy/);
  });

  test("that asks for more memory than any real one is refused at once", async () => {
    const changed = Buffer.from(await sealed);
    for (const [at, value] of [
      [9, 40],
      [10, 255],
      [11, 255],
      [9, 0],
      [12, 255],
    ] as const) {
      const planted = Buffer.from(changed);
      planted.writeUInt8(value, at);
      await expect(decrypt(planted)).rejects.toThrow(/not an encrypted copy/);
    }
  });

  test("an empty or foreign object is refused", async () => {
    for (const bytes of [Buffer.alloc(0), Buffer.from("SQLite format 3\0"), randomBytes(5_000)])
      await expect(decrypt(bytes)).rejects.toThrow(/not an encrypted copy/);
  });
});
