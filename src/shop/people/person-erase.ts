/**
 * Erases a person: personal data is removed, and books keep a tombstone id. First, one transaction clears the person and blocks the address
 * for events that arrived before. Then steps remove the person's rows, so that a person with a hundred thousand rows blocks no other work.
 * The person's own rows are listed only here, so this file reaches into tables
 * of other modules. Texts elsewhere that contain the address are listed in maintenance/erasure-table.ts. The caller writes with origin `erasure`, so that no relay is triggered.
 */
import type { Sealer } from "../../platform/secret/seal.ts";
import type { Reader, SqlNames, Writer } from "../../store/port.ts";
import { bytes, defineTable, given, integer, orNull, type RowOf, text } from "../../store/table.ts";
import { findNewestArrival } from "./access-order.ts";
import { deleteFormerAddresses, findFormerHolder, listFormerAddresses } from "./former-address.ts";
import { findNamesake, findPersonByEmail, type PersonRow, requirePerson, toEmailKey } from "./person.ts";

const ERASURE = defineTable({
  name: "erasure",
  key: ["seq"],
  topic: "erasure",
  columns: {
    seq: given(),
    environmentId: integer(),
    personId: text(),
    /** `digestAddress` of the erased address. */
    emailDigest: bytes(),
    /** The newest event that arrived before the erasure. */
    eventSeq: integer(),
    /** `ErasureTarget`, sealed; null once the erasure is complete. */
    target: orNull(bytes()),
    /** The time of the erasure, or the arrival of the newest event if that is later: then the clock was set back. */
    erasedAt: integer(),
  },
});

export interface Erasure {
  environmentId: number;
  personId: string;
  /** The formatted actor: `key:<id>`, `owner:<email>`. */
  by: string;
  nowMs: number;
}

/** The values that an erasure searches for in stored data. */
export interface ErasureTarget {
  personId: string;
  email: string;
  /**
   * Another person who has the address, perhaps with its domain spelled differently, or who had it before. The address is then redacted only in rows
   * of the erased person.
   */
  namesake?: string | null;
  /**
   * An event without a person that names the address means the erased person if it arrived at this time or later. null: it means the namesake.
   * Erasures of earlier versions have none.
   */
  namedSince?: number | null;
  /**
   * The time from which the erased person had the address, and the time at which they gave it up. An event of that time without a person means them,
   * although the address is the namesake's now. null: only `namedSince` decides.
   */
  hadBetween?: readonly [from: number, until: number] | null;
  tokens: string[];
  /** Erasures of earlier versions have none. */
  customers?: { space: string; id: string }[];
  /** The formatted actor who requested it. */
  by: string;
}

/** An erasure in progress. */
export type OpenErasure = Omit<RowOf<typeof ERASURE>, "target"> & { target: ErasureTarget };

/** The number of rows of each kind that a step changed. */
export interface ErasureCount {
  records: number;
  grants: number;
  subscriptions: number;
  tokens: number;
  customers: number;
  mails: number;
}

/** Rows that a step changes, and bytes of records it reads: a few milliseconds of work. */
const STEP_ROWS = 200;
const STEP_BYTES = 256 * 1024;
const MAX_SOUGHT_TOKENS = 200;
const MAX_SOUGHT_CUSTOMERS = 200;

/**
 * Starts the erasure: clears the person and records what is left to do. If another person has the address, events that name it belong to them and
 * stay allowed. Returns the person's former status and the id of another person who has or had the address. Throws `not_found`.
 */
export async function erasePerson(
  tx: Writer,
  { environmentId, personId, by, nowMs }: Erasure,
  sealer: Pick<Sealer, "seal" | "digest">,
): Promise<{ status: string; namesake: string | null }> {
  const person = await requirePerson(tx, environmentId, personId);
  const tokens = await tx.all<{ token: string }>(
    `SELECT token FROM person_token WHERE person_id = $personId AND environment_id = $environmentId LIMIT $most`,
    { environmentId, personId, most: MAX_SOUGHT_TOKENS },
  );
  const customers = await tx.all<{ space: string; id: string }>(
    `SELECT space, customer_id AS id FROM person_customer WHERE person_id = $personId AND environment_id = $environmentId LIMIT $most`,
    { environmentId, personId, most: MAX_SOUGHT_CUSTOMERS },
  );
  const addresses = await listAddresses(tx, person);
  const eventSeq = await findNewestArrival(tx);
  const last = await tx.get<{ at: number }>("SELECT created_at AS at FROM event ORDER BY seq DESC LIMIT 1");
  for (const address of addresses) {
    const contacts = { tokens: tokens.map(({ token }) => token), customers };
    const target: ErasureTarget = { personId, ...address, ...contacts, by };
    await ERASURE.insert(tx, {
      environmentId,
      personId,
      // A digest of the id matches no address, so no event is blocked.
      emailDigest: digestAddress(sealer, address.namedSince === null ? personId : address.email),
      eventSeq,
      target: sealer.seal(JSON.stringify(target), contextOf(environmentId)),
      erasedAt: Math.max(nowMs, last?.at ?? 0),
    });
  }
  await deleteFormerAddresses(tx, personId);
  await tx.run(
    `UPDATE person SET email = NULL, email_key = NULL, status = 'erased', attributes = '{}', updated_at = $nowMs
     WHERE id = $personId AND environment_id = $environmentId`,
    { environmentId, personId, nowMs },
  );
  await tx.run("DELETE FROM mail_stop WHERE person_id = ?1", personId);
  await tx.run("DELETE FROM relay_case WHERE person_id = ?1", personId);
  return { status: person.status, namesake: addresses.at(-1)?.namesake ?? null };
}

type ErasedAddress = Required<Pick<ErasureTarget, "email" | "namesake" | "namedSince" | "hadBetween">>;

/** Lists the former addresses of the person, the oldest first, and the current one. */
async function listAddresses(tx: Reader, person: PersonRow): Promise<ErasedAddress[]> {
  const former = await listFormerAddresses(tx, person.id);
  const addresses: ErasedAddress[] = [];
  let from = person.createdAt;
  for (const { email, changedAt } of [...former, { email: person.email, changedAt: Infinity }]) {
    addresses.push(await findNamesakeOf(tx, person, email, { from, to: changedAt }));
    from = changedAt;
  }
  return addresses;
}

/** Finds who else has or had an address that the person had from one time to another. */
async function findNamesakeOf(
  tx: Reader,
  person: PersonRow,
  email: string,
  { from, to }: { from: number; to: number },
): Promise<ErasedAddress> {
  const current =
    (await findNamesake(tx, { ...person, email })) ??
    (await findPersonByEmail(tx, person.environmentId, email));
  const hadBetween = to === Infinity ? null : ([from, to] as const);
  if (current !== null && current.id !== person.id)
    return { email, namesake: current.id, namedSince: null, hadBetween };
  const former = await findFormerHolder(tx, person, email);
  if (former === null) return { email, namesake: null, namedSince: 0, hadBetween: null };
  const namesake = former.personId;
  return former.changedAt >= to
    ? { email, namesake, namedSince: null, hadBetween }
    : { email, namesake, namedSince: from, hadBetween: null };
}

/** Reports whether the event arrived before the address that it names was erased. */
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

/** Reports whether the id is the tombstone of an erased person. */
export async function isErasedPerson(tx: Reader, environmentId: number, personId: string): Promise<boolean> {
  const sql = "SELECT 1 FROM person WHERE id = ?1 AND environment_id = ?2 AND status = 'erased'";
  return (await tx.get(sql, personId, environmentId)) !== null;
}

/** Reports whether the token still belongs to an erased person. The token is deleted with the person's rows. */
export async function isErasedToken(tx: Reader, environmentId: number, token: string): Promise<boolean> {
  const sql = `SELECT 1 FROM person_token JOIN person ON person.id = person_id
    WHERE person_token.environment_id = ?1 AND token = ?2 AND status = 'erased'`;
  return (await tx.get(sql, environmentId, token)) !== null;
}

/** Returns the digest that erased addresses are compared by. It is keyed, so that a copy of the database does not reveal the address. */
export function digestAddress(sealer: Pick<Sealer, "digest">, email: string): Uint8Array {
  return sealer.digest(`erased address: ${toEmailKey(email.trim())}`);
}

/** Lists erasures in progress, oldest first, at most `limit`. */
export async function listOpenErasures(tx: Reader, sealer: Sealer, limit: number): Promise<OpenErasure[]> {
  const rows = await ERASURE.all(tx, "WHERE target IS NOT NULL ORDER BY seq LIMIT $limit", { limit });
  return rows.flatMap(({ target, ...row }) => {
    if (target === null) return [];
    return [
      { ...row, target: JSON.parse(sealer.unseal(target, contextOf(row.environmentId))) as ErasureTarget },
    ];
  });
}

/** Completes an erasure: deletes the search target, and keeps only the keyed digest. */
export async function endErasure(tx: Writer, seq: number): Promise<void> {
  await tx.run("DELETE FROM erasure_file WHERE erasure_seq = ?1", seq);
  await tx.run("UPDATE erasure SET target = NULL WHERE seq = ?1", seq);
}

/** Deletes digests that no remaining event needs; the oldest come first. */
export async function deleteSpentErasures(tx: Writer): Promise<void> {
  await tx.run(
    `DELETE FROM erasure WHERE seq IN (SELECT seq FROM erasure WHERE seq > 0 ORDER BY seq LIMIT ?1)
       AND target IS NULL AND event_seq < coalesce((SELECT min(seq) FROM event), event_seq + 1)`,
    STEP_ROWS,
  );
}

/** The position of the steps: the last record addressed to the person that was read. */
export interface EraseCursor {
  recordSeq: number;
}

/**
 * Erases one step of the person's rows: records they own and records that the app addressed to them (records from other people stay), tokens,
 * live grants, subscriptions, and the text of their mails. Returns what it touched and where to continue, or null at the end. Ledger, grants
 * and receipts stay under the id.
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

/** The rows to erase after the records, in order. null: not counted. */
const ROWS_OF_PERSON: readonly (readonly [what: keyof ErasureCount | null, sql: string])[] = [
  [
    "tokens",
    `DELETE FROM person_token ${OF_PERSON} AND token IN (SELECT token FROM person_token ${OF_PERSON} LIMIT $most)`,
  ],
  [
    "customers",
    `DELETE FROM person_customer ${OF_PERSON} AND (space, customer_id) IN
       (SELECT space, customer_id FROM person_customer ${OF_PERSON} LIMIT $most)`,
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

/** Deletes the next records of the person and records their files. Returns null if there are none left. */
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
  const ofPerson = `WHERE ${column} = $personId AND seq > $afterSeq AND seq <= $seq AND environment_id = $environmentId
    AND (owner_id IS NULL OR owner_id = $personId)`;
  const span = { environmentId, personId, afterSeq, seq };
  await recordFiles(tx, { environmentId, personId }, ofPerson, span);
  return { deleted: await tx.run(`DELETE FROM record ${ofPerson}`, span), seq };
}

async function recordFiles(
  tx: Writer,
  person: Pick<Erasure, "environmentId" | "personId">,
  ofPerson: string,
  span: SqlNames,
): Promise<void> {
  const rows = await tx.all<{ data: string }>(
    `SELECT data FROM record ${ofPerson} AND instr(data, 'fil_') > 0`,
    span,
  );
  const ids = new Set(rows.flatMap(({ data }) => [...data.matchAll(FILE_ID)].map(([, id = ""]) => id)));
  await tx.postEach(
    `INSERT INTO erasure_file (erasure_seq, file_id)
     SELECT seq, $fileId FROM erasure WHERE environment_id = $environmentId AND person_id = $personId AND target IS NOT NULL
     ON CONFLICT DO NOTHING`,
    [...ids].map((fileId) => ({ ...person, fileId })),
  );
}

function contextOf(environmentId: number): string {
  return `erasure:${environmentId}`;
}
