/**
 * Signatures that are accepted once: recipes whose signed text is not the raw body. Remembered by environment, relay NAME and the hash of
 * the signed text, in the transaction of the event row. Source: recipes, "Signatures accepted once".
 */
import { createHash } from "node:crypto";
import { type Static, Type } from "typebox";
import { MAX_TOLERANCE_SECONDS, MINUTE_MS } from "../../base/limit.ts";
import type { ReceiverRelay } from "../../rules/relay/live-relay.ts";
import type { Verified } from "../../rules/verify/contract.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import { bytes, defineTable, integer, orNull, type RowOf, text } from "../../store/table.ts";

/** A margin past the window, for clocks that differ and for a definition that is saved with a longer one meanwhile. */
const MARGIN_MS = MINUTE_MS + MAX_TOLERANCE_SECONDS * 1_000;

const SIGNATURE_MEMORY = defineTable({
  name: "signature_memory",
  key: ["environmentId", "relayName", "signedTextHash"],
  columns: {
    environmentId: integer(),
    relayName: text(),
    signedTextHash: bytes(),
    bodyHash: bytes(),
    /** null when the call was ignored by `when`. */
    eventId: orNull(text()),
    /** When it may be forgotten; null lives as long as the secret. */
    until: orNull(integer()),
    /** The mark of the secret it lives as long as; null where it has an end of its own, or was remembered before secrets were noted. */
    secret: orNull(bytes()),
  },
});

/** One use of a signature, as it is remembered. */
export type SignatureUse = Omit<RowOf<typeof SIGNATURE_MEMORY>, "eventId">;

export type EarlierUse = { sameBody: true; eventId: string | null } | { sameBody: false };

/** null where its signature may be used again. `expiresAtMs`: when the call's timestamp leaves the window; null where it carries none. */
export function signatureUse(
  { environmentId, name: relayName, receiver }: ReceiverRelay,
  { onceText, expiresAtMs, byPrevious = false }: Pick<Verified, "onceText" | "expiresAtMs" | "byPrevious">,
  body: Uint8Array,
): SignatureUse | null {
  if (onceText === null) return null;
  const until = expiresAtMs === null ? null : expiresAtMs + MARGIN_MS;
  const secret = until === null ? receiver.secretMarks[byPrevious ? "previous" : "present"] : null;
  return {
    environmentId,
    relayName,
    signedTextHash: sha256(onceText),
    bodyHash: sha256(body),
    until,
    secret,
  };
}

/** How this signature was used before, or null for its first use. */
export async function findEarlierUse(tx: Reader, use: SignatureUse): Promise<EarlierUse | null> {
  const rest =
    "WHERE environment_id = $environmentId AND relay_name = $relayName AND signed_text_hash = $signedTextHash";
  const row = await SIGNATURE_MEMORY.get(tx, rest, use);
  if (row === null) return null;
  const sameBody = Buffer.compare(row.bodyHash, use.bodyHash) === 0;
  return sameBody ? { sameBody, eventId: row.eventId } : { sameBody };
}

/** Of events whose signature came again or may soon: what is not among them any more costs a transaction once. */
const MOST_DURABLE = 4_096;

/**
 * Uses for an answer by which the sender takes its call for received: what a read sees may not be on the disk yet, what a transaction saw is when
 * it has ended. It is asked once, so that calls that come again and again hold no writer up.
 */
export class DurableUses {
  readonly #store: Store;
  /** Events that are on the disk, and with each how its signature was used, by their ids. */
  readonly #events = new Set<string>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** How this signature was used before, or null for its first use. */
  async find(use: SignatureUse): Promise<EarlierUse | null> {
    const seen = await this.#store.read((tx) => findEarlierUse(tx, use));
    // Of an ignored call there is nothing to lose.
    if (seen === null || !seen.sameBody || seen.eventId === null || this.#events.has(seen.eventId))
      return seen;
    const durable = await this.#store.write("app", (tx) => {
      tx.suppressWakeups();
      return findEarlierUse(tx, use);
    });
    if (durable?.sameBody && durable.eventId !== null) this.remember(durable.eventId);
    return durable;
  }

  /** Spends the signature of a call that `when` ignores; one spent meanwhile stays as it is. */
  spendIgnored(use: SignatureUse): Promise<void> {
    return this.#store.write("app", async (tx) => {
      if ((await findEarlierUse(tx, use)) === null) await spendSignature(tx, use, null);
    });
  }

  /** Of an event that is on the disk. */
  remember(eventId: string): void {
    this.#events.add(eventId);
    if (this.#events.size <= MOST_DURABLE) return;
    const [oldest = ""] = this.#events;
    this.#events.delete(oldest);
  }
}

/** Hashes are spread evenly, so those that begin with one of 256 bytes tell how many all are. */
const SAMPLED = new Uint8Array([1]);
const SHARES = 256;
/** From here on they are told of: some 25 MB. */
const LARGE = 100_000;
const BYTES_EACH = 250;

export const rememberedView = Type.Object({
  signatures: Type.Integer({ description: "about how many" }),
  message: Type.String(),
});

/** The signatures of a relay's calls that are remembered for as long as its secret verifies, where they grew to many; null: they did not. */
export async function findManyRemembered(
  tx: Reader,
  relay: { environmentId: number; relayName: string },
): Promise<Static<typeof rememberedView> | null> {
  const sql = `SELECT count(*) AS count FROM signature_memory
    WHERE environment_id = $environmentId AND relay_name = $relayName AND signed_text_hash < $below AND until IS NULL`;
  const found = await tx.get<{ count: number }>(sql, { ...relay, below: SAMPLED });
  const signatures = (found?.count ?? 0) * SHARES;
  if (signatures < LARGE) return null;
  const megabytes = Math.round((signatures * BYTES_EACH) / 1_000_000);
  const many = Number(signatures.toPrecision(2)).toLocaleString("en");
  const message = `About ${many} signatures of its calls are remembered, some ${megabytes} MB: what it signs holds no time, so each counts once for as long as the secret verifies. Storing another secret lets those of the one before go a day after that verifies no more.`;
  return { signatures, message };
}

/** Spends the signature. `eventId` is null when the call was ignored by `when`. */
export async function spendSignature(tx: Writer, use: SignatureUse, eventId: string | null): Promise<void> {
  await SIGNATURE_MEMORY.insert(tx, { ...use, eventId });
}

function sha256(data: Uint8Array): Uint8Array {
  return createHash("sha256").update(data).digest();
}
