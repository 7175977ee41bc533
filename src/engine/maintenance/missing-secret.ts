/**
 * Alerts of receivers whose secret is still missing some time after the save. The save raises the problem secret_missing at once; the alert waits,
 * because a person who saves a relay pastes the secret next.
 */
import { MINUTE_MS } from "../../base/limit.ts";
import {
  findEnvironmentById,
  isAlertEnabled,
  isLocalEnvironment,
} from "../../platform/account/environment.ts";
import { raiseAlert } from "../../platform/audit/alert.ts";
import { eachEnvironment } from "../../store/each-environment.ts";
import type { FencedStore, Reader } from "../../store/port.ts";

const CODE = "secret_missing";
const ALERT_AFTER_MS = 15 * MINUTE_MS;

interface MissingSecret {
  environmentId: number;
  target: string;
  message: string;
}

/** Selects the open problems raised at ?1 or earlier that no alert reported yet. never_verified reports the same receiver. */
const UNREPORTED = `SELECT environment_id AS environmentId, target, message FROM problem
  WHERE cleared_at IS NULL AND code = '${CODE}' AND raised_at <= ?1
    AND NOT EXISTS (SELECT 1 FROM alert WHERE alert.environment_id = problem.environment_id AND alert.target = problem.target
      AND alert.code IN ('${CODE}', 'never_verified') AND alert.last_at >= problem.raised_at)`;

/** Raises the due alerts. Opens no transaction if none is due. */
export async function alertMissingSecrets(
  store: Pick<FencedStore, "read" | "write">,
  nowMs: number,
): Promise<void> {
  await eachEnvironment(await store.read((tx) => listUnreported(tx, nowMs)), (environmentId) =>
    store.write(
      "app",
      async (tx) => {
        for (const problem of await listUnreported(tx, nowMs))
          if (problem.environmentId === environmentId)
            await raiseAlert(tx, { ...problem, code: CODE, nowMs });
      },
      environmentId,
    ),
  );
}

async function listUnreported(tx: Reader, nowMs: number): Promise<MissingSecret[]> {
  const enabled: MissingSecret[] = [];
  for (const problem of await tx.all<MissingSecret>(UNREPORTED, nowMs - ALERT_AFTER_MS)) {
    const environment = await findEnvironmentById(tx, problem.environmentId);
    if (environment === null || isLocalEnvironment(environment)) continue;
    if (isAlertEnabled(environment, CODE)) enabled.push(problem);
  }
  return enabled;
}
