/**
 * Remembers signatures that are accepted once, for recipes whose signed payload is not the raw body. The key is the environment, the relay's name
 * and the hash of the signed payload. The row is written in the event's transaction. Source: recipes, "Signatures accepted once".
 */
import { createHash } from "node:crypto";
import { type Static, Type } from "typebox";
import { MAX_TOLERANCE_SECONDS, MINUTE_MS } from "../../base/limit.ts";
import { formatCount } from "../../base/text.ts";
import type { ReceiverRelay } from "../../rules/relay/live-relay.ts";
import type { Verified } from "../../rules/verify/contract.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import { bytes, defineTable, integer, orNull, type RowOf, text } from "../../store/table.ts";

/** A margin after the tolerance, for clocks that differ and for a definition that is saved with a longer tolerance. */
const MARGIN_MS = MINUTE_MS + MAX_TOLERANCE_SECONDS * 1_000;

const SIGNATURE_MEMORY = defineTable({
  name: "signature_memory",
  key: ["environmentId", "relayName", "signedTextHash"],
  columns: {
    environmentId: integer(),
    relayName: text(),
    signedTextHash: bytes(),
    bodyHash: bytes(),
    /** The event's id; null where `when` ignored the request. */
    eventId: orNull(text()),
    /** The time when the row can be deleted; null keeps it as long as the secret. */
    until: orNull(integer()),
    /** Identifies the secret that the row lives as long as; null where `until` is set, or for old rows. */
    secret: orNull(bytes()),
  },
});

/** The parts of a relay that identify a signature. */
type SigningRelay = Pick<ReceiverRelay, "environmentId" | "name"> & {
  receiver: Pick<ReceiverRelay["receiver"], "secretMarks" | "source">;
};

/** One use of a signature. */
export type SignatureUse = Omit<RowOf<typeof SIGNATURE_MEMORY>, "eventId">;

export type EarlierUse = { sameBody: true; eventId: string | null } | { sameBody: false };

/**
 * Makes the use of a verified request's signature. Returns null where the signature can be used again. `expiresAtMs` is when the timestamp leaves
 * the tolerance; null without a timestamp.
 */
export function signatureUse(
  { environmentId, name, receiver }: SigningRelay,
  { onceText, expiresAtMs, byPrevious = false }: Pick<Verified, "onceText" | "expiresAtMs" | "byPrevious">,
  body: Uint8Array,
): SignatureUse | null {
  if (onceText === null) return null;
  const until = expiresAtMs === null ? null : expiresAtMs + MARGIN_MS;
  const secret = until === null ? receiver.secretMarks[byPrevious ? "previous" : "present"] : null;
  return {
    environmentId,
    // A follower's request is the source's, whose signature counts once.
    relayName: receiver.source?.name ?? name,
    signedTextHash: sha256(onceText),
    bodyHash: sha256(body),
    until,
    secret,
  };
}

/** Finds the earlier use of a signature; null for the first use. */
export async function findEarlierUse(tx: Reader, use: SignatureUse): Promise<EarlierUse | null> {
  const rest =
    "WHERE environment_id = $environmentId AND relay_name = $relayName AND signed_text_hash = $signedTextHash";
  const row = await SIGNATURE_MEMORY.get(tx, rest, use);
  if (row === null) return null;
  const sameBody = Buffer.compare(row.bodyHash, use.bodyHash) === 0;
  return sameBody ? { sameBody, eventId: row.eventId } : { sameBody };
}

/** The most durable events that are remembered. Others cost one transaction. */
const MOST_DURABLE = 4_096;

/**
 * Finds uses that are durable, because a sender takes the answer for a confirmation. A read may see a row that is not on disk yet; a committed
 * transaction proves that it is. Each event is proven once, so that repeated requests do not block writers.
 */
export class DurableUses {
  readonly #store: Store;
  /** Ids of events that are on disk together with their signature. */
  readonly #events = new Set<string>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Finds the durable earlier use of a signature; null for the first use. */
  async find(use: SignatureUse): Promise<EarlierUse | null> {
    const seen = await this.#store.read((tx) => findEarlierUse(tx, use));
    // An ignored request has no event to lose.
    if (seen === null || !seen.sameBody || seen.eventId === null || this.#events.has(seen.eventId))
      return seen;
    const durable = await this.#store.write(
      "app",
      (tx) => {
        tx.suppressWakeups();
        return findEarlierUse(tx, use);
      },
      use.environmentId,
    );
    if (durable?.sameBody && durable.eventId !== null) this.remember(durable.eventId);
    return durable;
  }

  /** Remembers the signature of a request that `when` ignored, unless it was used meanwhile. */
  spendIgnored(use: SignatureUse): Promise<void> {
    return this.#store.write(
      "app",
      async (tx) => {
        if ((await findEarlierUse(tx, use)) === null) await spendSignature(tx, use, null);
      },
      use.environmentId,
    );
  }

  /** Remembers that the event is on disk. */
  remember(eventId: string): void {
    this.#events.add(eventId);
    if (this.#events.size <= MOST_DURABLE) return;
    const [oldest = ""] = this.#events;
    this.#events.delete(oldest);
  }
}

/** Hashes are evenly distributed, so the rows whose hash begins with one of 256 bytes estimate the total. */
const SAMPLED = new Uint8Array([1]);
const SHARES = 256;
/** The number of signatures, about 25 MB, from which the owner gets a warning. */
const LARGE = 100_000;
const BYTES_EACH = 250;

export const rememberedView = Type.Object({
  signatures: Type.Integer({ description: "about how many" }),
  message: Type.String(),
});

/** Estimates the signatures that are remembered as long as the relay's secret. Returns null where they are few. */
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
  const count = formatCount(Number(signatures.toPrecision(2)));
  const message = `Relay remembers about ${count} signatures of its requests, about ${megabytes} MB. The sender signs no timestamp, so Relay keeps each signature while the secret is valid. If you store a new secret, Relay deletes the signatures of the previous one a day after that one ends.`;
  return { signatures, message };
}

/** Remembers the signature as used. `eventId` is null where `when` ignored the request. */
export async function spendSignature(tx: Writer, use: SignatureUse, eventId: string | null): Promise<void> {
  await SIGNATURE_MEMORY.insert(tx, { ...use, eventId });
}

function sha256(data: Uint8Array): Uint8Array {
  return createHash("sha256").update(data).digest();
}
