/**
 * Stores the networks that an owner signed in from, each as a digest under the server's key: guesses of strangers do not lock the owner out there,
 * also after a restart. A network is an IPv4 address or an IPv6 /64. Each owner has a bounded number of them, for a bounded time, and they
 * go with the owner. Nothing here stores or answers an address.
 */
import { KNOWN_DEVICE_LIFE_MS, MAX_NETWORKS_PER_OWNER } from "../../base/limit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { bytes, defineTable, integer, text } from "../../store/table.ts";

const OWNER_NETWORK = defineTable({
  name: "owner_network",
  key: ["networkDigest"],
  columns: { networkDigest: bytes(), ownerId: text(), seenAt: integer() },
});

/** The same account and network give the same digest, from which neither can be learned without the key of `digest`. */
export function digestOwnerNetwork(
  digest: (text: string) => Uint8Array,
  account: string,
  source: string,
): Uint8Array {
  return digest(`owner network\n${account.trim().toLowerCase()}\n${source}`);
}

/** Reports whether the account signed in from this network within the last 400 days. */
export async function isKnownOwnerNetwork(
  tx: Reader,
  networkDigest: Uint8Array,
  nowMs: number,
): Promise<boolean> {
  const since = { networkDigest, after: nowMs - KNOWN_DEVICE_LIFE_MS };
  const where = "WHERE network_digest = $networkDigest AND seen_at > $after";
  return (await OWNER_NETWORK.get(tx, where, since)) !== null;
}

/** Records that the owner signed in from this network; the least recently used network is removed if there are too many. */
export async function recordOwnerNetwork(
  tx: Writer,
  of: { ownerId: string; networkDigest: Uint8Array; nowMs: number },
): Promise<void> {
  const { ownerId, networkDigest, nowMs } = of;
  const onConflict = "ON CONFLICT (network_digest) DO UPDATE SET seen_at = excluded.seen_at";
  await OWNER_NETWORK.insert(tx, { networkDigest, ownerId, seenAt: nowMs }, onConflict);
  await tx.run(
    `DELETE FROM owner_network WHERE owner_id = ?1 AND network_digest IN (
       SELECT network_digest FROM owner_network WHERE owner_id = ?1 ORDER BY seen_at DESC, network_digest LIMIT ?2 OFFSET ?3)`,
    ownerId,
    MAX_NETWORKS_PER_OWNER,
    MAX_NETWORKS_PER_OWNER,
  );
}

/** Forgets networks that no sign-in came from for 400 days; for the daily cleaning. */
export async function deleteOldOwnerNetworks(tx: Writer, nowMs: number): Promise<void> {
  await tx.run("DELETE FROM owner_network WHERE seen_at <= ?1", nowMs - KNOWN_DEVICE_LIFE_MS);
}
