/**
 * Signatures that are accepted once: recipes whose signed text is not the raw body. Remembered by environment, relay NAME and the hash of
 * the signed text, in the transaction of the event row. Source: recipes, "Signatures accepted once".
 */
import { createHash } from "node:crypto";
import { MAX_TOLERANCE_SECONDS, MINUTE_MS } from "../ground/limit.ts";
import type { Reader, Store, Writer } from "../store/port.ts";
import { bytes, defineTable, integer, orNull, type RowOf, text } from "../store/table.ts";

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
  },
});

/** One use of a signature, as it is remembered. */
export type OnceUse = Omit<RowOf<typeof SIGNATURE_MEMORY>, "eventId">;

export type EarlierUse = { sameBody: true; eventId: string | null } | { sameBody: false };

/** `expiresAtMs`: when the call's timestamp leaves the window; null where it carries none. */
export function onceUse(
  { environmentId, name: relayName }: { environmentId: number; name: string },
  signedText: Uint8Array,
  expiresAtMs: number | null,
  body: Uint8Array,
): OnceUse {
  const until = expiresAtMs === null ? null : expiresAtMs + MARGIN_MS;
  return { environmentId, relayName, signedTextHash: sha256(signedText), bodyHash: sha256(body), until };
}

/** How this signature was used before, or null for its first use. */
export async function findEarlierUse(tx: Reader, use: OnceUse): Promise<EarlierUse | null> {
  const rest =
    "WHERE environment_id = $environmentId AND relay_name = $relayName AND signed_text_hash = $signedTextHash";
  const row = await SIGNATURE_MEMORY.get(tx, rest, use);
  if (row === null) return null;
  const sameBody = Buffer.compare(row.bodyHash, use.bodyHash) === 0;
  return sameBody ? { sameBody, eventId: row.eventId } : { sameBody };
}

/**
 * The same for an answer by which the sender takes its call for received: what a read sees may not be on the disk yet, what a transaction saw is
 * when it has ended.
 */
export async function findDurableUse(store: Store, use: OnceUse): Promise<EarlierUse | null> {
  const seen = await store.read((tx) => findEarlierUse(tx, use));
  if (seen === null || !seen.sameBody) return seen;
  return await store.write("app", (tx) => {
    tx.keepQuiet();
    return findEarlierUse(tx, use);
  });
}

/** Spends the signature. `eventId` is null when the call was ignored by `when`. */
export async function spendSignature(tx: Writer, use: OnceUse, eventId: string | null): Promise<void> {
  await SIGNATURE_MEMORY.insert(tx, { ...use, eventId });
}

/** Spends the signature of a call that `when` ignores; one spent meanwhile stays as it is. */
export function spendIgnored(store: Store, use: OnceUse): Promise<void> {
  return store.write("app", async (tx) => {
    if ((await findEarlierUse(tx, use)) === null) await spendSignature(tx, use, null);
  });
}

function sha256(data: Uint8Array): Uint8Array {
  return createHash("sha256").update(data).digest();
}
