/**
 * The secrets that a refused call of a relay is tried with, and what changed here since a call last verified: the relay's own, the one before
 * it, those of this name in the app's other environments, and those of the relays beside it. Opened for that alone; it shows none.
 */
import type { Sealer } from "../secret/seal.ts";
import type { Reader } from "../store/port.ts";
import type { SecretAtHand } from "../verify/refused-call.ts";
import type { LiveRelay } from "./live-relay.ts";
import { processorSecretContext, type RelayRow, receiverSecretContext, relayTarget } from "./relay.ts";

/** Of relays with another name; an environment holds 20 unless its limit was raised. */
const MAX_OTHERS = 40;

type SecretRow = Pick<
  RelayRow,
  "id" | "environmentId" | "name" | "secretKind" | "secret" | "previousSecret"
> & {
  environmentName: string;
};

interface ProcessorRow {
  id: number;
  name: string;
  secret: Uint8Array | null;
}

type OfRelay = Pick<LiveRelay, "id" | "name" | "appId" | "environmentId" | "definition">;

/** The relay's own secret first. One that cannot be opened is left out. */
export async function listSecretsAtHand(tx: Reader, sealer: Sealer, relay: OfRelay): Promise<SecretAtHand[]> {
  const sql = `SELECT relay.id AS id, environment_id AS environmentId, relay.name AS name, secret_kind AS secretKind, secret,
      previous_secret AS previousSecret, environment.name AS environmentName
    FROM environment JOIN relay ON relay.environment_id = environment.id
    WHERE environment.app_id = $appId AND secret IS NOT NULL AND (relay.name = $name OR environment.id = $environmentId)
    ORDER BY relay.id = $id DESC, relay.name = $name DESC LIMIT $most`;
  const { appId, name, environmentId, id } = relay;
  const rows = await tx.all<SecretRow>(sql, { appId, name, environmentId, id, most: MAX_OTHERS });
  const processors = await tx.all<ProcessorRow>(
    "SELECT id, name, processor_secret AS secret FROM environment WHERE app_id = ?1 AND processor_secret IS NOT NULL",
    appId,
  );
  const { trigger } = relay.definition;
  const usesProcessor = trigger.kind === "receiver" && trigger.verify.scheme === "processor";
  const found = [
    ...rows.flatMap((row) => openRelaySecrets(sealer, relay, row)),
    ...processors.map((row): SecretAtHand | null => {
      const text = open(sealer, row.secret, processorSecretContext(row.id));
      const own = row.id === environmentId;
      const called = own
        ? usesProcessor
          ? null
          : "the processor secret of this environment"
        : `the processor secret of ${row.name}`;
      return text === null ? null : { text, isPublicKey: false, called };
    }),
  ].filter((one) => one !== null);
  return found.toSorted((one, other) => Number(one.called !== null) - Number(other.called !== null));
}

function openRelaySecrets(sealer: Sealer, relay: OfRelay, row: SecretRow): SecretAtHand[] {
  const isPublicKey = row.secretKind === "public_key";
  const what = isPublicKey ? "key" : "secret";
  const called =
    row.id === relay.id
      ? null
      : row.environmentId === relay.environmentId
        ? `the ${what} of the relay ${row.name}`
        : `the ${what} that ${row.environmentName} holds under this name`;
  const secrets = [
    { sealed: row.secret, called },
    ...(row.id === relay.id
      ? [{ sealed: row.previousSecret, called: `the ${what} before the present one` }]
      : []),
  ];
  return secrets.flatMap(({ sealed, called: name }) => {
    const text = open(sealer, sealed, receiverSecretContext(row.id));
    return text === null ? [] : [{ text, isPublicKey, called: name }];
  });
}

function open(sealer: Sealer, sealed: Uint8Array | null, context: string): string | null {
  if (sealed === null) return null;
  try {
    return sealer.unseal(sealed, context);
  } catch {
    return null;
  }
}

/** When this relay's definition, and the secret that it verifies with, were last changed here. */
export async function findLastChanges(
  tx: Reader,
  { id, environmentId, name }: OfRelay,
): Promise<{ definitionAt: number | null; secretAt: number | null }> {
  const sql = `SELECT max(at) AS definitionAt,
      (SELECT coalesce(relay.secret_set_at, environment.processor_secret_set_at) FROM relay
        JOIN environment ON environment.id = relay.environment_id WHERE relay.id = $id) AS secretAt
    FROM audit WHERE environment_id = $environmentId AND target = $target AND event_id IS NULL AND action = 'relay.updated'`;
  const row = await tx.get<{ definitionAt: number | null; secretAt: number | null }>(sql, {
    id,
    environmentId,
    target: relayTarget(name),
  });
  return row ?? { definitionAt: null, secretAt: null };
}
