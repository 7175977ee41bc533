/**
 * The catalog of access slugs: what `access:<slug>` may name. Taking a slug out of the catalog ends no grant; while live grants hold
 * it, it is refused unless asked for with `force`.
 */
import { toIso } from "../ground/clock.ts";
import { MAX_ACCESS_SLUGS, MAX_TITLE_CHARS } from "../ground/limit.ts";
import { makeNameKey, makePage, type Page, type PageRequest, parseNameKey } from "../ground/page.ts";
import { Refusal } from "../ground/refusal.ts";
import { CATALOG_NAME } from "../ground/shape.ts";
import { breaksOneLine, countChars } from "../ground/text.ts";
import type { Reader, Writer } from "../store/port.ts";
import { countHolders } from "./access-grant.ts";

interface AccessSlug {
  slug: string;
  title: string;
}

interface AccessSlugView extends AccessSlug {
  /** What a grant and a check name: `access:<slug>`. */
  entitlement: string;
  createdAt: string;
}

/** Holders are counted so far; nobody needs the exact number of more. */
const MAX_COUNTED = 1_000;

type AccessSlugRow = AccessSlug & { createdAt: number };

/** All of them, by slug. */
export async function listAccessSlugs(tx: Reader, environmentId: number): Promise<AccessSlugView[]> {
  const rows = await tx.all<AccessSlugRow>(
    "SELECT slug, title, created_at AS createdAt FROM access_slug WHERE environment_id = ?1 ORDER BY slug",
    environmentId,
  );
  return rows.map(viewAccessSlug);
}

/** A page of them, newest first. */
export async function pageAccessSlugs(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
): Promise<Page<AccessSlugView>> {
  const after = parseNameKey(request.after);
  const rows = await tx.all<AccessSlugRow>(
    `SELECT slug, title, created_at AS createdAt FROM access_slug
     WHERE environment_id = ?1 AND (?2 IS NULL OR created_at < ?2 OR (created_at = ?2 AND slug > ?3))
     ORDER BY created_at DESC, slug LIMIT ?4`,
    environmentId,
    after.createdAt,
    after.name,
    request.limit + 1,
  );
  return makePage(
    rows,
    request,
    ({ createdAt, slug }) => makeNameKey({ createdAt, name: slug }),
    viewAccessSlug,
  );
}

function viewAccessSlug({ slug, title, createdAt }: AccessSlugRow): AccessSlugView {
  return { slug, title, entitlement: `access:${slug}`, createdAt: toIso(createdAt) };
}

/** Creates a slug or changes its title. Refuses with `invalid_input`, also a slug too many. */
export async function putAccessSlug(
  tx: Writer,
  environmentId: number,
  entry: { slug: string; title?: string | undefined },
  nowMs: number,
): Promise<void> {
  await writeAccessSlug(tx, environmentId, entry, nowMs);
  const row = await tx.get<{ count: number }>(
    "SELECT count(*) AS count FROM access_slug WHERE environment_id = ?1",
    environmentId,
  );
  if ((row?.count ?? 0) > MAX_ACCESS_SLUGS) throw refuseTooMany();
}

function refuseTooMany(): Refusal {
  return new Refusal(
    "invalid_input",
    `\`access\` would hold more than ${MAX_ACCESS_SLUGS.toLocaleString("en")} slugs, the limit of an environment: take out those that nothing grants any more.`,
  );
}

async function writeAccessSlug(
  tx: Writer,
  environmentId: number,
  entry: { slug: string; title?: string | undefined },
  nowMs: number,
): Promise<void> {
  const { slug, title = slug } = entry;
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
  await tx.run(
    `INSERT INTO access_slug (environment_id, slug, title, created_at) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (environment_id, slug) DO UPDATE SET title = excluded.title`,
    environmentId,
    slug,
    title,
    nowMs,
  );
}

/** Makes the catalog exactly `entries`: others are deleted by the rule of `deleteAccessSlug`. Answers what was added and removed. */
export async function putAccessSlugs(
  tx: Writer,
  environmentId: number,
  entries: readonly { slug: string; title?: string | undefined }[],
  nowMs: number,
  options: { force?: boolean } = {},
): Promise<{ added: string[]; removed: string[] }> {
  const wanted = new Set(entries.map((entry) => entry.slug));
  if (wanted.size < entries.length) {
    throw new Refusal("invalid_input", "`access` names a slug twice: list each slug once.");
  }
  if (entries.length > MAX_ACCESS_SLUGS) throw refuseTooMany();
  const before = new Set((await listAccessSlugs(tx, environmentId)).map((entry) => entry.slug));
  const removed = [...before].filter((slug) => !wanted.has(slug));
  for (const slug of removed) await deleteAccessSlug(tx, environmentId, slug, nowMs, options);
  for (const entry of entries) await writeAccessSlug(tx, environmentId, entry, nowMs);
  return { added: [...wanted].filter((slug) => !before.has(slug)), removed };
}

/** Refuses with `not_found`, and with `in_use` while someone holds it, unless forced: then their grants live on by name. */
export async function deleteAccessSlug(
  tx: Writer,
  environmentId: number,
  slug: string,
  nowMs: number,
  options: { force?: boolean } = {},
): Promise<void> {
  if (options.force !== true) {
    const held = await countHolders(tx, { environmentId, entitlement: `access:${slug}`, nowMs }, MAX_COUNTED);
    if (held > 0) {
      const people = held === MAX_COUNTED ? `${MAX_COUNTED} people or more` : `${held} people`;
      throw new Refusal(
        "in_use",
        `access:${slug} is held by ${people}: revoke their grants first, or delete it with force and leave them their grants.`,
      );
    }
  }
  const deleted = await tx.run(
    "DELETE FROM access_slug WHERE environment_id = ?1 AND slug = ?2",
    environmentId,
    slug,
  );
  if (deleted === 0) throw new Refusal("not_found", `No access slug ${slug} exists in this environment.`);
}
