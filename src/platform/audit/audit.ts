/**
 * The audit log: one row for each management change and each run, written in the same transaction as the change and never changed afterwards.
 * Callers must replace secrets by their fingerprints.
 */
import { type Static, Type } from "typebox";
import type { Json } from "../../base/json.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { eventJson, exactText, show, orNull as shownOrNull, time } from "../../base/schema.ts";
import { showText } from "../../base/shape.ts";
import { findNearestName } from "../../base/text.ts";
import { equals, walkPage } from "../../store/index-scan.ts";
import type { Reader, Writer } from "../../store/port.ts";
import {
  defineTable,
  given,
  integer,
  json,
  type NewRowOf,
  orNull,
  type RowOf,
  text,
} from "../../store/table.ts";
import { AUDIT_ACTIONS, type AuditAction } from "./audit-action.ts";

/** The longest actor or target: a kind and an address or ref. */
const MAX_WHO_CHARS = 300;

/** The environment id of rows about the server itself: its owners and apps. */
export const SERVER_SCOPE = 0;

const AUDIT = defineTable({
  name: "audit",
  key: ["seq"],
  columns: {
    seq: given(),
    environmentId: integer(),
    at: integer(),
    /** An actor in text form: `owner:<email>`, `key:<id>`, `relay:<name>`, `person:<id>`, `receipt`, `command line`. */
    actor: text(),
    /** The action, noun first: `relay.created`, `relay.secret_rotated`, `run`. */
    action: text(),
    /** The target of the action: `relay:<name>`, `key:<id>`, `product:<name>`. */
    target: text(),
    /** The event of a run; null on management changes. */
    eventId: orNull(text()),
    before: orNull(json<Json>()),
    after: orNull(json<Json>()),
  },
});

type AuditRow = RowOf<typeof AUDIT>;

/** The environment, actor (formatted) and time of a change. */
export interface Change {
  environmentId: number;
  by: string;
  nowMs: number;
}

/** The action and target of a change, with its state before and after. */
export interface AuditEntry extends Pick<AuditRow, "target"> {
  action: AuditAction;
  /** The event of a run; absent on management changes. */
  eventId?: string | null | undefined;
  before?: unknown;
  after?: unknown;
}

export const auditView = Type.Object({
  id: Type.String(),
  at: time,
  actor: Type.String(),
  action: Type.String(),
  target: Type.String(),
  /** The current name of a person (address) or key; null if it no longer exists. */
  actorName: shownOrNull(Type.String()),
  targetName: shownOrNull(Type.String()),
  eventId: shownOrNull(Type.String()),
  before: eventJson,
  after: eventJson,
});
export type AuditView = Static<typeof auditView>;

/** Filters other than `kind` read management changes only, so that they stay fast next to millions of runs. */
export const auditFilter = {
  target: exactText(MAX_WHO_CHARS, "such as relay:<name>, person:<id>"),
  actor: exactText(MAX_WHO_CHARS, "such as owner:ann@example.com, key:<id>, relay:<name>"),
  action: Type.Optional(Type.String({ description: "the audit action, such as relay.updated" })),
};

export type AuditFilter = { readonly [Name in keyof typeof auditFilter]?: string | undefined } & {
  kind?: "change" | "run" | undefined;
};

/** Writes one row. `before` and `after` are stored as JSON. */
export async function writeAudit(tx: Writer, entry: Change & AuditEntry): Promise<void> {
  await AUDIT.insert(tx, toRow(entry));
  publishChange(tx, entry);
}

/** Writes several rows in order. */
export async function writeAudits(tx: Writer, entries: readonly (Change & AuditEntry)[]): Promise<void> {
  await AUDIT.insertEach(tx, entries.map(toRow));
  for (const entry of entries) publishChange(tx, entry);
}

/** Publishes the change to live streams. Runs are published with their events instead. */
function publishChange(tx: Writer, { environmentId, eventId }: Change & AuditEntry): void {
  if (!eventId) tx.notify("audit", environmentId === SERVER_SCOPE ? undefined : environmentId);
}

function toRow(entry: Change & AuditEntry): NewRowOf<typeof AUDIT> {
  const { environmentId, by, nowMs, action, target, eventId = null } = entry;
  const [before, after] = [(entry.before ?? null) as Json, (entry.after ?? null) as Json];
  return { environmentId, actor: by, at: nowMs, action, target, eventId, before, after };
}

/** Throws `invalid_input` for an unknown action, which no row could match. */
function checkAction(action: string | undefined): void {
  if (action === undefined || Object.hasOwn(AUDIT_ACTIONS, action)) return;
  const near = findNearestName(action, Object.keys(AUDIT_ACTIONS));
  const way = near === null ? "/docs/audit lists the actions." : `did you mean ${near}?`;
  throw new Refusal(
    "invalid_input",
    `action is not valid: the audit log has no action ${showText(action)}: ${way}`,
  );
}

/** Lists one page of the audit, newest first. Cursors are row numbers. Throws `invalid_input` for an unknown action. */
export async function listAudit(
  tx: Reader,
  environmentId: number,
  filter: AuditFilter,
  request: PageRequest,
): Promise<Page<AuditView>> {
  const { kind, target, actor, action } = filter;
  checkAction(action);
  const changesOnly =
    kind === "change" || target !== undefined || actor !== undefined || action !== undefined;
  const index =
    target !== undefined ? "audit_by_target" : changesOnly ? "audit_changes" : "audit_by_environment";
  const walk = {
    index,
    key: "seq",
    led: [
      equals("environment_id", environmentId),
      equals("target", target),
      changesOnly ? { sql: "event_id IS NULL", values: [] } : undefined,
    ],
    fits: [
      kind === "run" ? { sql: "event_id IS NOT NULL", values: [] } : undefined,
      equals("actor", actor),
      equals("action", action),
    ],
    cost: "octet_length(before) + octet_length(after)",
    columns: NAMED_COLUMNS,
  } as const;
  return await walkPage<AuditRow, AuditView, Names>(tx, AUDIT, request, walk, viewAudit);
}

/** Lists one page of certain changes of one target since a moment, newest first. */
export async function listChangesOf<Item>(
  tx: Reader,
  environmentId: number,
  { target, actions, sinceMs }: { target: string; actions: readonly string[]; sinceMs: number },
  request: PageRequest,
  toItem: (row: AuditRow & Names & { id: string }) => Item,
): Promise<Page<Item>> {
  const walk = {
    index: "audit_by_target",
    key: "seq",
    led: [
      equals("environment_id", environmentId),
      equals("target", target),
      { sql: "event_id IS NULL", values: [] },
    ],
    fits: [
      { sql: `action IN (${actions.map(() => "?").join(", ")})`, values: actions },
      { sql: "at >= ?", values: [sinceMs] },
    ],
    cost: "octet_length(before) + octet_length(after)",
    columns: NAMED_COLUMNS,
  } as const;
  return await walkPage<AuditRow, Item, Names>(tx, AUDIT, request, walk, (row) =>
    toItem({ ...row, id: auditId(row.at, row.seq) }),
  );
}

type Names = Pick<AuditView, "actorName" | "targetName">;

/** Returns the SQL that finds the name behind an id such as `person:<id>`, with one index lookup per row. */
function nameSql(column: "actor" | "target"): string {
  const nameOf = (table: string, name: string, kind: string, more = ""): string =>
    `WHEN audit.${column} LIKE '${kind}:%' THEN (SELECT ${name} FROM ${table}
      WHERE ${table}.id = substr(audit.${column}, ${kind.length + 2})${more})`;
  const person = nameOf("person", "email", "person", " AND person.environment_id = audit.environment_id");
  // A key of development can change production after an approval.
  return `CASE ${person} ${nameOf("api_key", "name", "key")} END`;
}

/** The name of a row's actor: of a key its name, of a person the address. It is null for any other actor. */
export const ACTOR_NAME = nameSql("actor");
const NAMED_COLUMNS = `${AUDIT.columnsOf("audit")}, ${ACTOR_NAME} AS actorName, ${nameSql("target")} AS targetName`;

function viewAudit(row: AuditRow & Names): AuditView {
  return show(auditView, { ...row, id: auditId(row.at, row.seq) });
}

/** Builds an id from the row's time and number (`aud_` and a UUIDv7), so that no id needs to be stored. */
function auditId(at: number, seq: number): string {
  return `aud_${at.toString(16).padStart(12, "0")}70008000${seq.toString(16).padStart(12, "0")}`;
}

/** The most rows of each target that are read to find its newest change. */
const MAX_ROWS_EACH = 50;

/** A change of one of certain targets. The values are read from the row's before and after, and are null where they hold none. */
export interface TargetChange extends Pick<AuditRow, "at" | "actor" | "action" | "target"> {
  actorName: string | null;
  /** The version of a relay's definition before the change. */
  versionBefore: number | null;
  /** The mail settings after the change. */
  mail: string | null;
}

/**
 * Finds the newest of certain actions on each target, and returns those made in the period, newest first. A change of the settings counts if it
 * changed one of the sections: the mail settings or the processor's secret.
 */
export async function listNewestChanges(
  tx: Reader,
  environmentId: number,
  period: {
    targets: readonly string[];
    actions: readonly AuditAction[];
    sections: { mail: boolean; processor: boolean };
    fromMs: number;
    untilMs: number;
  },
): Promise<TargetChange[]> {
  const { targets, actions, sections, fromMs, untilMs } = period;
  return await tx.all<TargetChange>(NEWEST_CHANGES, {
    environmentId,
    targets: JSON.stringify(targets),
    actions: JSON.stringify(actions),
    mail: Number(sections.mail),
    processor: Number(sections.processor),
    fromMs,
    untilMs,
  });
}

const NEWEST_CHANGES = `SELECT audit.at AS at, audit.actor AS actor, audit.action AS action, audit.target AS target, ${ACTOR_NAME} AS actorName,
    audit.before ->> '$.version' AS versionBefore, audit.after ->> '$.mail' AS mail
  FROM (SELECT (SELECT max(seq) FROM (SELECT seq, action, CASE WHEN action = 'settings.changed' THEN $mail * instr(after, '"mail":') + $processor * instr(after, '"processorSecret":') ELSE 1 END AS told
        FROM audit INDEXED BY audit_by_target WHERE environment_id = $environmentId AND target = wanted.value AND event_id IS NULL ORDER BY seq DESC LIMIT ${MAX_ROWS_EACH}) AS newest
      WHERE told > 0 AND action IN (SELECT value FROM json_each($actions))) AS seq FROM json_each($targets) AS wanted) AS found
  CROSS JOIN audit ON audit.seq = found.seq WHERE audit.at BETWEEN $fromMs AND $untilMs ORDER BY audit.at DESC, audit.seq DESC`;
