/**
 * Entitlements, which grants name: `access:<slug>` from the catalog of access slugs in this file, a product, or a plan. A product's name means the
 * key it grants, so granting, revoking and checking by its name mean the same key. Deleting a slug ends no grant; while live grants hold it, deletion
 * requires `force`.
 */
import { type Static, Type } from "typebox";
import { MAX_ACCESS_SLUGS, MAX_TITLE_CHARS } from "../../base/limit.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { show, time } from "../../base/schema.ts";
import { CATALOG_NAME } from "../../base/shape.ts";
import { breaksOneLine, countChars, formatCount } from "../../base/text.ts";
import { pageByName } from "../../store/index-scan.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, type RowOf, text } from "../../store/table.ts";
import { ENDLESS, endsLaterSql, UNREVOKED } from "./live-grant.ts";

interface Entitlement {
  kind: "access" | "product" | "plan";
  /** The name: `access:<slug>`, or a product or plan name. */
  name: string;
  title: string;
  /** The granted key: the name, or a product's key. */
  key: string;
}

const ACCESS = "access:";

/** Finds the access slug, product or plan of this name. */
export async function findEntitlement(
  tx: Reader,
  environmentId: number,
  name: string,
): Promise<Entitlement | null> {
  if (name.startsWith(ACCESS)) {
    const found = await findAccessSlug(tx, environmentId, name.slice(ACCESS.length));
    return found === null ? null : { kind: "access", name, title: found.title, key: name };
  }
  const product = await tx.get<{ title: string; key: string }>(
    "SELECT title, key FROM product WHERE environment_id = ?1 AND name = ?2",
    environmentId,
    name,
  );
  if (product !== null) return { kind: "product", name, ...product };
  const plan = await tx.get<{ title: string }>(
    "SELECT title FROM plan WHERE environment_id = ?1 AND name = ?2",
    environmentId,
    name,
  );
  return plan === null ? null : { kind: "plan", name, title: plan.title, key: name };
}

/** Finds an entitlement. Throws `entitlement_unknown`. */
export async function requireEntitlement(
  tx: Reader,
  environmentId: number,
  name: string,
): Promise<Entitlement> {
  const entitlement = await findEntitlement(tx, environmentId, name);
  if (entitlement === null) throw new Refusal("entitlement_unknown", formatEntitlementUnknown(name));
  return entitlement;
}

export function formatEntitlementUnknown(name: string): string {
  return `\`entitlement\` names ${name}, which is not an access slug, product or plan in this environment: create it with relay catalog set, or name one that exists.`;
}

/** Returns the key that a grant of `name` holds; a name that is not in the catalog is its own key. */
export async function resolveEntitlementKey(
  tx: Reader,
  environmentId: number,
  name: string,
): Promise<string> {
  return (await findEntitlement(tx, environmentId, name))?.key ?? name;
}

const ACCESS_SLUG = defineTable({
  name: "access_slug",
  key: ["environmentId", "slug"],
  columns: { environmentId: integer(), slug: text(), title: text(), createdAt: integer() },
});
type AccessSlugRow = RowOf<typeof ACCESS_SLUG>;

/** `entitlement`: the name for grants and checks, `access:<slug>`. */
export const accessSlugView = Type.Object({
  slug: Type.String(),
  title: Type.String(),
  entitlement: Type.String(),
  createdAt: time,
});
type AccessSlugView = Static<typeof accessSlugView>;

function viewAccessSlug(row: AccessSlugRow): AccessSlugView {
  return show(accessSlugView, { ...row, entitlement: `${ACCESS}${row.slug}` });
}

export function findAccessSlug(
  tx: Reader,
  environmentId: number,
  slug: string,
): Promise<AccessSlugRow | null> {
  return ACCESS_SLUG.find(tx, { environmentId, slug });
}

/** Lists all access slugs, by slug. */
export async function listAccessSlugs(tx: Reader, environmentId: number): Promise<AccessSlugView[]> {
  const rest = "WHERE environment_id = $environmentId ORDER BY slug";
  return (await ACCESS_SLUG.all(tx, rest, { environmentId })).map(viewAccessSlug);
}

/** Lists one page of access slugs, newest first. */
export async function pageAccessSlugs(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
): Promise<Page<AccessSlugView>> {
  return await pageByName(tx, ACCESS_SLUG, "slug", environmentId, request, viewAccessSlug);
}

/** A slug as the caller gives it; an absent title is the slug. */
interface AccessEntry {
  slug: string;
  title?: string | undefined;
}

/** Creates a slug or changes its title. Throws `invalid_input`, also for one slug too many. */
export async function putAccessSlug(
  tx: Writer,
  environmentId: number,
  entry: AccessEntry,
  nowMs: number,
): Promise<void> {
  await writeAccessSlug(tx, environmentId, entry, nowMs);
  const row = await tx.get<{ count: number }>(
    "SELECT count(*) AS count FROM access_slug WHERE environment_id = ?1",
    environmentId,
  );
  if ((row?.count ?? 0) > MAX_ACCESS_SLUGS) throw rejectTooMany();
}

/** Replaces the catalog with `entries`. Other slugs are deleted by the rule of `deleteAccessSlug`. */
export async function putAccessSlugs(
  tx: Writer,
  environmentId: number,
  entries: readonly AccessEntry[],
  nowMs: number,
  options: { force?: boolean } = {},
): Promise<void> {
  const wanted = new Set(entries.map((entry) => entry.slug));
  if (wanted.size < entries.length) {
    throw new Refusal("invalid_input", "`access` names a slug twice: list each slug once.");
  }
  if (entries.length > MAX_ACCESS_SLUGS) throw rejectTooMany();
  for (const { slug } of await listAccessSlugs(tx, environmentId)) {
    if (!wanted.has(slug)) await deleteAccessSlug(tx, environmentId, slug, nowMs, options);
  }
  for (const entry of entries) await writeAccessSlug(tx, environmentId, entry, nowMs);
}

async function writeAccessSlug(
  tx: Writer,
  environmentId: number,
  { slug, title = slug }: AccessEntry,
  nowMs: number,
): Promise<void> {
  if (!CATALOG_NAME.test(slug)) {
    throw new Refusal(
      "invalid_input",
      "`slug` is not valid: use lowercase letters, digits, hyphens and underscores, starting with a letter, at most 63 characters.",
    );
  }
  if (title === "" || countChars(title) > MAX_TITLE_CHARS || breaksOneLine(title) !== null) {
    throw new Refusal(
      "invalid_input",
      `\`title\` is not valid: use 1 to ${MAX_TITLE_CHARS} characters on one line.`,
    );
  }
  const change = "ON CONFLICT (environment_id, slug) DO UPDATE SET title = excluded.title";
  await ACCESS_SLUG.insert(tx, { environmentId, slug, title, createdAt: nowMs }, change);
}

function rejectTooMany(): Refusal {
  return new Refusal(
    "invalid_input",
    `\`access\` would have more than ${formatCount(MAX_ACCESS_SLUGS)} slugs, the limit of an environment: remove slugs that are no longer granted.`,
  );
}

/** Deletes a slug. Throws `not_found`, and `in_use` while people hold it unless forced; then their grants stay under its name. */
export async function deleteAccessSlug(
  tx: Writer,
  environmentId: number,
  slug: string,
  nowMs: number,
  options: { force?: boolean } = {},
): Promise<void> {
  const held = options.force === true ? 0 : await countHolders(tx, environmentId, slug, nowMs);
  if (held > 0) {
    const some = held === 1 ? "1 person" : `${held} people`;
    const people = held === MAX_COUNTED ? `${MAX_COUNTED} people or more` : some;
    throw new Refusal(
      "in_use",
      `access:${slug} is held by ${people}: revoke their grants first, or delete it with force (--force, force=true), which keeps their grants.`,
    );
  }
  const deleted = await ACCESS_SLUG.delete(tx, { environmentId, slug });
  if (deleted === 0) throw new Refusal("not_found", `No access slug ${slug} exists in this environment.`);
}

/** Counting stops here, because the message does not need the exact number. */
const MAX_COUNTED = 1_000;

async function countHolders(tx: Reader, environmentId: number, slug: string, nowMs: number): Promise<number> {
  const held = `SELECT person_id FROM access_grant INDEXED BY access_grant_held
    WHERE environment_id = $environmentId AND entitlement = $entitlement AND ${UNREVOKED}`;
  const row = await tx.get<{ count: number }>(
    `SELECT count(DISTINCT person_id) AS count FROM (
       SELECT * FROM (${held} AND ${ENDLESS} LIMIT $most)
       UNION ALL SELECT * FROM (${held} AND ${endsLaterSql("$nowMs")} LIMIT $most))`,
    { environmentId, entitlement: `${ACCESS}${slug}`, nowMs, most: MAX_COUNTED },
  );
  return Math.min(MAX_COUNTED, row?.count ?? 0);
}
