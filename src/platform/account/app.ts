/** Apps: an id that stands in every receiver URL, a name for people, and the environments each is made with. It never renames an id. */
import { type Static, Type } from "typebox";
import type { Page, PageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { show, time } from "../../base/schema.ts";
import { pageByName } from "../../store/index-scan.ts";
import { type Reader, UniqueViolation, type Writer } from "../../store/port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../../store/table.ts";
import { type Environment, type EnvironmentName, ensureEnvironment } from "./environment.ts";

const APP = defineTable({
  name: "app",
  key: ["id"],
  columns: {
    id: text(),
    name: text(),
    createdAt: integer(),
    /** Since when, and by whom in the audit's words, it is deleted: it is nobody's from then on. */
    deletedAt: orNull(integer()),
    deletedBy: orNull(text()),
    /** Since when nothing of it is left but this row. */
    emptiedAt: orNull(integer()),
  },
});

export type App = RowOf<typeof APP>;

export const appView = Type.Object({ id: Type.String(), name: Type.String(), createdAt: time });
type AppView = Static<typeof appView>;

export function viewApp(app: App): AppView {
  return show(appView, app);
}

/** Stands in a URL's path: lowercase letters, digits, hyphens and underscores, starting with a letter, 2 to 63 characters. */
const APP_ID = /^[a-z][a-z0-9_-]{1,62}$/;
const MAX_NAME_CHARS = 100;

interface NewApp {
  /** Explicit, such as `app_test`; absent: made from the name, with a number where it is taken. */
  id?: string | undefined;
  name: string;
  environments: readonly EnvironmentName[];
  nowMs: number;
}

/** Creates the app with its environments. Refuses with `invalid_input` or, for an explicit id, `name_taken`. */
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
        ? `The app ${app.id} was deleted and what it held is still being removed: choose another id, or this one again in a minute.`
        : `An app with the id ${app.id} exists: choose another id.`,
    );
  }
  const environments: Environment[] = [];
  for (const environment of input.environments) {
    environments.push(await ensureEnvironment(tx, app.id, environment, input.nowMs));
  }
  return { app, environments };
}

/** Gives the app another name; its id stays. Refuses with `not_found` and `invalid_input`. Answers it as it was and as it is. */
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

/** The app with this id, or null. */
export function findApp(tx: Reader, id: string): Promise<App | null> {
  return APP.get(tx, "WHERE id = $id AND deleted_at IS NULL", { id });
}

/** Every app, oldest first. */
export function listApps(tx: Reader): Promise<App[]> {
  return APP.all(tx, "WHERE deleted_at IS NULL ORDER BY created_at, id");
}

/** A page of the apps, newest first. */
export async function pageApps(tx: Reader, request: PageRequest): Promise<Page<AppView>> {
  return await pageByName(tx, APP, "id", null, request, viewApp, "deleted_at IS NULL");
}

async function chooseId(tx: Reader, explicit: string | undefined, name: string): Promise<string> {
  if (explicit !== undefined) {
    if (APP_ID.test(explicit)) return explicit;
    throw new Refusal(
      "invalid_input",
      "id is not valid, as it stands in every receiver URL: use 2 to 63 lowercase letters, digits, hyphens or underscores, starting with a letter.",
    );
  }
  const base = idFromName(name);
  for (let number = 1; ; number++) {
    const id = number === 1 ? base : `${base}-${number}`;
    if ((await APP.get(tx, "WHERE id = $id", { id })) === null) return id;
  }
}

/** "Büro & Söhne" is `buro-sohne`; a name without any Latin letter is `app`. */
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
