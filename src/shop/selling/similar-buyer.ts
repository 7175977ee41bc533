/**
 * Finds people who bought something and whose address or name is similar to a person's, for a customer who paid under another address. The
 * search reads a bounded number of rows by index, however many people there are: the spellings and typos of the address, the people whose address
 * begins in the same way, and the newest purchases.
 */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { parseJson } from "../../base/json.ts";
import { oneOf, time } from "../../base/schema.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import {
  type AddressParts,
  countTypos,
  listSpellings,
  listTypos,
  splitAddress,
} from "../people/address-similarity.ts";
import type { PersonRow } from "../people/person.ts";
import { LIVE_PURCHASE } from "./purchase.ts";

/** The reasons why a person is similar, the most similar first. */
const REASONS = ["same_letters", "typo", "same_domain", "same_name"] as const;
type Reason = (typeof REASONS)[number];

export const similarBuyer = Type.Object({
  person: Type.String(),
  email: Type.String(),
  /** `same_letters`: the same part before the @ without dots and a plus tag. `same_domain`: also a similar part before the @. */
  reason: oneOf(REASONS),
  /** The newest purchase that was not refunded. */
  purchase: Type.Object({ id: Type.String(), item: Type.String(), ref: Type.String(), createdAt: time }),
});
export type SimilarBuyer = Static<typeof similarBuyer>;

interface Candidate {
  id: string;
  email: string;
  emailKey: string;
  attributes: string;
}

interface Similar {
  candidate: Candidate;
  reason: Reason;
}

/** The most people of one spelling, of one beginning, and whose purchases are read. */
const MAX_OF_SPELLING = 10;
const MAX_OF_BEGINNING = 200;
const MAX_COMPARED = 20;
/** The people that are compared between two turns of the event loop. */
const COMPARED_IN_A_TURN = 50;
/** The newest purchases whose people are compared. */
const NEWEST_PURCHASES = 300;
/** The newest receipts of a similar person that are read. */
const NEWEST_RECEIPTS = 50;
/** The most similar people in an answer. */
const MAX_SHOWN = 5;
const MAX_TYPOS = 2;
/** The fewest characters that an address must begin with to be compared. */
const MIN_BEGINNING = 3;
/** Sorts after every address with the same beginning. */
const LAST_CHAR = "\u{10ffff}";

// Large attributes are not read, so that the search stays fast.
const COLUMNS = `person.id, person.email, person.email_key AS emailKey,
  CASE WHEN octet_length(person.attributes) <= 2048 THEN person.attributes ELSE '{}' END AS attributes`;

/** Lists the similar people who bought something, the most similar first. */
export async function listSimilarBuyers(store: Store, person: PersonRow): Promise<SimilarBuyer[]> {
  const { environmentId, emailKey } = person;
  const parts = splitAddress(emailKey);
  const found = new Map<string, Candidate>();
  for (const search of [searchSpellings, searchTypos, searchBeginning, searchPurchases]) {
    for (const one of await store.read((tx) => search(tx, environmentId, parts))) found.set(one.id, one);
    await yieldToEventLoop();
  }
  found.delete(person.id);
  const name = readName(person.attributes);
  const similar: Similar[] = [];
  let compared = 0;
  for (const candidate of found.values()) {
    const reason = compare(parts, emailKey, name, candidate);
    if (reason !== null) similar.push({ candidate, reason });
    compared += 1;
    if (compared % COMPARED_IN_A_TURN === 0) await yieldToEventLoop();
  }
  similar.sort((one, other) => REASONS.indexOf(one.reason) - REASONS.indexOf(other.reason));
  const bought = await store.read((tx) =>
    Promise.all(similar.slice(0, MAX_COMPARED).map((one) => addPurchase(tx, environmentId, one))),
  );
  return bought.filter((one) => one !== null).slice(0, MAX_SHOWN);
}

async function searchSpellings(tx: Reader, environmentId: number, parts: AddressParts): Promise<Candidate[]> {
  const lists = await Promise.all(
    listSpellings(parts).map((from) => listBeginning(tx, environmentId, from, MAX_OF_SPELLING)),
  );
  return lists.flat();
}

function searchTypos(tx: Reader, environmentId: number, parts: AddressParts): Promise<Candidate[]> {
  const sql = `SELECT ${COLUMNS} FROM person INDEXED BY person_by_email WHERE environment_id = $environmentId
    AND email_key IN (SELECT value FROM json_each($keys))`;
  return tx.all<Candidate>(sql, { environmentId, keys: JSON.stringify(listTypos(parts)) });
}

async function searchBeginning(
  tx: Reader,
  environmentId: number,
  { local }: AddressParts,
): Promise<Candidate[]> {
  const from = local.slice(0, Math.max(MIN_BEGINNING, Math.ceil(local.length / 2)));
  if (from.length < MIN_BEGINNING) return [];
  return await listBeginning(tx, environmentId, from, MAX_OF_BEGINNING);
}

function listBeginning(tx: Reader, environmentId: number, from: string, most: number): Promise<Candidate[]> {
  const sql = `SELECT ${COLUMNS} FROM person INDEXED BY person_by_email WHERE environment_id = $environmentId AND email_key IS NOT NULL
    AND email_key >= $from AND email_key < $below ORDER BY email_key LIMIT $most`;
  return tx.all<Candidate>(sql, { environmentId, from, below: from + LAST_CHAR, most });
}

function searchPurchases(tx: Reader, environmentId: number): Promise<Candidate[]> {
  const sql = `SELECT ${COLUMNS} FROM person WHERE status <> 'erased' AND id IN (SELECT person_id FROM
    (SELECT person_id FROM purchase INDEXED BY purchase_by_environment WHERE environment_id = $environmentId ORDER BY id DESC LIMIT $most) AS newest)`;
  return tx.all<Candidate>(sql, { environmentId, most: NEWEST_PURCHASES });
}

/** Returns why the candidate is similar; null: they are not. */
function compare(
  own: AddressParts,
  emailKey: string,
  name: string | null,
  candidate: Candidate,
): Reason | null {
  const parts = splitAddress(candidate.emailKey);
  if (parts.letters === own.letters) return "same_letters";
  if (countTypos(candidate.emailKey, emailKey, MAX_TYPOS) <= MAX_TYPOS) return "typo";
  const [short = "", long = ""] = [parts.letters, own.letters].sort(
    (one, other) => one.length - other.length,
  );
  if (
    parts.domain === own.domain &&
    short.length >= MIN_BEGINNING &&
    (long.startsWith(short) || long.endsWith(short))
  )
    return "same_domain";
  return name !== null && readName(parseJson(candidate.attributes)) === name ? "same_name" : null;
}

/** Reads the attribute `name` for a comparison. */
function readName(attributes: unknown): string | null {
  const { name } = attributes as { name?: unknown };
  return typeof name === "string" && name.trim() !== "" ? name.trim().toLowerCase() : null;
}

async function addPurchase(
  tx: Reader,
  environmentId: number,
  { candidate: { id, email }, reason }: Similar,
): Promise<SimilarBuyer | null> {
  const sql = `SELECT id, item, ref, created_at AS createdAt FROM
    (SELECT * FROM purchase INDEXED BY purchase_by_person_id WHERE person_id = $id ORDER BY id DESC LIMIT $most) AS purchase
    WHERE environment_id = $environmentId AND ${LIVE_PURCHASE} ORDER BY id DESC LIMIT 1`;
  type Row = { id: string; item: string; ref: string; createdAt: number };
  const row = await tx.get<Row>(sql, { environmentId, id, most: NEWEST_RECEIPTS });
  if (row === null) return null;
  return { person: id, email, reason, purchase: { ...row, createdAt: toIso(row.createdAt) } };
}
