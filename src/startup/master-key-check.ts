/** Whether the master key at hand is the one this database was sealed under. It never shows a secret. */
import { receiverSecretContext } from "../relay/relay-row.ts";
import type { Sealer } from "../secret/seal.ts";
import type { Store } from "../store/port.ts";

/** Refuses to start over secrets that this master key cannot open, instead of failing at every call. */
export async function requireMasterKey(store: Store, sealer: Sealer): Promise<void> {
  const relay = await store.read((tx) =>
    tx.get<{ id: string; secret: Uint8Array }>(
      "SELECT id, secret FROM relay WHERE secret IS NOT NULL LIMIT 1",
    ),
  );
  if (relay !== null) sealer.unseal(relay.secret, receiverSecretContext(relay.id));
}
