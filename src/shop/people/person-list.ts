/**
 * Lists people with what each has now: by a filter (newest first, with a bounded number of rows read per page), or by index only (an address
 * or its beginning, an id, a store account token).
 */
import { type Static, Type } from "typebox";
import { toIsoOrNull } from "../../base/clock.ts";
import { isId } from "../../base/id.ts";
import { makeCursor, type Page, type PageRequest } from "../../base/page.ts";
import { textOrNull, timeOrNull } from "../../base/schema.ts";
import { equals, walkPage } from "../../store/index-scan.ts";
import type { Reader } from "../../store/port.ts";
import { type Ends, endsSql, liveSql, readEnds, UNREVOKED } from "./live-grant.ts";
import {
  findPerson,
  findPersonByAnyCustomer,
  findPersonByEmail,
  PERSON,
  type PersonRow,
  type PersonStatus,
  type PersonView,
  personView,
  toEmailKey,
  toPunycodeKey,
  viewPerson,
} from "./person.ts";
import { findPersonByToken } from "./person-identifier.ts";

/** A person in a list, with their current access and credits. */
export const personItem = Type.Object({
  ...personView.properties,
  /** `until`: the last expiry; null if a grant never expires. A suspended person has no access. */
  access: Type.Object({ granted: Type.Boolean(), until: timeOrNull }),
  /** The live grants: `plan` of the active subscription (null on the default plan), and the first keys by name of `count`. */
  holds: Type.Object({
    plan: textOrNull,
    entitlements: Type.Array(Type.String()),
    count: Type.Integer(),
  }),
  credits: Type.Integer(),
});
export type PersonItem = Static<typeof personItem>;

interface PersonFilter {
  /** A part of the address, in any case, or the beginning of an id. */
  q?: string | undefined;
  status?: PersonStatus | undefined;
  /** Selects people by their access at `nowMs`. */
  access?: { granted: boolean; nowMs: number } | undefined;
}

/** Lists one page of people, newest first. */
export async function listPersons(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
  filter: PersonFilter = {},
): Promise<Page<PersonView>> {
  const given = filter.q?.trim().toLowerCase() ?? "";
  const q = toEmailKey(given);
  // A punycode domain is shown in its given spelling, so both spellings are searched.
  const textFilter = {
    sql: "(instr(email_key, ?) > 0 OR instr(lower(email), ?) > 0 OR substr(id, 1, length(?)) = ?)",
    values: [q, given, q, q],
  };
  const { access } = filter;
  const walk = {
    index: "person_by_environment",
    key: "id",
    led: [equals("environment_id", environmentId)],
    fits: [
      { sql: "status <> 'erased'", values: [] },
      q === "" ? undefined : textFilter,
      equals("status", filter.status),
      access === undefined
        ? undefined
        : { sql: access.granted ? MAY_USE : `NOT ${MAY_USE}`, values: [access.nowMs] },
    ],
  } as const;
  return await walkPage(tx, PERSON, request, walk, viewPerson);
}

/** The OFFSET stops the planner from turning the subquery into a join, which could scan the environment. */
const MAY_USE = `(status <> 'suspended' AND EXISTS (SELECT 1 FROM access_grant INDEXED BY access_grant_ends
  WHERE person_id = person.id AND environment_id = person.environment_id
    AND ${liveSql("?")} LIMIT 1 OFFSET 0))`;

/** Sorts after every address with the same beginning. */
const LAST_CHAR = "\u{10ffff}";

/** Finds people by index only: first the person whom the text names exactly, then those whose address begins with it, by address. */
export async function findPersons(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
  text: string,
): Promise<Page<PersonView>> {
  const begin = toEmailKey(text.trim());
  if (begin === "") return { items: [], next: null };
  const { limit, after } = request;
  const named = await findNamed(tx, environmentId, text.trim());
  const count = named === null || after !== null ? limit : limit - 1;
  const shownAs = readPunycode(text);
  const prefix = shownAs === null ? begin : begin.slice(0, begin.lastIndexOf("@") + 1);
  const rows = await PERSON.all(
    tx,
    `INDEXED BY person_by_email WHERE environment_id = $environmentId AND email_key IS NOT NULL
       AND email_key >= $from AND email_key < $below AND id <> $named
       AND (substr(email_key, 1, length($begin)) = $begin OR instr(lower(email), $shownAs) > 0) ORDER BY email_key LIMIT $most`,
    {
      environmentId,
      // The cursor holds the next address.
      from: after ?? prefix,
      below: prefix + LAST_CHAR,
      begin,
      shownAs: shownAs ?? begin,
      named: named?.id ?? "",
      most: count + 1,
    },
  );
  const shown = rows.slice(0, count);
  const nextRow = rows[count];
  const found = named !== null && after === null ? [named, ...shown] : shown;
  return { items: found.map(viewPerson), next: nextRow === undefined ? null : makeCursor(nextRow.emailKey) };
}

/**
 * Returns the text from its @ on, if its domain is in punycode. A shortened punycode domain cannot be decoded, but an address may have been
 * given in that form.
 */
function readPunycode(text: string): string | null {
  return /@(?:.*\.)?xn--[^@]*$/.exec(text.trim().toLowerCase())?.[0] ?? null;
}

/** Finds a person by id, token, customer id or complete address. */
async function findNamed(tx: Reader, environmentId: number, text: string): Promise<PersonRow | null> {
  if (isId("per", text)) return await findPerson(tx, environmentId, text);
  if (!text.includes("@"))
    return (
      (await findPersonByToken(tx, environmentId, text)) ??
      (await findPersonByAnyCustomer(tx, environmentId, text))
    );
  return toPunycodeKey(text) === null ? null : await findPersonByEmail(tx, environmentId, text);
}

/** The most keys that a person in a list shows. */
const MAX_KEYS = 6;

interface HeldKey {
  id: string;
  entitlement: string;
  count: number;
}

/** Adds the current access and credits of each person. */
export async function addHoldings(
  tx: Reader,
  page: Page<PersonView>,
  nowMs: number,
): Promise<Page<PersonItem>> {
  const ids = JSON.stringify(page.items.map(({ id }) => id));
  const held = await tx.all<Ends & { id: string; credits: number; plan: string | null }>(HOLDINGS, { ids });
  const byId = new Map(held.map((one) => [one.id, one]));
  const keys = Map.groupBy(await tx.all<HeldKey>(HELD_KEYS, { ids, nowMs, most: MAX_KEYS }), ({ id }) => id);
  const items = page.items.map((person) => {
    const own = byId.get(person.id) ?? null;
    const { granted, until } = readEnds(person.status === "suspended" ? null : own, nowMs);
    const ownKeys = keys.get(person.id) ?? [];
    const holds = {
      plan: own?.plan ?? null,
      entitlements: ownKeys.map(({ entitlement }) => entitlement),
      count: ownKeys[0]?.count ?? 0,
    };
    return { ...person, access: { granted, until: toIsoOrNull(until) }, holds, credits: own?.credits ?? 0 };
  });
  return { items, next: page.next };
}

const GRANTS_OF_PERSON = `access_grant INDEXED BY access_grant_ends WHERE person_id = one.value AND ${UNREVOKED}`;
const HOLDINGS = `SELECT one.value AS id, ${endsSql(GRANTS_OF_PERSON)},
    coalesce((SELECT balance FROM credit INDEXED BY credit_by_person WHERE person_id = one.value ORDER BY seq DESC LIMIT 1), 0) AS credits,
    (SELECT plan FROM subscription INDEXED BY subscription_by_person WHERE person_id = one.value AND status = 'active' LIMIT 1) AS plan
  FROM json_each($ids) AS one`;
const HELD_KEYS = `SELECT id, entitlement, count FROM (
    SELECT id, entitlement, count(*) OVER (PARTITION BY id) AS count, row_number() OVER (PARTITION BY id ORDER BY entitlement) AS place FROM (
      SELECT DISTINCT person_id AS id, entitlement FROM access_grant INDEXED BY access_grant_ends
      WHERE person_id IN (SELECT value FROM json_each($ids)) AND ${liveSql("$nowMs")}) AS held) AS numbered
  WHERE place <= $most ORDER BY id, entitlement`;
