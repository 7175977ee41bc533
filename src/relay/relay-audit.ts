/** The audit rows of relay changes: definitions before and after, secrets and keys as fingerprints only. It decides nothing. */
import { actorWords } from "../account/owner.ts";
import { toIso, toIsoOrNull } from "../ground/clock.ts";
import type { Writer } from "../store/port.ts";
import { writeAudit } from "../watch/audit.ts";
import type { RelayContext } from "./relay-context.ts";
import { type RelayRow, relayTarget } from "./relay-row.ts";

type RelayChange =
  | "relay.created"
  | "relay.updated"
  | "relay.deleted"
  | "relay.paused"
  | "relay.resumed"
  | "relay.secret_changed"
  | "relay.signing_secret_changed";

/** Writes the change's row; null stands for a relay that is not there. */
export async function auditRelay(
  tx: Writer,
  context: Pick<RelayContext, "environment" | "actor" | "nowMs">,
  change: RelayChange,
  before: RelayRow | null,
  after: RelayRow | null,
): Promise<void> {
  const name = (after ?? before)?.name ?? "";
  await writeAudit(tx, {
    environmentId: context.environment.id,
    atMs: context.nowMs,
    actor: actorWords(context.actor),
    action: change,
    target: relayTarget(name),
    before: before === null ? null : describe(change, before),
    after: after === null ? null : describe(change, after),
  });
}

function describe(change: RelayChange, row: RelayRow): Record<string, unknown> {
  switch (change) {
    case "relay.paused":
    case "relay.resumed":
      return { state: row.state };
    case "relay.secret_changed":
      return { secret: describeSecret(row) };
    case "relay.signing_secret_changed":
      return { signingSecret: describeSigning(row) };
    default:
      return {
        version: row.version,
        origin: row.originKind,
        definition: row.definition,
        secret: describeSecret(row),
        signingSecret: describeSigning(row),
      };
  }
}

function describeSecret(row: RelayRow): Record<string, unknown> {
  const { secretKind, secretFingerprint, secretSetAt, previousSecretUntil } = row;
  return {
    kind: secretKind,
    fingerprint: secretFingerprint,
    setAt: toIsoOrNull(secretSetAt),
    ...(previousSecretUntil === null ? {} : { previousUntil: toIso(previousSecretUntil) }),
  };
}

function describeSigning(row: RelayRow): Record<string, unknown> | null {
  return row.signingSecretSetAt === null ? null : { setAt: toIsoOrNull(row.signingSecretSetAt) };
}
