/** What the live relays are made of: every relay's row with its environment's, secrets still sealed. */
import type { Reader } from "../store/port.ts";

export interface LiveRow {
  id: string;
  name: string;
  environmentId: number;
  environmentName: string;
  appId: string;
  heldAt: number | null;
  definition: string;
  version: number;
  state: "active" | "paused";
  secretKind: string;
  secret: Uint8Array | null;
  previousSecret: Uint8Array | null;
  previousSecretUntil: number | null;
  processorSecret: Uint8Array | null;
  signingSecret: Uint8Array | null;
}

export function listLiveRows(tx: Reader): Promise<LiveRow[]> {
  return tx.all<LiveRow>(
    `SELECT relay.id, relay.name, relay.environment_id AS environmentId, environment.name AS environmentName, environment.app_id AS appId,
       environment.held_at AS heldAt, relay.definition, relay.version, relay.state, relay.secret_kind AS secretKind, relay.secret,
       relay.previous_secret AS previousSecret, relay.previous_secret_until AS previousSecretUntil,
       environment.processor_secret AS processorSecret, relay.signing_secret AS signingSecret
     FROM relay JOIN environment ON environment.id = relay.environment_id ORDER BY relay.id`,
  );
}
