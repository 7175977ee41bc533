/** Connects a command to the service that runs on a data directory, with a key that belongs to the command. */
import { COMMAND_LINE, formatActor } from "../../../platform/account/api-key.ts";
import { requireCommandKey } from "../../../platform/account/command-key.ts";
import { writeAudit } from "../../../platform/audit/audit.ts";
import { loadMasterKey } from "../../../platform/secret/master-key.ts";
import { Sealer } from "../../../platform/secret/seal.ts";
import { DataDirectoryTaken, lockDataDirectory } from "../../../store/sqlite/directory-lock.ts";
import { CommandFailure, type Input } from "../command.ts";
import { readRunningUrl, withEnvironment } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { readDataDir } from "../service-option.ts";
import { Remote } from "./remote.ts";

/** Returns the service, with a key that the command creates under `name`. Fails with `service_not_running`. */
export async function connectLocalService(input: Input, io: Io, name: string): Promise<Remote> {
  const dataDir = readDataDir(input, io);
  const sealer = new Sealer(await loadMasterKey(dataDir, io.env.RELAY_MASTER_KEY || null));
  return await withEnvironment(input, io, async (store, environment) => {
    const url = readRunningUrl(dataDir);
    if (url === null || !isServiceRunning(dataDir, io))
      throw new CommandFailure(
        "service_not_running",
        `No service runs on ${dataDir}: start one with relay dev or relay serve, or name a server with --profile, or with RELAY_URL and RELAY_KEY.`,
      );
    const nowMs = io.clock.now();
    const digest = (text: string): Uint8Array => sealer.digest(text);
    const key = await store.write("dashboard", async (tx) => {
      const { token, made } = await requireCommandKey(tx, { environment, name, nowMs, digest });
      if (made !== null)
        await writeAudit(tx, {
          environmentId: environment.id,
          nowMs,
          by: formatActor(COMMAND_LINE),
          action: "key.created",
          target: `key:${made.id}`,
          after: { kind: made.kind, name: made.name, hint: made.hint, origins: made.origins },
        });
      return token;
    });
    return new Remote({ url, key, app: environment.appId, environment: environment.name, profile: null });
  });
}

/**
 * Reports whether a service holds the lock of the data directory. running.json is not enough: a killed service leaves it, and another
 * program may listen there.
 */
function isServiceRunning(dataDir: string, io: Io): boolean {
  try {
    lockDataDirectory(dataDir, "a relay command", io.clock.now()).release();
    return false;
  } catch (error) {
    if (error instanceof DataDirectoryTaken) return true;
    throw error;
  }
}
