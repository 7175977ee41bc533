/**
 * Deletes an app in three parts. Its contents are counted for the owner. One transaction then hides it, so that no route, key, receiver, schedule
 * or capture finds it. Small steps delete its rows afterwards; each step looks for what is left, so that a crash needs no recovery. A row without a
 * name remains, so that its environments' numbers are never used again.
 */
import { type Static, Type } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import { oneOf, textOrNull } from "../../base/schema.ts";
import { type App, appView, findApp, viewApp } from "../../platform/account/app.ts";
import { ENVIRONMENT_NAMES, type Environment, listEnvironments } from "../../platform/account/environment.ts";
import { deleteMembershipsOfApp } from "../../platform/account/membership.ts";
import { SERVER_SCOPE, writeAudit } from "../../platform/audit/audit.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import { BATCH_BYTES, BATCH_EVENTS, dropEvents } from "./retention.ts";

/** Counting stops here. */
const MOST_COUNTED = 10_000;

const EVENTS =
  "relay_name JOIN event INDEXED BY event_of_relay ON event.name_key = relay_name.key WHERE relay_name.environment_id = $id";
/** The counted contents, by an index of the environment, with the singular noun. */
const COUNTED = {
  relays: ["relay", "relay WHERE environment_id = $id"],
  keys: ["key", "api_key WHERE environment_id = $id AND revoked_at IS NULL"],
  events: ["event", EVENTS],
  people: ["person", "person WHERE environment_id = $id"],
  records: ["record", "record WHERE environment_id = $id"],
  files: ["file", "file WHERE environment_id = $id"],
  purchases: ["purchase", "purchase WHERE environment_id = $id"],
  mails: ["mail", "email WHERE environment_id = $id"],
} as const;
const KINDS = Object.keys(COUNTED) as (keyof typeof COUNTED)[];

export const appContentsView = Type.Object({
  app: appView,
  environments: Type.Array(
    Type.Object({
      name: oneOf(ENVIRONMENT_NAMES),
      held: Type.Array(Type.Object({ what: oneOf(KINDS), count: Type.Integer(), isMore: Type.Boolean() })),
      /** The contents in words. */
      words: Type.String(),
    }),
  ),
  /** The reason why only an owner who forces it can delete the app; null where nothing prevents it. */
  standsAgainst: textOrNull,
});
export type AppContents = Static<typeof appContentsView>;

/** Counts what deleting the app would delete, up to ten thousand each. Throws `not_found`. */
export async function countApp(store: Store, appId: string): Promise<AppContents> {
  const { app, environments } = await store.read((tx) => requireApp(tx, appId));
  const counted: AppContents["environments"] = [];
  for (const { id, name } of environments) {
    const held: AppContents["environments"][number]["held"] = [];
    for (const what of KINDS) {
      const sql = `SELECT count(*) AS count FROM (SELECT 1 FROM ${COUNTED[what][1]} LIMIT ${MOST_COUNTED + 1})`;
      const count = (await store.read((tx) => tx.get<{ count: number }>(sql, { id })))?.count ?? 0;
      held.push({ what, count: Math.min(count, MOST_COUNTED), isMore: count > MOST_COUNTED });
    }
    counted.push({ name, held, words: formatContents(held) });
  }
  const standsAgainst = await store.read((tx) => findObjection(tx, app, environments));
  return { app: viewApp(app), environments: counted, standsAgainst };
}

function formatContents(held: AppContents["environments"][number]["held"]): string {
  const some = held.flatMap(({ what, count, isMore }) => {
    if (count === 0) return [];
    return [`${isMore ? "more than " : ""}${count} ${count === 1 ? COUNTED[what][0] : what}`];
  });
  return some.length === 0 ? "nothing" : some.join(", ");
}

interface Deletion {
  appId: string;
  /** The app's id, which the owner types again. */
  confirm: string;
  /** True if an owner in the dashboard confirmed that production is deleted too. */
  force: boolean;
  /** The counts, for the audit log. */
  contents: AppContents;
  by: string;
  nowMs: number;
}

/**
 * Hides the app: its receivers are unknown, its keys are invalid, and its schedules, captures and waiting events stop. A call in progress ends.
 * Throws `not_found`, `invalid_input`, or `in_use` where production holds events.
 */
export async function deleteApp(tx: Writer, deletion: Deletion): Promise<void> {
  const { by, nowMs, contents } = deletion;
  const { app, environments } = await requireApp(tx, deletion.appId);
  if (environments.some(({ name }) => name === "local"))
    throw new Refusal(
      "forbidden",
      "Local development is this one app: to be rid of it, stop relay dev and remove its data directory.",
    );
  if (deletion.confirm !== app.id)
    throw new Refusal(
      "invalid_input",
      `confirm is not the app's id: write ${app.id} to confirm that this app and all its data will be deleted.`,
    );
  const objection = deletion.force ? null : await findObjection(tx, app, environments);
  if (objection !== null) throw new Refusal("in_use", objection);
  await tx.run("UPDATE app SET deleted_at = $nowMs, deleted_by = $by WHERE id = $id", {
    nowMs,
    by,
    id: app.id,
  });
  await deleteMembershipsOfApp(tx, app.id);
  for (const { id } of environments) {
    await tx.run("UPDATE environment SET deleted_at = $nowMs WHERE id = $id", { nowMs, id });
    await tx.run("DELETE FROM bulk_replay WHERE environment_id = ?1 AND state = 'running'", id);
    tx.notify("environment", id);
    tx.notify("problem", id);
  }
  await writeAudit(tx, {
    environmentId: SERVER_SCOPE,
    nowMs,
    by,
    action: "app.deleted",
    target: `app:${app.id}`,
    before: { name: app.name, environments: contents.environments.map(summarize) },
  });
}

function summarize({ name, held }: AppContents["environments"][number]) {
  return {
    name,
    ...Object.fromEntries(held.map(({ what, count, isMore }) => [what, isMore ? `${count}+` : count])),
  };
}

async function requireApp(tx: Reader, appId: string): Promise<{ app: App; environments: Environment[] }> {
  const app = await findApp(tx, appId);
  if (app === null)
    throw new Refusal(
      "not_found",
      "There is no such app on this server: relay apps list shows the ones that exist.",
    );
  return { app, environments: await listEnvironments(tx, appId) };
}

async function findObjection(
  tx: Reader,
  { id }: App,
  environments: readonly Environment[],
): Promise<string | null> {
  const production = environments.find(({ name }) => name === "production");
  if (production === undefined) return null;
  const holds = await tx.get(`SELECT 1 FROM ${EVENTS} LIMIT 1`, { id: production.id });
  if (holds === null) return null;
  return `The production environment of ${id} has events, so nothing was deleted. An owner can delete the app in the dashboard, under Settings of ${id}, and confirm there that production is deleted too.`;
}

/** The rows of one step: of small tables, and of tables with long texts. */
const SMALL = 250;
const LARGE = 50;

/** Tables with an index or key that begins with the environment, in the order of deletion. `key` selects the rows of a step. */
const TABLES: readonly (readonly [table: string, key: string, most: number])[] = [
  ["bulk_replay", "id", SMALL],
  ["api_key", "id", SMALL],
  ["alert_channel", "id", SMALL],
  ["alert", "id", SMALL],
  ["problem", "id", SMALL],
  ["email", "seq", LARGE],
  ["record", "seq", LARGE],
  // A file can have megabytes.
  ["file", "id", 1],
  ["purchase", "id", SMALL],
  ["subscription", "id", SMALL],
  ["plan_cancellation", "seq", SMALL],
  ["mail_stop", "person_id", SMALL],
  ["person_code", "id", SMALL],
  ["collection", "name", SMALL],
  ["product", "name", SMALL],
  ["plan", "name", SMALL],
  ["access_slug", "slug", SMALL],
  ["sender_domain", "environment_id", SMALL],
  ["synced", "target", LARGE],
  ["sync_minute", "environment_id", SMALL],
  ["apply_response", "request_key", LARGE],
  ["signature_memory", "signed_text_hash", SMALL],
  ["retired_secret", "relay_name", SMALL],
  ["recent_request", "slot", SMALL],
  ["rejected_count", "at", SMALL],
  ["passed_count", "at", SMALL],
  ["unknown_request", "name", SMALL],
  // A capture can have three megabytes.
  ["request_capture", "id", 1],
  ["invite_count", "utc_day", SMALL],
  ["stored_bytes", "owner_id", SMALL],
  ["audit", "seq", LARGE],
];

/** Short tables without such an index, deleted last. */
const SHORT_TABLES = ["record_change", "approval", "login_request"];

/** Takes one step of emptying an environment. Returns whether there may be more. A running event stays until it ends. */
async function emptyEnvironment(tx: Writer, id: number): Promise<boolean> {
  // Deleting a relay also deletes its record watches, so no new event can come.
  if (await dropRows(tx, "relay", "id", LARGE, id)) return true;
  if (await emptyOfEvents(tx, id)) return true;
  for (const [table, key, most] of TABLES) if (await dropRows(tx, table, key, most, id)) return true;
  if (await dropPeople(tx, id)) return true;
  if (await dropErasures(tx, id)) return true;
  for (const table of SHORT_TABLES)
    if (await dropRows(tx, table, table === "record_change" ? "seq" : "id", LARGE, id)) return true;
  return false;
}

async function dropRows(tx: Writer, table: string, key: string, most: number, id: number): Promise<boolean> {
  const sql = `DELETE FROM ${table} WHERE environment_id = $id AND ${key} IN
    (SELECT ${key} FROM ${table} WHERE environment_id = $id LIMIT ${most})`;
  return (await tx.run(sql, { id })) > 0;
}

/** The names whose events are looked for at once. */
const NAMES_AT_ONCE = 32;
/** A step reads one name's part of the index. PostgreSQL would otherwise walk through all rows that earlier steps deleted. */
const OF_NAME =
  "FROM event INDEXED BY event_of_relay WHERE name_key = $key AND state <> 'running' ORDER BY seq";

async function emptyOfEvents(tx: Writer, id: number): Promise<boolean> {
  const names = await tx.all<{ key: number }>("SELECT key FROM relay_name WHERE environment_id = ?1", id);
  for (let at = 0; at < names.length; at += NAMES_AT_ONCE) {
    const some = names.slice(at, at + NAMES_AT_ONCE);
    const held = await Promise.all(some.map((name) => tx.get(`SELECT seq ${OF_NAME} LIMIT 1`, name)));
    const name = some.find((_, index) => held[index] !== null);
    if (name === undefined) continue;
    await emptyOfName(tx, name);
    return true;
  }
  return false;
}

async function emptyOfName(tx: Writer, name: { key: number }): Promise<void> {
  const sql = `SELECT seq, dedupe_hash AS dedupeHash,
      octet_length(payload) + coalesce((SELECT sum(octet_length(results)) FROM run WHERE event_seq = event.seq), 0) AS bytes
    ${OF_NAME} LIMIT ${BATCH_EVENTS}`;
  const next = await tx.all<{ seq: number; dedupeHash: Uint8Array | null; bytes: number }>(sql, name);
  let bytes = 0;
  const reached = next.filter((event, index) => {
    bytes += event.bytes;
    return index === 0 || bytes <= BATCH_BYTES;
  });
  await dropEvents(tx, reached);
}

/** Deletes people with their sessions and tokens. Credits, grants and revocations are indexed only by person. */
async function dropPeople(tx: Writer, id: number): Promise<boolean> {
  const people = await tx.all<{ id: string }>(
    `SELECT id FROM person WHERE environment_id = ?1 LIMIT ${LARGE}`,
    id,
  );
  let left = SMALL;
  for (const { id: personId } of people) {
    for (const [table, key] of [
      ["credit", "seq"],
      ["access_grant", "id"],
      ["access_revocation", "entitlement, arrival"],
    ]) {
      const some = `(${key}) IN (SELECT ${key} FROM ${table} WHERE person_id = ?1 LIMIT ?2)`;
      const sql = `DELETE FROM ${table} WHERE person_id = ?1 AND ${some}`;
      left -= await tx.run(sql, personId, left);
      if (left <= 0) return true;
    }
    await tx.run("DELETE FROM person WHERE id = ?1", personId);
  }
  return people.length > 0;
}

async function dropErasures(tx: Writer, id: number): Promise<boolean> {
  const erasure = await tx.get<{ seq: number }>(
    "SELECT seq FROM erasure WHERE environment_id = ?1 LIMIT 1",
    id,
  );
  if (erasure === null) return false;
  await tx.run("DELETE FROM erasure_file WHERE erasure_seq = ?1", erasure.seq);
  await tx.run("DELETE FROM erasure WHERE seq = ?1", erasure.seq);
  return true;
}

/** Lists the deleted apps that are not empty yet, oldest first. */
export function listRemovals(tx: Reader): Promise<{ id: string; deletedAt: number }[]> {
  return tx.all(
    "SELECT id, deleted_at AS deletedAt FROM app WHERE deleted_at IS NOT NULL AND emptied_at IS NULL ORDER BY deleted_at",
  );
}

/** Takes one step of emptying the app. Returns whether there may be more. */
export async function emptyApp(tx: Writer, appId: string): Promise<boolean> {
  const environments = await tx.all<{ id: number }>("SELECT id FROM environment WHERE app_id = ?1", appId);
  for (const { id } of environments) if (await emptyEnvironment(tx, id)) return true;
  return false;
}

/** Ends the removal and frees the app's id. Returns false where rows are left. */
export async function endRemoval(tx: Writer, appId: string, nowMs: number): Promise<boolean> {
  const environments = await tx.all<{ id: number }>("SELECT id FROM environment WHERE app_id = ?1", appId);
  for (const { id } of environments) {
    if ((await tx.get(`SELECT 1 FROM ${EVENTS} LIMIT 1`, { id })) !== null) return false;
    if (await emptyEnvironment(tx, id)) return false;
  }
  const left = `deleted:${environments.map(({ id }) => id).join(":")}`;
  await tx.run(
    `INSERT INTO app (id, name, created_at, deleted_at, emptied_at) SELECT $left, '', created_at, deleted_at, $nowMs FROM app WHERE id = $appId`,
    { left, nowMs, appId },
  );
  for (const { id } of environments) {
    await tx.run(
      "DELETE FROM relay_key WHERE name_key IN (SELECT key FROM relay_name WHERE environment_id = ?1)",
      id,
    );
    await tx.run("DELETE FROM relay_name WHERE environment_id = ?1", id);
    await tx.run(
      `UPDATE environment SET app_id = $left, settings = '{}', processor_secret = NULL, processor_secret_fingerprint = NULL,
         processor_secret_digest = NULL, processor_secret_set_at = NULL, held_at = NULL WHERE id = $id`,
      { left, id },
    );
  }
  await tx.run("DELETE FROM app WHERE id = ?1", appId);
  await writeAudit(tx, {
    environmentId: SERVER_SCOPE,
    nowMs,
    by: "the service itself",
    action: "app.emptied",
    target: `app:${appId}`,
  });
  return true;
}
