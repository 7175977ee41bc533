/** Lists of the timeline that hold mails, records, and changes of the person. */
import type { Reader } from "../../store/port.ts";
import type { Source } from "./merge.ts";
import { formatActor, formatChange, formatTime, lineOf } from "./sentence.ts";
import { OF_PERSON, type TimelineDraft, type TimelineScope, walkSource } from "./source.ts";

interface EmailRow {
  seq: number;
  id: string;
  kind: string;
  subject: string;
  state: "intended" | "sent" | "failed" | "mailbox" | "unknown";
  message: string | null;
  relayName: string | null;
  eventId: string | null;
  createdAt: number;
}
const MAIL_STATES = {
  intended: ["waiting", "is being sent"],
  sent: ["done", "sent"],
  mailbox: ["done", "kept here, as local development does"],
  failed: ["failed", "not sent"],
  unknown: ["failed", "not known whether it was sent"],
} as const;

/** Hides the sign-in code that the mail's subject contains. */
function detailOf({ kind, subject, message }: EmailRow): string | null {
  const parts = [kind === "signin" ? null : `“${lineOf(subject) ?? ""}”`, message];
  return lineOf(parts.filter((part) => part !== null).join(" · "));
}

export function mailSource(tx: Reader, at: TimelineScope): Source<TimelineDraft> {
  return walkSource<EmailRow>(tx, at, {
    name: "mail",
    keys: "number",
    sql: `SELECT seq, id, kind, subject, state, message, relay_name AS relayName, event_id AS eventId, created_at AS createdAt
      FROM email INDEXED BY email_by_person WHERE ${OF_PERSON} AND seq <= $from ORDER BY seq DESC LIMIT $most`,
    toEntry(row) {
      const [look, words] = MAIL_STATES[row.state];
      return {
        key: row.seq,
        at: row.createdAt,
        item: {
          id: `mail:${row.id}`,
          kind: "mail",
          atMs: row.createdAt,
          sentence: `Mail${row.kind === "signin" ? " with a code to sign in" : ""}: ${words}`,
          detail: detailOf(row),
          look,
          thing: { kind: "email", id: row.id, collection: null },
          relay: row.relayName,
          eventId: row.eventId,
        },
      };
    },
  });
}

interface RecordRow {
  seq: number;
  id: string;
  collection: string;
  writtenBy: string;
  eventId: string | null;
  createdAt: number;
  updatedAt: number;
  isOwn: number;
}

/** `owner` lists records that the person owns; `recipient` lists records of others that are for the person. */
export function recordSource(
  tx: Reader,
  at: TimelineScope,
  as: "owner" | "recipient",
): Source<TimelineDraft> {
  return walkSource<RecordRow>(tx, at, {
    name: as,
    keys: "number",
    sql: `SELECT seq, id, collection, written_by AS writtenBy, event_id AS eventId, created_at AS createdAt, updated_at AS updatedAt,
        owner_id IS $personId AS isOwn
      FROM record INDEXED BY record_by_${as} WHERE ${as}_id = $personId AND environment_id = $environmentId AND seq <= $from
      ORDER BY seq DESC LIMIT $most`,
    toEntry(row) {
      const changed = row.updatedAt === row.createdAt ? "" : `, changed ${formatTime(row.updatedAt)}`;
      const item: TimelineDraft = {
        id: `record:${row.id}`,
        kind: "record",
        atMs: row.createdAt,
        sentence: `A record ${as === "owner" ? "of theirs" : "for them"} in ${row.collection}, written ${formatActor(row.writtenBy)}${changed}`,
        detail: null,
        look: "done",
        thing: { kind: "record", id: row.id, collection: row.collection },
        relay: row.writtenBy.startsWith("relay:") ? row.writtenBy.slice("relay:".length) : null,
        eventId: row.eventId,
      };
      return { key: row.seq, at: row.createdAt, item: as === "recipient" && row.isOwn === 1 ? null : item };
    },
  });
}

interface ChangeRow {
  seq: number;
  at: number;
  actor: string;
  action: string;
  before: string | null;
  after: string | null;
}
/** Actions that other lists show. */
const SHOWN_ELSEWHERE: ReadonlySet<string> = new Set(["credits.changed", "person.invited"]);

/** Lists the changes of the person from the audit log. */
export function changeSource(tx: Reader, at: TimelineScope): Source<TimelineDraft> {
  const { personId } = at;
  return walkSource<ChangeRow>(tx, at, {
    name: "change",
    keys: "number",
    sql: `SELECT seq, at, actor, action, json_extract(before, '$.status') AS before, json_extract(after, '$.status') AS after
      FROM audit INDEXED BY audit_by_target
      WHERE environment_id = $environmentId AND target = 'person:' || $personId AND event_id IS NULL AND seq <= $from
      ORDER BY seq DESC LIMIT $most`,
    toEntry({ seq, at, actor, action, before, after }) {
      const item: TimelineDraft = {
        id: `change:${seq}`,
        kind: "change",
        atMs: at,
        sentence: `${formatChange(action, before, after)}, ${formatActor(actor)}`,
        detail: null,
        look: "none",
        thing: { kind: "person", id: personId, collection: null },
        relay: null,
        eventId: null,
      };
      return { key: seq, at, item: SHOWN_ELSEWHERE.has(action) ? null : item };
    },
  });
}
