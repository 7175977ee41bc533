/** Looks a data directory over, check by check, beside a running server or without one. It changes nothing. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type DatabaseFile, openDatabaseFile, readSchemaVersion } from "../store/database-file.ts";
import { SCHEMA_VERSION } from "../store/migrate.ts";
import { checkKey, checkSchema, checkWhole } from "./database-check.ts";
import { checkDisk, checkLog, checkRights } from "./directory-check.ts";
import { checkClock, checkDead, checkProblems, checkQueue } from "./event-check.ts";
import { type Finding, failure, type Patient } from "./finding.ts";
import { checkBackups, checkBaseUrl, checkSecrets, checkSenderDomain } from "./setup-check.ts";

type RowCheck = (database: DatabaseFile, patient: Patient) => Promise<Finding>;

/** These read rows, and need this executable's schema. */
const ROW_CHECKS: readonly RowCheck[] = [
  checkKey,
  checkQueue,
  checkDead,
  checkProblems,
  checkClock,
  checkBaseUrl,
  checkSecrets,
  checkSenderDomain,
];

/** Every finding, in the order a person reads them. */
export async function examine(patient: Patient): Promise<Finding[]> {
  const { dataDir } = patient;
  if (!existsSync(join(dataDir, "relay.db"))) {
    const todo =
      "name the server's with --data-dir or RELAY_DATA_DIR, or start one with relay dev or relay serve";
    return [failure("data directory", `There is no database in ${dataDir}.`, todo)];
  }
  const outside = [checkRights(patient), checkDisk(patient), checkLog(patient)];
  return [...outside, ...(await lookInside(patient)), checkBackups(patient)];
}

async function lookInside(patient: Patient): Promise<Finding[]> {
  const findings: Finding[] = [];
  try {
    using database = openDatabaseFile(join(patient.dataDir, "relay.db"));
    const schema = await readSchemaVersion(database);
    findings.push(checkSchema(schema));
    if (schema === null) return findings;
    findings.push(await checkWhole(database, patient));
    if (schema !== SCHEMA_VERSION) return findings;
    for (const check of ROW_CHECKS) findings.push(await check(database, patient));
  } catch (error) {
    const todo = "stop the server and restore a backup with relay restore <file>";
    findings.push(failure("database", `It cannot be read: ${(error as Error).message}.`, todo));
  }
  return findings;
}
