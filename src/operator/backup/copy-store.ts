/**
 * The encrypted copies of backups in a bucket of an S3 endpoint, through Bun's own client. An object has the name of its backup and `.enc`. This
 * file never changes an object with another name, except the object of a test. It does not check addresses: the service checks those of the
 * endpoint before each copy.
 */
import { once } from "node:events";
import { createReadStream, createWriteStream, statSync } from "node:fs";
import { basename } from "node:path";
import { finished } from "node:stream/promises";
import { errorCode } from "../../platform/outbound/error-code.ts";
import { BackupRefused } from "./backup.ts";
import { decryptCopy, encryptCopy, encryptedSize } from "./encrypted-copy.ts";

/** The bucket and the keys that open it. */
export interface CopyPlace {
  /** An http or https URL. */
  endpoint: string;
  bucket: string;
  region: string;
  /** The folder in the bucket, without slashes at its ends; "" for none. */
  prefix: string;
  accessKeyId: string;
  secretAccessKey: string;
}

interface RemoteCopy {
  /** The key of the object in the bucket. */
  key: string;
  /** The name of the backup, such as `scheduled-20300101T120000000Z.db`. */
  name: string;
  /** The time when the object was stored, by the endpoint's clock, in milliseconds since the epoch. */
  atMs: number;
  bytes: number;
}

/** The size of a part of an upload. S3 takes at most 10,000 parts, so an object can have 80 GB. */
const PART_BYTES = 8 * 1024 * 1024;
const RETRIES = 3;
const COPY_NAME = /^[\w-][\w.-]*\.db$/;
const ENDING = ".enc";

export class CopyStore {
  readonly #place: CopyPlace;
  readonly #client: Bun.S3Client;

  constructor(place: CopyPlace) {
    this.#place = place;
    const { endpoint, bucket, region, accessKeyId, secretAccessKey } = place;
    this.#client = new Bun.S3Client({ endpoint, bucket, region, accessKeyId, secretAccessKey });
  }

  /** Uploads the encrypted file, and checks the size of the object. `onPart` reports progress. Throws BackupRefused. */
  async upload(file: string, passphrase: string, onPart: () => void): Promise<RemoteCopy> {
    const name = basename(file);
    const key = this.#keyOf(name + ENDING);
    const { size } = statSync(file);
    const bytes = encryptedSize(size);
    return await this.#explain(async () => {
      const writer = this.#client.file(key).writer({ partSize: PART_BYTES, queueSize: 1, retry: RETRIES });
      let waiting = 0;
      for await (const chunk of encryptCopy(createReadStream(file), passphrase)) {
        await writer.write(chunk);
        waiting += chunk.length;
        if (waiting < PART_BYTES) continue;
        await writer.flush();
        onPart();
        waiting = 0;
      }
      await writer.end();
      onPart();
      const stored = await this.#client.stat(key);
      if (stored.size === bytes) return { key, name, atMs: stored.lastModified.getTime(), bytes };
      throw new BackupRefused(`The endpoint stored ${stored.size} of ${bytes} bytes: copy the backup again.`);
    });
  }

  /** Lists the copies, newest first. Throws BackupRefused. */
  async list(): Promise<RemoteCopy[]> {
    const prefix = this.#keyOf("");
    const copies: RemoteCopy[] = [];
    await this.#explain(async () => {
      let page: Bun.S3ListObjectsResponse | null = null;
      do {
        const after: string | undefined = page?.nextContinuationToken;
        page = await this.#client.list({
          prefix,
          ...(after === undefined ? {} : { continuationToken: after }),
        });
        for (const { key, size = 0, lastModified } of page.contents ?? []) {
          const name = key.endsWith(ENDING) ? key.slice(prefix.length, -ENDING.length) : "";
          if (!key.startsWith(prefix) || !COPY_NAME.test(name)) continue;
          copies.push({ key, name, atMs: Date.parse(lastModified ?? "") || 0, bytes: size });
        }
      } while (page.isTruncated === true && page.nextContinuationToken !== undefined);
    });
    return copies.sort((one, other) => other.atMs - one.atMs || other.name.localeCompare(one.name));
  }

  /** Deletes the copies after the newest `keep`, but never the copy with this key. Throws BackupRefused. */
  async prune(keep: number, lastKey: string): Promise<void> {
    const others = (await this.list()).filter(({ key }) => key !== lastKey);
    await this.#explain(async () => {
      for (const { key } of others.slice(keep - 1)) await this.#client.delete(key);
    });
  }

  /** Writes the decrypted copy into a new file. Throws BackupRefused, and then the file may be incomplete. */
  async download(key: string, passphrase: string, file: string): Promise<void> {
    await this.#explain(async () => {
      const output = createWriteStream(file, { flags: "wx", mode: 0o600 });
      const written = finished(output);
      try {
        for await (const bytes of decryptCopy(this.#client.file(key).stream(), passphrase)) {
          if (!output.write(bytes)) await Promise.race([once(output, "drain"), written]);
        }
        output.end();
        await written;
      } catch (error) {
        written.catch(() => undefined);
        output.destroy();
        throw error;
      }
    });
  }

  /** Writes, reads, lists and deletes a small object. Throws BackupRefused with the step that failed. */
  async test(): Promise<void> {
    const key = this.#keyOf(`connection-test-${crypto.randomUUID()}`);
    const text = `Relay tests this bucket: ${key}`;
    await this.#explain(() => this.#client.write(key, text), "write an object");
    const read = await this.#explain(() => this.#client.file(key).text(), "read an object");
    if (read !== text)
      throw new BackupRefused(
        "The endpoint returned another object than Relay wrote: check the endpoint and the bucket.",
      );
    await this.#explain(() => this.#client.list({ prefix: this.#keyOf(""), maxKeys: 1 }), "list the objects");
    await this.#explain(() => this.#client.delete(key), "delete an object");
  }

  #keyOf(name: string): string {
    return this.#place.prefix === "" ? name : `${this.#place.prefix}/${name}`;
  }

  /** Turns an error of the client into BackupRefused. Other errors, such as those of the disk, stay. */
  async #explain<Result>(work: () => Promise<Result>, step = ""): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Error) || error.name !== "S3Error") throw error;
      throw new BackupRefused(formatS3Failure(errorCode(error), this.#place, step));
    }
  }
}

const ANOTHER_REGION = "The bucket is in another region: set the region and the endpoint of the bucket.";
const KEYS = "check the access key ID and the secret access key.";
/** The codes of S3 and of Bun's client, each with its sentence. Another server's own words are never shown. */
const FAILURES: Readonly<Record<string, (place: CopyPlace) => string>> = {
  AccessDenied: () =>
    `The endpoint denies access: ${KEYS} They need the right to read, write, list and delete objects.`,
  InvalidAccessKeyId: () => "The endpoint does not know the access key ID: check it.",
  SignatureDoesNotMatch: () => "The secret access key does not fit the access key ID: enter both again.",
  NoSuchBucket: ({ bucket }) =>
    `The bucket ${bucket} does not exist: create it, or check its name and the region.`,
  NoSuchKey: () => "There is no such object: list the copies with relay backups list --remote.",
  AuthorizationHeaderMalformed: () => ANOTHER_REGION,
  PermanentRedirect: () => ANOTHER_REGION,
  RequestTimeTooSkewed: () =>
    "The clock of this machine differs from that of the endpoint: set this machine's clock by the network.",
  ConnectionClosed: ({ endpoint }) =>
    `${endpoint} closed the connection: check the endpoint and the network.`,
  ConnectionRefused: ({ endpoint }) =>
    `Nothing answers at ${endpoint}: check the endpoint, and that it runs.`,
  DNSResolveFailed: ({ endpoint }) => `The host of ${endpoint} has no address: check its spelling.`,
};

function formatS3Failure(code: string, place: CopyPlace, step: string): string {
  const at = step === "" ? "" : `Relay cannot ${step}. `;
  const sentence = FAILURES[code]?.(place);
  if (sentence !== undefined) return at + sentence;
  const named = /^[A-Za-z]{3,64}$/.test(code) && code !== "UnknownError" ? ` (${code})` : "";
  return `${at}The endpoint ${place.endpoint} refused or did not understand a request${named}: check the endpoint, the region and the keys.`;
}
