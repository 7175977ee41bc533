/**
 * The audit: one row a management change, one row a run, written in the transaction of what it tells of and never changed. It decides
 * nothing; what is a secret must come here as a fingerprint.
 */
import { type Json, parseJson, writeJson } from "../ground/json.ts";
import { type Page, type PageRequest, readSeq } from "../ground/page.ts";
import type { Reader, Writer } from "../store/port.ts";
import { equals, walkPage } from "../store/walk.ts";

/** Stands for an environment in rows about the server itself: its owners and apps. */
export const WHOLE_SERVER = 0;

export interface AuditEntry {
  environmentId: number;
  atMs: number;
  /** In words: `owner:<email>`, `key:<id>`, `relay:<name>`, `person:<id>`, `receipt`, `command line`. */
  actor: string;
  /** What was done, noun first: `relay.created`, `relay.secret_rotated`, `run`. */
  action: string;
  /** What it was done to: `relay:<name>`, `key:<id>`, `product:<name>`. */
  target: string;
  /** The event of a run; absent on management changes. */
  eventId?: string | undefined;
  before?: unknown;
  after?: unknown;
}

export interface AuditRow {
  seq: number;
  at: number;
  actor: string;
  action: string;
  target: string;
  eventId: string | null;
  before: Json;
  after: Json;
}

/** `target`, `actor` and `action` look at management changes alone, so that they stay quick beside millions of runs. */
export interface AuditFilter {
  kind?: "change" | "run" | undefined;
  target?: string | undefined;
  actor?: string | undefined;
  action?: string | undefined;
}

interface StoredRow extends Omit<AuditRow, "before" | "after"> {
  before: string | null;
  after: string | null;
}

/** Writes one row; `before` and `after` are kept as JSON. */
export async function writeAudit(tx: Writer, entry: AuditEntry): Promise<void> {
  const sql = `INSERT INTO audit (environment_id, at, actor, action, target, event_id, before, after)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`;
  const { environmentId, atMs, actor, action, target, eventId, before, after } = entry;
  await tx.run(
    sql,
    environmentId,
    atMs,
    actor,
    action,
    target,
    eventId ?? null,
    toText(before),
    toText(after),
  );
}

/** A page of the environment's audit, newest first; cursors are row numbers. */
export async function listAudit(
  tx: Reader,
  environmentId: number,
  filter: AuditFilter,
  request: PageRequest,
): Promise<Page<AuditRow>> {
  const { kind, target, actor, action } = filter;
  const changesOnly =
    kind === "change" || target !== undefined || actor !== undefined || action !== undefined;
  const index =
    target !== undefined ? "audit_by_target" : changesOnly ? "audit_changes" : "audit_by_environment";
  return await walkPage<StoredRow, AuditRow>(
    tx,
    {
      from: `audit INDEXED BY ${index}`,
      columns: "seq, at, actor, action, target, event_id AS eventId, before, after",
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
      after: readSeq(request.after),
      limit: request.limit,
    },
    toRow,
  );
}

function toText(value: unknown): string | null {
  return value === undefined || value === null ? null : writeJson(value);
}

function toRow(row: StoredRow): AuditRow {
  return { ...row, before: fromText(row.before), after: fromText(row.after) };
}

function fromText(text: string | null): Json {
  return text === null ? null : parseJson(text);
}

/** The id of an audit row, `aud_` and a UUIDv7 made of its time and number, so that it need not be stored. */
export function auditId({ at, seq }: Pick<AuditRow, "at" | "seq">): string {
  return `aud_${at.toString(16).padStart(12, "0")}70008000${seq.toString(16).padStart(12, "0")}`;
}
