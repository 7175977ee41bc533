/**
 * Erasing a person: everything personal goes, what the books need keeps a tombstone id. First, in one transaction, the person is nobody and
 * the address cannot come back with an event that arrived before; then the rows that are theirs go in steps, so that a person with a hundred
 * thousand of them holds nobody up. What others hold of the address is the sweep's (maintenance/erasure-sweep.ts). The one list of what an
 * erasure touches, which is why it reaches into tables of other rooms. The caller writes with origin `erasure`, so that no relay hears of it.
 */
import type { Sealer } from "../../platform/secret/seal.ts";
import type { Reader, SqlNames, Writer } from "../../store/port.ts";
import { bytes, defineTable, given, integer, orNull, type RowOf, text } from "../../store/table.ts";
import { findNamesake, requirePerson, toEmailKey } from "./person.ts";

const ERASURE = defineTable({
  name: "erasure",
  key: ["seq"],
  topic: "erasure",
  columns: {
    seq: given(),
    environmentId: integer(),
    personId: text(),
    /** `digestAddress` of it. */
    emailDigest: bytes(),
    /** Events up to this one arrived before. */
    eventSeq: integer(),
    /** `Sought`, sealed; null once nothing of it is left. */
    sought: orNull(bytes()),
    /** Or when the newest event arrived, where that is later: the clock was set back since, and what is dated until then is of before. */
    erasedAt: integer(),
  },
});

export interface Erasure {
  environmentId: number;
  personId: string;
  /** In words: `key:<id>`, `owner:<email>`. */
  by: string;
  nowMs: number;
}

/** What an erasure looks for, wherever it may stand. */
export interface ErasureTarget {
  personId: string;
  email: string;
  /** Who has the same address in the other spelling of its domain and stays: it is written over in rows of the erased person alone. */
  namesake?: string | null;
  tokens: string[];
  /** Who asked for it, in words. */
  by: string;
}

/** An erasure that is not over. */
export type OpenErasure = Omit<RowOf<typeof ERASURE>, "sought"> & { sought: ErasureTarget };

/** How many of each a step touched. */
export interface ErasureCount {
  records: number;
  grants: number;
  subscriptions: number;
  tokens: number;
  mails: number;
}

/** Rows a step deletes or blanks, and bytes of records it reads: a few milliseconds. */
const STEP_ROWS = 200;
const STEP_BYTES = 256 * 1024;
const MAX_SOUGHT_TOKENS = 200;

/**
 * The person is nobody from here on, and what is left to do is written down. Where somebody else here has the address, in the other spelling
 * of its domain, what came under it is theirs: no event that names it ends for this. Refuses with `not_found`. Answers the status they had, and
 * the id of that other person.
 */
export async function erasePerson(
  tx: Writer,
  { environmentId, personId, by, nowMs }: Erasure,
  sealer: Pick<Sealer, "seal" | "digest">,
): Promise<{ status: string; namesake: string | null }> {
  const person = await requirePerson(tx, environmentId, personId);
  const { email, status } = person;
  const namesake = (await findNamesake(tx, person))?.id ?? null;
  const tokens = await tx.all<{ token: string }>(
    `SELECT token FROM person_token WHERE person_id = $personId AND environment_id = $environmentId LIMIT $most`,
    { environmentId, personId, most: MAX_SOUGHT_TOKENS },
  );
  const sought: ErasureTarget = { personId, email, namesake, tokens: tokens.map(({ token }) => token), by };
  const last = await tx.get<{ seq: number | null; at: number | null }>(
    `SELECT (SELECT seq FROM event ORDER BY seq DESC LIMIT 1) AS seq,
       (SELECT created_at FROM event ORDER BY seq DESC LIMIT 1) AS at`,
  );
  await ERASURE.insert(tx, {
    environmentId,
    personId,
    // An id is no address: nothing ends for it.
    emailDigest: digestAddress(sealer, namesake === null ? email : personId),
    eventSeq: last?.seq ?? 0,
    sought: sealer.seal(JSON.stringify(sought), contextOf(environmentId)),
    erasedAt: Math.max(nowMs, last?.at ?? 0),
  });
  await tx.run(
    `UPDATE person SET email = NULL, email_key = NULL, status = 'erased', attributes = '{}', updated_at = $nowMs
     WHERE id = $personId AND environment_id = $environmentId`,
    { environmentId, personId, nowMs },
  );
  await tx.run("DELETE FROM mail_stop WHERE person_id = ?1", personId);
  return { status, namesake };
}

/** Whether an event that arrived as `eventSeq` names an address that was erased since. */
export async function isErasedAddress(
  tx: Reader,
  environmentId: number,
  digest: Uint8Array,
  eventSeq: number,
): Promise<boolean> {
  const sql =
    "SELECT 1 FROM erasure WHERE environment_id = ?1 AND email_digest = ?2 AND event_seq >= ?3 LIMIT 1";
  return (await tx.get(sql, environmentId, digest, eventSeq)) !== null;
}

/** Whether this id is the tombstone of someone who was erased. */
export async function isErasedPerson(tx: Reader, environmentId: number, personId: string): Promise<boolean> {
  const sql = "SELECT 1 FROM person WHERE id = ?1 AND environment_id = ?2 AND status = 'erased'";
  return (await tx.get(sql, personId, environmentId)) !== null;
}

/** Whether the token is still filed for someone who was erased; it goes with the rows that were theirs. */
export async function isErasedToken(tx: Reader, environmentId: number, token: string): Promise<boolean> {
  const sql = `SELECT 1 FROM person_token JOIN person ON person.id = person_id
    WHERE person_token.environment_id = ?1 AND token = ?2 AND status = 'erased'`;
  return (await tx.get(sql, environmentId, token)) !== null;
}

/** What an address is compared by once it is erased: a keyed hash, so that a copy of the database does not tell it. */
export function digestAddress(sealer: Pick<Sealer, "digest">, email: string): Uint8Array {
  return sealer.digest(`erased address: ${toEmailKey(email.trim())}`);
}

/** The erasures that are not over, oldest first, at most `limit`. */
export async function listOpenErasures(tx: Reader, sealer: Sealer, limit: number): Promise<OpenErasure[]> {
  const rows = await ERASURE.all(tx, "WHERE sought IS NOT NULL ORDER BY seq LIMIT $limit", { limit });
  return rows.flatMap(({ sought, ...row }) => {
    if (sought === null) return [];
    return [
      { ...row, sought: JSON.parse(sealer.unseal(sought, contextOf(row.environmentId))) as ErasureTarget },
    ];
  });
}

/** Nothing of it is left: what was looked for is forgotten too, and only the keyed hash stays. */
export async function endErasure(tx: Writer, seq: number): Promise<void> {
  await tx.run("DELETE FROM erasure_file WHERE erasure_seq = ?1", seq);
  await tx.run("UPDATE erasure SET sought = NULL WHERE seq = ?1", seq);
}

/** A hash lives as long as events that arrived before it do; the oldest come first. */
export async function deleteSpentErasures(tx: Writer): Promise<void> {
  await tx.run(
    `DELETE FROM erasure WHERE seq IN (SELECT seq FROM erasure WHERE seq > 0 ORDER BY seq LIMIT ?1)
       AND sought IS NULL AND event_seq < coalesce((SELECT min(seq) FROM event), event_seq + 1)`,
    STEP_ROWS,
  );
}

/** Where the steps stand: the last record addressed to them that was looked at. */
export interface EraseCursor {
  recordSeq: number;
}

/**
 * One step of erasing the rows that are theirs: the records they own and those the app addressed to them (a record another person wrote to
 * them stays that person's), tokens, live grants, subscriptions, the text of their mails. Answers what it touched and where to go on, or null
 * at the end. Ledger, grants and receipts stay under the id.
 */
export async function eraseRows(
  tx: Writer,
  erasure: Erasure,
  { recordSeq }: EraseCursor,
): Promise<{ touched: Partial<ErasureCount>; cursor: EraseCursor } | null> {
  const owned = await deleteRecords(tx, erasure, "owner_id", 0);
  if (owned !== null) return { touched: { records: owned.deleted }, cursor: { recordSeq } };
  const addressed = await deleteRecords(tx, erasure, "recipient_id", recordSeq);
  if (addressed !== null) {
    return { touched: { records: addressed.deleted }, cursor: { recordSeq: addressed.seq } };
  }
  for (const [what, sql] of ROWS_OF_PERSON) {
    const { environmentId, personId, by, nowMs } = erasure;
    const count = await tx.run(sql, { environmentId, personId, by, nowMs, most: STEP_ROWS });
    if (count > 0) return { touched: what === null ? {} : { [what]: count }, cursor: { recordSeq } };
  }
  return null;
}

const OF_PERSON = "WHERE person_id = $personId AND environment_id = $environmentId";

/** Beside the records, in the order they go. null: nobody counts them. */
const ROWS_OF_PERSON: readonly (readonly [what: keyof ErasureCount | null, sql: string])[] = [
  [
    "tokens",
    `DELETE FROM person_token ${OF_PERSON} AND token IN (SELECT token FROM person_token ${OF_PERSON} LIMIT $most)`,
  ],
  [
    "grants",
    `UPDATE access_grant SET revoked_at = $nowMs, revoked_by = $by WHERE id IN
       (SELECT id FROM access_grant ${OF_PERSON} AND revoked_at IS NULL LIMIT $most)`,
  ],
  [
    "subscriptions",
    `UPDATE subscription SET status = 'ended', ended_at = $nowMs WHERE id IN
       (SELECT id FROM subscription ${OF_PERSON} AND status = 'active' LIMIT $most)`,
  ],
  [
    null,
    `DELETE FROM access_revocation ${OF_PERSON} AND (entitlement, arrival) IN
       (SELECT entitlement, arrival FROM access_revocation ${OF_PERSON} LIMIT $most)`,
  ],
  [
    null,
    `DELETE FROM plan_cancellation ${OF_PERSON} AND seq IN (SELECT seq FROM plan_cancellation ${OF_PERSON} LIMIT $most)`,
  ],
  [
    "mails",
    `UPDATE email SET recipient = 'erased', subject = '', text = '', message = NULL, person_id = NULL WHERE seq IN
       (SELECT seq FROM email ${OF_PERSON} LIMIT $most)`,
  ],
];

const FILE_ID = /"(fil_[0-9a-f]{32})"/g;

interface RecordSize {
  seq: number;
  bytes: number;
}

/** Looks at the next of their records, deletes those that are theirs and notes the files they held; null: there are no more. */
async function deleteRecords(
  tx: Writer,
  { environmentId, personId }: Erasure,
  column: "owner_id" | "recipient_id",
  afterSeq: number,
): Promise<{ deleted: number; seq: number } | null> {
  const found = await tx.all<RecordSize>(
    `SELECT seq, octet_length(data) AS bytes FROM record WHERE ${column} = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3`,
    personId,
    afterSeq,
    STEP_ROWS,
  );
  if (found.length === 0) return null;
  let bytesLeft = STEP_BYTES;
  let seq = afterSeq;
  for (const row of found) {
    if (seq > afterSeq && row.bytes > bytesLeft) break;
    bytesLeft -= row.bytes;
    seq = row.seq;
  }
  const theirs = `WHERE ${column} = $personId AND seq > $afterSeq AND seq <= $seq AND environment_id = $environmentId
    AND (owner_id IS NULL OR owner_id = $personId)`;
  const span = { environmentId, personId, afterSeq, seq };
  await recordFiles(tx, { environmentId, personId }, theirs, span);
  return { deleted: await tx.run(`DELETE FROM record ${theirs}`, span), seq };
}

async function recordFiles(
  tx: Writer,
  person: Pick<Erasure, "environmentId" | "personId">,
  theirs: string,
  span: SqlNames,
): Promise<void> {
  const rows = await tx.all<{ data: string }>(
    `SELECT data FROM record ${theirs} AND instr(data, 'fil_') > 0`,
    span,
  );
  const ids = new Set(rows.flatMap(({ data }) => [...data.matchAll(FILE_ID)].map(([, id = ""]) => id)));
  await tx.postEach(
    `INSERT INTO erasure_file (erasure_seq, file_id)
     SELECT seq, $fileId FROM erasure WHERE environment_id = $environmentId AND person_id = $personId AND sought IS NOT NULL
     ON CONFLICT DO NOTHING`,
    [...ids].map((fileId) => ({ ...person, fileId })),
  );
}

function contextOf(environmentId: number): string {
  return `erasure:${environmentId}`;
}
