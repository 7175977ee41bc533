/** Apps: an id that is part of every receiver URL, a display name, and the environments that an app starts with. An id never changes. */
import { type Static, Type } from "typebox";
import type { Page, PageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { show, time } from "../../base/schema.ts";
import { pageByName } from "../../store/index-scan.ts";
import { type Reader, UniqueViolation, type Writer } from "../../store/port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../../store/table.ts";
import { type Environment, type EnvironmentName, ensureEnvironment } from "./environment.ts";
import { EVERY } from "./permission.ts";

const APP = defineTable({
  name: "app",
  key: ["id"],
  columns: {
    id: text(),
    name: text(),
    createdAt: integer(),
    /** The time of the app's deletion, and its actor in the audit's words. No finder returns a deleted app. */
    deletedAt: orNull(integer()),
    deletedBy: orNull(text()),
    /** The time when the last data of the deleted app was removed; this row stays. */
    emptiedAt: orNull(integer()),
  },
});

export type App = RowOf<typeof APP>;

export const appView = Type.Object({ id: Type.String(), name: Type.String(), createdAt: time });
type AppView = Static<typeof appView>;

export function viewApp(app: App): AppView {
  return show(appView, app);
}

/** An id is part of a URL path: 2 to 63 lowercase letters, digits, hyphens and underscores, starting with a letter. */
const APP_ID = /^[a-z][a-z0-9_-]{1,62}$/;
const MAX_NAME_CHARS = 100;

interface NewApp {
  /** An explicit id such as `app_test`. Absent: derived from the name, with a number if that id is taken. */
  id?: string | undefined;
  name: string;
  environments: readonly EnvironmentName[];
  nowMs: number;
}

/** Creates the app with its environments. Throws `invalid_input` or, for an explicit id, `name_taken`. */
export async function createApp(
  tx: Writer,
  input: NewApp,
): Promise<{ app: App; environments: Environment[] }> {
  const name = readName(input.name);
  const notDeleted = { deletedAt: null, deletedBy: null, emptiedAt: null };
  const app: App = { id: await chooseId(tx, input.id, name), name, createdAt: input.nowMs, ...notDeleted };
  try {
    await tx.attempt(() => APP.insert(tx, app));
  } catch (error) {
    if (!(error instanceof UniqueViolation)) throw error;
    const isBeingRemoved = (await findApp(tx, app.id)) === null;
    throw new Refusal(
      "name_taken",
      isBeingRemoved
        ? `The app ${app.id} was deleted, and its data is still being removed: choose another id, or use this id in a minute.`
        : `An app with the id ${app.id} exists: choose another id.`,
    );
  }
  const environments: Environment[] = [];
  for (const environment of input.environments) {
    environments.push(await ensureEnvironment(tx, app.id, environment, input.nowMs));
  }
  return { app, environments };
}

/**
 * Makes the transactions of the app's other environments wait until this one ends, before a limit of the app is counted. A transaction takes the row
 * after the lock of its environment (docs/adr/0063-lock-per-environment.md).
 */
export async function lockAppLimits(tx: Writer, appId: string): Promise<void> {
  await tx.get("SELECT 1 AS locked FROM app WHERE id = ?1 FOR NO KEY UPDATE", appId);
}

/** Renames the app; its id stays. Returns the app before and after. Throws `not_found` and `invalid_input`. */
export async function renameApp(tx: Writer, id: string, given: string): Promise<{ before: App; after: App }> {
  const before = await findApp(tx, id);
  if (before === null) throw new Refusal("not_found", `There is no app ${id} on this server.`);
  const name = readName(given);
  await APP.change(tx, { id }, { name });
  return { before, after: { ...before, name } };
}

function readName(given: string): string {
  const name = given.trim();
  if (name !== "" && name.length <= MAX_NAME_CHARS) return name;
  throw new Refusal("invalid_input", `name is not valid: write 1 to ${MAX_NAME_CHARS} characters.`);
}

export function findApp(tx: Reader, id: string): Promise<App | null> {
  return APP.get(tx, "WHERE id = $id AND deleted_at IS NULL", { id });
}

/** Lists all apps, oldest first. */
export function listApps(tx: Reader): Promise<App[]> {
  return APP.all(tx, "WHERE deleted_at IS NULL ORDER BY created_at, id");
}

/** Lists one page of the apps of a member, newest first. */
export async function pageApps(tx: Reader, request: PageRequest, ownerId: string): Promise<Page<AppView>> {
  const which = `deleted_at IS NULL AND EXISTS (
    SELECT 1 FROM membership WHERE owner_id = $ownerId AND (app_id = '${EVERY}' OR app_id = app.id))`;
  return await pageByName(tx, APP, "id", null, request, viewApp, which, { ownerId });
}

async function chooseId(tx: Reader, explicit: string | undefined, name: string): Promise<string> {
  if (explicit !== undefined) {
    if (APP_ID.test(explicit)) return explicit;
    throw new Refusal(
      "invalid_input",
      "id is not valid, because it is part of every receiver URL: use 2 to 63 lowercase letters, digits, hyphens or underscores, starting with a letter.",
    );
  }
  const base = idFromName(name);
  for (let number = 1; ; number++) {
    const id = number === 1 ? base : `${base}-${number}`;
    if ((await APP.get(tx, "WHERE id = $id", { id })) === null) return id;
  }
}

/** Derives an id from a name: "Büro & Söhne" becomes `buro-sohne`. A name without Latin letters becomes `app`. */
function idFromName(name: string): string {
  const words = name
    .normalize("NFKD")
    .replace(/\p{Mark}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^[-0-9]+|-+$/g, "")
    .slice(0, 48)
    .replace(/-+$/, "");
  return words.length >= 2 ? words : "app";
}
