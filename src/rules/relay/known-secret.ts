/**
 * The secrets that a sender may have used for a relay: its own, the one before it, those of its name in other environments of the app, and
 * those of other relays in its environment. Only the diagnosis of a rejected request opens them, and no answer shows one.
 */
import type { Sealer } from "../../platform/secret/seal.ts";
import type { Reader } from "../../store/port.ts";
import type { KnownSecret } from "../verify/signature-evidence.ts";
import type { LiveRelay } from "./live-relay.ts";
import { processorSecretContext, type RelayRow, receiverSecretContext } from "./relay.ts";

/** An environment has at most 20 relays unless its limit was raised. */
const MAX_RELAYS = 40;

type SecretRow = Pick<
  RelayRow,
  "id" | "environmentId" | "name" | "secretKind" | "secret" | "previousSecret"
> & { environmentName: string };

interface ProcessorRow {
  id: number;
  name: string;
  secret: Uint8Array | null;
}

type SecretOwner = Pick<LiveRelay, "id" | "name" | "appId" | "environmentId" | "definition"> & {
  receiver: { source: { id: string } | null } | null;
};

/** Lists the known secrets, first the relay's own or its source's. Leaves out a secret that cannot be opened. */
export async function listKnownSecrets(
  tx: Reader,
  sealer: Sealer,
  relay: SecretOwner,
): Promise<KnownSecret[]> {
  const { appId, name, environmentId } = relay;
  const id = relay.receiver?.source?.id ?? relay.id;
  const sql = `SELECT relay.id AS id, environment_id AS environmentId, relay.name AS name, secret_kind AS secretKind, secret,
      previous_secret AS previousSecret, environment.name AS environmentName
    FROM environment JOIN relay ON relay.environment_id = environment.id
    WHERE environment.app_id = $appId AND secret IS NOT NULL AND (relay.name = $name OR environment.id = $environmentId)
    ORDER BY relay.id = $id DESC, relay.name = $name DESC LIMIT $most`;
  const rows = await tx.all<SecretRow>(sql, { appId, name, environmentId, id, most: MAX_RELAYS });
  const processors = await tx.all<ProcessorRow>(
    "SELECT id, name, processor_secret AS secret FROM environment WHERE app_id = ?1 AND processor_secret IS NOT NULL",
    appId,
  );
  const secrets = [
    ...rows.flatMap((row) => openRelaySecrets(sealer, { ...relay, id }, row)),
    ...processors.flatMap((row) => openProcessorSecret(sealer, relay, row)),
  ];
  return secrets.toSorted((one, other) => Number(one.label !== null) - Number(other.label !== null));
}

function openRelaySecrets(sealer: Sealer, relay: SecretOwner, row: SecretRow): KnownSecret[] {
  const isPublicKey = row.secretKind === "public_key";
  const noun = isPublicKey ? "key" : "secret";
  const open = (sealed: Uint8Array | null, label: string | null): KnownSecret[] => {
    const text = unseal(sealer, sealed, receiverSecretContext(row.id));
    return text === null ? [] : [{ text, isPublicKey, label }];
  };
  if (row.id === relay.id)
    return [...open(row.secret, null), ...open(row.previousSecret, `the ${noun} before the current one`)];
  if (row.environmentId === relay.environmentId)
    return open(row.secret, `the ${noun} of the relay ${row.name}`);
  return open(row.secret, `the ${noun} of the relay with this name in ${row.environmentName}`);
}

function openProcessorSecret(sealer: Sealer, relay: SecretOwner, row: ProcessorRow): KnownSecret[] {
  const text = unseal(sealer, row.secret, processorSecretContext(row.id));
  if (text === null) return [];
  const secret = { text, isPublicKey: false };
  if (row.id !== relay.environmentId) return [{ ...secret, label: `the processor secret of ${row.name}` }];
  const { trigger } = relay.definition;
  const isOwn = trigger.kind === "receiver" && trigger.verify.scheme === "processor";
  return [{ ...secret, label: isOwn ? null : "the processor secret of this environment" }];
}

function unseal(sealer: Sealer, sealed: Uint8Array | null, context: string): string | null {
  if (sealed === null) return null;
  try {
    return sealer.unseal(sealed, context);
  } catch {
    return null;
  }
}
