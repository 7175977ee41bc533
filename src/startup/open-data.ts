/**
 * Opening a data directory for a server: its lock, its database, the runner's lease, its master key, and what an earlier process left
 * unfinished. What is missing or somebody else's is refused in a sentence before anything but the schema and the lease is changed.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { removeParts } from "../backup/restore.ts";
import type { ServiceConfig } from "../config.ts";
import type { Log } from "../ground/log.ts";
import { endInterruptedMails } from "../mail/interrupted-mail.ts";
import { settleEveryRelayProblem } from "../relay/relay-problem.ts";
import { rekeyFingerprints } from "../relay/relay-secret.ts";
import { findMasterKey } from "../secret/master-key.ts";
import type { Sealer } from "../secret/seal.ts";
import { refuseLostDatabase } from "../store/file-place.ts";
import { RunnerLease } from "../store/lease.ts";
import { lockDataDirectory } from "../store/lock.ts";
import type { Store } from "../store/port.ts";
import { openSqlite } from "../store/sqlite.ts";
import { ensureLocalApp, requireMode } from "./local-app.ts";
import { openSealer } from "./master-key-check.ts";

interface OpenData {
  store: Store;
  /** The same for what happens by itself: it writes nothing once another server has the lease. */
  own: Store;
  lease: RunnerLease;
  sealer: Sealer;
}

/** Closing it is put on `started`. `onGroup` is told the size of every committed group. */
export async function openData(
  config: ServiceConfig,
  log: Log,
  onGroup: (size: number) => void,
  started: AsyncDisposableStack,
): Promise<OpenData> {
  const { clock, dataDir, mode } = config;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const lock = lockDataDirectory(dataDir, `relay ${mode === "local" ? "dev" : "serve"}`, clock.now());
  started.defer(() => lock.release());
  await findMasterKey(dataDir, config.masterKey);
  refuseLostDatabase(dataDir);
  const file = join(dataDir, "relay.db");
  const store = await openSqlite(file, {
    clock,
    onGroup,
    onTrouble: (trouble) => tellTrouble(log, trouble),
    // A large one takes minutes, in which the port does not answer.
    onMigrate: (schema) =>
      log.info("the database is brought to this version's schema, after a copy of it into backups/", schema),
  });
  started.defer(() => store.close());
  removeParts(dataDir);
  const lease = await RunnerLease.take({ store, file, lock, clock });
  started.defer(() => lease.release());
  const sealer = await openSealer(store, config);
  await requireMode(store, config);
  if (mode === "local") await ensureLocalApp(store, clock.now());
  await store.write("app", async (tx) => {
    await rekeyFingerprints(tx, sealer);
    await settleEveryRelayProblem(tx, sealer, clock.now());
  });
  const interrupted = await store.write("app", (tx) => endInterruptedMails(tx, clock.now()));
  if (interrupted.unknown + interrupted.notLeft > 0)
    log.warn("mails of an earlier process had no end", interrupted);
  return { store, own: store.behind(lease.fence), lease, sealer };
}

function tellTrouble(log: Log, trouble: string | null): void {
  if (trouble === null) log.info("the database is in its place again, and writes go on");
  else log.error("the database is not where it was opened", { cause: trouble });
}
