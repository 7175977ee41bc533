/**
 * The format of an encrypted backup: a header, then chunks of AES-256-GCM. scrypt derives the key from the passphrase and the salt of the header.
 * The nonce of a chunk is its number and a flag for the last one, so that a chunk which is missing, moved or changed is detected. Both directions
 * stream, so that a large database does not need memory. docs/off-site-backups.md describes the format. Source: RFC 7914 (scrypt);
 * NIST SP 800-38D (GCM); the STREAM construction of online authenticated encryption.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  randomBytes,
  scrypt,
  timingSafeEqual,
} from "node:crypto";
import { BackupRefused } from "./backup.ts";

const MAGIC = Buffer.from("RELAYBKP");
const VERSION = 1;
/** scrypt with 32 MiB and three passes (OWASP). The service must fit into 200 MiB. */
const USUAL_COST = { logN: 15, r: 8, p: 3 };
/** The largest parameters that a header may ask for, so that a planted object cannot exhaust the memory. */
const MAX_COST = { logN: 20, r: 16, p: 16 };
const CHUNK_BYTES = 256 * 1024;
const MAX_CHUNK_BYTES = 16 * 1024 * 1024;
const SALT_BYTES = 16;
const SALT_AT = 16;
const CHECK_AT = SALT_AT + SALT_BYTES;
const CHECK_BYTES = 32;
const HEADER_BYTES = CHECK_AT + CHECK_BYTES;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

interface Keys {
  /** Encrypts the chunks. */
  chunk: Buffer;
  /** Authenticates the header, so that a wrong passphrase differs from a damaged chunk. */
  header: Buffer;
}

/** Returns the bytes of the encrypted form of a file of this size. */
export function encryptedSize(bytes: number): number {
  const chunks = Math.max(1, Math.ceil(bytes / CHUNK_BYTES));
  return HEADER_BYTES + bytes + chunks * TAG_BYTES;
}

/** Yields the encrypted form of `source`. The header names the cost, so a copy with another one can be decrypted. */
export async function* encryptCopy(
  source: AsyncIterable<Uint8Array>,
  passphrase: string,
  cost = USUAL_COST,
): AsyncGenerator<Buffer> {
  const start = Buffer.alloc(CHECK_AT);
  MAGIC.copy(start);
  start.set([VERSION, cost.logN, cost.r, cost.p], MAGIC.length);
  start.writeUInt32BE(CHUNK_BYTES, 12);
  randomBytes(SALT_BYTES).copy(start, SALT_AT);
  const keys = await deriveKeys(passphrase, start);
  yield Buffer.concat([start, checkOf(keys, start)]);
  for await (const { bytes, number, isLast } of splitChunks(new ByteReader(source), CHUNK_BYTES)) {
    const cipher = createCipheriv("aes-256-gcm", keys.chunk, nonceOf(number, isLast));
    yield Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  }
}

/** Yields the plain form. Throws BackupRefused for another format, a wrong passphrase, and a copy that was changed or cut off. */
export async function* decryptCopy(
  source: AsyncIterable<Uint8Array>,
  passphrase: string,
): AsyncGenerator<Buffer> {
  const reader = new ByteReader(source);
  const header = await reader.take(HEADER_BYTES);
  const keys = await openHeader(header, passphrase);
  for await (const chunk of splitChunks(reader, header.readUInt32BE(12) + TAG_BYTES))
    yield openChunk(keys, chunk);
}

async function openHeader(header: Buffer, passphrase: string): Promise<Keys> {
  const [version = 0, logN = 0, r = 0, p = 0] = header.subarray(MAGIC.length);
  const isOurs = header.length === HEADER_BYTES && header.subarray(0, MAGIC.length).equals(MAGIC);
  if (!isOurs) throw new BackupRefused(NOT_A_COPY);
  if (version !== VERSION) throw new BackupRefused(NEWER_COPY);
  const chunkBytes = header.readUInt32BE(12);
  const isReadable =
    inRange(logN, MAX_COST.logN) &&
    inRange(r, MAX_COST.r) &&
    inRange(p, MAX_COST.p) &&
    inRange(chunkBytes, MAX_CHUNK_BYTES);
  if (!isReadable) throw new BackupRefused(NOT_A_COPY);
  const start = header.subarray(0, CHECK_AT);
  const keys = await deriveKeys(passphrase, start);
  if (!timingSafeEqual(checkOf(keys, start), header.subarray(CHECK_AT)))
    throw new BackupRefused(WRONG_PASSPHRASE);
  return keys;
}

function inRange(value: number, most: number): boolean {
  return value >= 1 && value <= most;
}

function openChunk(keys: Keys, { bytes: sealed, number, isLast }: Chunk): Buffer {
  const textEnd = sealed.length - TAG_BYTES;
  if (textEnd < 0) throw new BackupRefused(CUT_OFF);
  try {
    const decipher = createDecipheriv("aes-256-gcm", keys.chunk, nonceOf(number, isLast), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAuthTag(sealed.subarray(textEnd));
    return Buffer.concat([decipher.update(sealed.subarray(0, textEnd)), decipher.final()]);
  } catch {
    throw new BackupRefused(isLast ? CUT_OFF : DAMAGED);
  }
}

const OTHER = "choose another one (relay backups list --remote).";
const NOT_A_COPY = `The object is not an encrypted copy of a backup: ${OTHER}`;
const NEWER_COPY = "A newer version of Relay wrote this copy: restore it with that version.";
const WRONG_PASSPHRASE =
  "The passphrase does not open this copy: give the passphrase of the server that made it.";
const DAMAGED = `The copy is damaged, because a part of it was changed, moved or removed: ${OTHER}`;
const CUT_OFF = `The copy is not complete, because its end is missing or damaged: ${OTHER}`;

function deriveKeys(passphrase: string, header: Buffer): Promise<Keys> {
  const [, logN = 0, r = 0, p = 0] = header.subarray(MAGIC.length);
  const salt = header.subarray(SALT_AT, CHECK_AT);
  const cost = { N: 2 ** logN, r, p, maxmem: 2 ** logN * r * 256 + 1024 * 1024 };
  return new Promise((resolve, reject) => {
    scrypt(passphrase.normalize("NFC"), salt, 2 * KEY_BYTES, cost, (error, key) => {
      if (error instanceof Error) reject(error);
      else resolve({ chunk: key.subarray(0, KEY_BYTES), header: key.subarray(KEY_BYTES) });
    });
  });
}

function checkOf({ header }: Keys, start: Buffer): Buffer {
  return createHmac("sha256", header).update(start).digest();
}

function nonceOf(number: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES);
  nonce.writeUInt32BE(number, NONCE_BYTES - 5);
  nonce.writeUInt8(isLast ? 1 : 0, NONCE_BYTES - 1);
  return nonce;
}

interface Chunk {
  bytes: Buffer;
  /** 0 for the first chunk. */
  number: number;
  isLast: boolean;
}

/** Yields chunks of exactly `size` bytes. The last one may be shorter, and it exists even if the source is empty. */
async function* splitChunks(reader: ByteReader, size: number): AsyncGenerator<Chunk> {
  let bytes = await reader.take(size);
  for (let number = 0; ; number++) {
    const next = await reader.take(size);
    const isLast = next.length === 0;
    yield { bytes, number, isLast };
    if (isLast) return;
    bytes = next;
  }
}

/** Reads exact numbers of bytes from a stream. */
class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Returns `size` bytes, or fewer at the end of the stream. */
  async take(size: number): Promise<Buffer> {
    const parts = [this.#rest];
    let length = this.#rest.length;
    while (length < size) {
      const { done, value } = await this.#source.next();
      if (done === true) break;
      const part = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
      parts.push(part);
      length += part.length;
    }
    const all = parts.length === 1 ? this.#rest : Buffer.concat(parts, length);
    this.#rest = all.subarray(size);
    return all.subarray(0, size);
  }
}
