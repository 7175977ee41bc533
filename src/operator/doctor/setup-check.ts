/** Checks the data directory on its disk, and the service's setup: its URL, its secrets, the sender domain, backups. */
import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS, HOUR_MS } from "../../base/limit.ts";
import { VERSION } from "../../base/release/version.ts";
import { isOpenToOthers, SYSTEM } from "../../base/system.ts";
import { listEnvironments } from "../../platform/account/environment.ts";
import { listOpenProblems } from "../../platform/audit/problem.ts";
import { UNMAILED_ALERTS } from "../../platform/audit/undelivered-alerts.ts";
import { readProxyTarget, UNNAMED_PROXY } from "../../platform/audit/unnamed-proxy.ts";
import { FAILING_CHANNEL } from "../../platform/channel/channel-delivery.ts";
import { listSharedSecrets } from "../../rules/relay/shared-secret.ts";
import { PERSON, toEmailKey } from "../../shop/people/person.ts";
import type { Reader } from "../../store/port.ts";
import {
  type DoctorTarget,
  type Finding,
  fail,
  formatBytes,
  formatCount,
  formatDuration,
  pass,
  warn,
} from "./finding.ts";

const MIB = 1024 * 1024;
const MIN_FREE_BYTES = 100 * MIB;
const LOW_FREE_BYTES = 1024 * MIB;
/** The server truncates its log regularly, so a long log means a reader that never ends. */
const LONG_LOG_BYTES = 256 * MIB;

export function checkRights({ dataDir }: DoctorTarget): Finding {
  const keyFile = join(dataDir, "master.key");
  if (isOpenToOthers(keyFile)) {
    return fail(
      "data directory",
      `Others on this machine may read ${keyFile}.`,
      `chmod 600 ${SYSTEM.quote(keyFile)}`,
    );
  }
  try {
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    const todo = "run this as the user that the server runs as, or give it the folder";
    return fail("data directory", `${dataDir} cannot be written by this user.`, todo);
  }
  // Others may read the database only if they may enter its folder.
  if (isOpenToOthers(dataDir) && isOpenToOthers(join(dataDir, "relay.db"))) {
    return warn(
      "data directory",
      `Others on this machine may look into ${dataDir}.`,
      `chmod 700 ${SYSTEM.quote(dataDir)}`,
    );
  }
  return pass("data directory", `${dataDir} is private to its owner and writable.`);
}

export function checkDisk({ dataDir }: DoctorTarget): Finding {
  const { bavail, bsize } = statfsSync(dataDir);
  const free = bavail * bsize;
  const size = statSync(join(dataDir, "relay.db")).size;
  const message = `${formatBytes(free)} free, the database takes ${formatBytes(size)}.`;
  if (free < MIN_FREE_BYTES) {
    return fail(
      "disk space",
      message,
      "free disk space: when the disk is full, the service receives no events",
    );
  }
  if (free < LOW_FREE_BYTES || free < 2 * size) {
    return warn("disk space", message, "free disk space for backups and for the growing database");
  }
  return pass("disk space", message);
}

export function checkLog({ dataDir }: DoctorTarget): Finding {
  const file = join(dataDir, "relay.db-wal");
  const size = existsSync(file) ? statSync(file).size : 0;
  const message = `The write-ahead log takes ${formatBytes(size)}.`;
  if (size < LONG_LOG_BYTES) return pass("log", message);
  return warn(
    "log",
    message,
    "look for a command or a backup that does not end; restarting the server cuts it",
  );
}

/** A release is old after this time. Its age is known without asking anyone. */
const OLD_AFTER_MS = 180 * DAY_MS;

export function checkVersion({ builtAt, clock }: DoctorTarget): Finding {
  if (builtAt === null) return pass("version", `${VERSION}, not from a release.`);
  const ageMs = clock.now() - Date.parse(builtAt);
  const message = `${VERSION}, built ${ageMs < DAY_MS ? "less than a day" : formatDuration(ageMs)} ago.`;
  if (ageMs < OLD_AFTER_MS) return pass("version", message);
  return warn("version", message, "ask for a newer release with relay upgrade --check");
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

export async function checkBaseUrl(tx: Reader, { baseUrl }: DoctorTarget): Promise<Finding> {
  if (await isLocal(tx)) {
    return pass("base URL", "Local development: receivers answer on this machine.");
  }
  const todo = "give the server its public https origin with --base-url or RELAY_BASE_URL";
  if (baseUrl === null) return warn("base URL", "It is not known here.", `${todo}, and this command too`);
  const url = URL.parse(baseUrl);
  if (url === null || LOOPBACK.test(url.hostname)) {
    return warn("base URL", `${baseUrl} is this machine's own: no provider reaches it.`, todo);
  }
  if (url.protocol !== "https:") {
    return warn("base URL", `${baseUrl} is not https: events and sessions travel in the clear.`, todo);
  }
  return pass("base URL", `${baseUrl}, https.`);
}

/** A request names no environment, so only its secret decides which one receives it. */
export async function checkSecrets(tx: Reader, { clock }: DoctorTarget): Promise<Finding> {
  const shared = await listSharedSecrets(tx, clock.now());
  if (shared.length === 0) return pass("secrets", "Each secret verifies requests of only one environment.");
  return warn(
    "secrets",
    `One secret verifies ${shared.join(", ")} in two environments, so one environment receives the other's events.`,
    "create a separate webhook endpoint for each environment at the sender, and store its secret",
  );
}

/** Applies only where a relay mails people. Local development sends nothing. */
export async function checkSenderDomain(tx: Reader): Promise<Finding> {
  const missing = await tx.all<{ name: string }>(
    `SELECT DISTINCT environment.app_id || '/' || environment.name AS name FROM relay
     JOIN environment ON environment.id = relay.environment_id
     LEFT JOIN sender_domain ON sender_domain.environment_id = environment.id
     WHERE environment.name <> 'local' AND sender_domain.verified_at IS NULL
       AND EXISTS (SELECT 1 FROM json_each(relay.definition, '$.actions') AS action
                   WHERE json_extract(action.value, '$.type') = 'email_person')
     ORDER BY 1`,
  );
  if (missing.length === 0)
    return pass("sender domain", "Every relay that sends mail has a verified one, or none sends.");
  const names = missing.map(({ name }) => name).join(", ");
  return warn(
    "sender domain",
    `Relays send mail but no domain is verified in ${names}: email_person is refused there.`,
    "set one with relay domain set <domain>, make the DNS record it says, then run relay domain verify",
  );
}

/** An owner who relies on alerts by mail does not look elsewhere. */
export async function checkAlertMail(tx: Reader): Promise<Finding> {
  const [first, ...others] = await listOpenMessages(tx, UNMAILED_ALERTS);
  if (first === undefined) return pass("alert mail", "No alert mail is known to have missed the owners.");
  return warn(
    "alert mail",
    `Owners get no mail about alerts. ${formatFirst(first, others)}`,
    "fix that cause, then send a test mail with relay emails test",
  );
}

/** A team that looks at its channel does not look elsewhere. */
export async function checkAlertChannels(tx: Reader): Promise<Finding> {
  const [first, ...others] = await listOpenMessages(tx, FAILING_CHANNEL);
  if (first === undefined) return pass("alert channels", "No alert channel is known to have failed.");
  return warn(
    "alert channels",
    formatFirst(first, others),
    "correct the channel with relay alerts set-channel, and test it with relay alerts test-channel",
  );
}

interface OpenMessage {
  name: string;
  message: string;
}

/** Lists the open problems of a code, each with its environment. */
function listOpenMessages(tx: Reader, code: string): Promise<OpenMessage[]> {
  return tx.all(
    `SELECT environment.app_id || '/' || environment.name AS name, message FROM problem
     JOIN environment ON environment.id = problem.environment_id WHERE cleared_at IS NULL AND code = ?1 ORDER BY 1`,
    code,
  );
}

function formatFirst({ name, message }: OpenMessage, others: readonly OpenMessage[]): string {
  const names = [...new Set(others.map((other) => other.name))];
  return `${name}: ${message}${names.length === 0 ? "" : ` Also in ${names.join(", ")}.`}`;
}

/** The most pairs that one finding names. */
const MAX_NAMED_PAIRS = 5;
const MAX_NAMED_RELAYS = 5;

/**
 * Finds people who were stored under both spellings of their address's domain before those became one. New events go to the person with
 * the spelling in letters.
 */
export async function checkPeople(tx: Reader, { quick }: DoctorTarget): Promise<Finding> {
  if (quick) return pass("people", "Not checked with --quick.");
  const old = await tx.all<{ environmentId: number; place: string; email: string; id: string }>(
    `SELECT environment_id AS environmentId, environment.app_id || '/' || environment.name AS place, email, person.id AS id
     FROM person JOIN environment ON environment.id = environment_id
     WHERE instr(email_key, 'xn--') > 0 AND status NOT IN ('erased', 'suspended') ORDER BY person.id`,
  );
  const pairs: string[] = [];
  for (const { environmentId, place, email, id } of old) {
    const emailKey = toEmailKey(email);
    const other = await PERSON.find(tx, { environmentId, emailKey });
    if (other !== null && other.id !== id)
      pairs.push(`${id} (${email}) and ${other.id} (${other.email}) of ${place}`);
  }
  if (pairs.length === 0) return pass("people", "No person exists twice under two spellings of one address.");
  const more = pairs.length > MAX_NAMED_PAIRS ? `, and ${pairs.length - MAX_NAMED_PAIRS} more` : "";
  return warn(
    "people",
    `One address is two people, whose domain was given in letters and in punycode: ${pairs.slice(0, MAX_NAMED_PAIRS).join("; ")}${more}.`,
    "Compare both with relay people show <id>. Give the second person of each pair, which the service uses from now on, everything that the first has. Then suspend the first, or erase it on its page. To erase a person completely, erase both",
  );
}

/** Providers send the events of a purchase within minutes of each other, in any order. */
const USUAL_DELAY_MS = HOUR_MS;

/** Finds events that wait for a customer ID longer than a late event explains. */
export async function checkCustomers(tx: Reader, { clock }: DoctorTarget): Promise<Finding> {
  const relays = await tx.all<{ place: string; count: number; oldest: number }>(
    `SELECT environment.app_id || '/' || environment.name || ' ' || relay_name.name AS place, count(*) AS count, min(event.created_at) AS oldest
     FROM event JOIN relay_name ON relay_name.key = event.name_key JOIN environment ON environment.id = event.environment_id
     WHERE event.state = 'queued' AND event.next_attempt_at IS NOT NULL AND event.reason = 'customer_unknown'
     GROUP BY environment.app_id, environment.name, relay_name.name ORDER BY count(*) DESC, place`,
  );
  if (relays.length === 0) return pass("customers", "No event waits for an unknown customer ID.");
  const count = relays.reduce((sum, relay) => sum + relay.count, 0);
  const waited = clock.now() - Math.min(...relays.map(({ oldest }) => oldest));
  const named = relays.slice(0, MAX_NAMED_RELAYS).map((relay) => `${relay.place} ${relay.count}`);
  const message = `Waiting for an unknown customer ID: ${formatCount(count, "event")} (${named.join(", ")}), the oldest for ${formatDuration(waited)}.`;
  if (waited < USUAL_DELAY_MS) return pass("customers", message);
  return warn(
    "customers",
    message,
    "relay events list --reason customer_unknown shows them. Link each ID with relay people link, or check that a relay of the same space maps both the person and the ID",
  );
}

/** Local development needs no backup; a server without one cannot be restored. */
export function checkBackups(
  { dataDir, backupEveryMs, clock }: Pick<DoctorTarget, "dataDir" | "backupEveryMs" | "clock">,
  local: boolean,
): Finding {
  const newest = findNewestBackup(join(dataDir, "backups"));
  const age = newest === null ? null : clock.now() - newest;
  const message =
    age === null ? "None in backups/." : `The newest in backups/ is ${formatDuration(age)} old.`;
  if (backupEveryMs !== null && (age === null || age > 2 * backupEveryMs)) {
    return warn(
      "backups",
      message,
      "automatic backups are on, but none was made in time: see that the server runs, read its log and check the disk",
    );
  }
  if (age !== null) return pass("backups", message);
  const todo =
    "make one with relay backup; for automatic backups set a schedule in Settings › Backups or with relay backups schedule 1d, or start the server with relay serve --backup-every 1d";
  if (local) return pass("backups", `${message} Local development needs none.`);
  return warn("backups", "The server has no backup in backups/.", todo);
}

/** A server has no environment before its first app. */
export async function isLocal(tx: Reader): Promise<boolean> {
  const environments = await listEnvironments(tx, null);
  return environments.length > 0 && environments.every(({ name }) => name === "local");
}

/** Reports what the running server noticed. */
export async function checkProxy(tx: Reader): Promise<Finding> {
  const [problem] = await listOpenProblems(tx, [UNNAMED_PROXY]);
  if (problem === undefined)
    return pass("proxy", "No request came through a proxy that --trusted-proxy does not name.");
  const proxy = readProxyTarget(problem.target);
  const message = `Requests come through the proxy ${proxy}, which --trusted-proxy does not name. All callers behind it count as one caller.`;
  return warn("proxy", message, `start the server with --trusted-proxy ${proxy} (RELAY_TRUSTED_PROXY)`);
}

/** Returns when the newest backup was written, in milliseconds since the epoch. Returns null if there is none. */
function findNewestBackup(folder: string): number | null {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return null;
  }
  const times = names
    .filter((name) => name.endsWith(".db") && !name.startsWith("."))
    .map((name) => statSync(join(folder, name)).mtimeMs);
  return times.length === 0 ? null : Math.max(...times);
}
