/**
 * Finds existing names for completion and for "did you mean": relays, profiles, apps. A search waits at most a second and ends without
 * names after an error. It changes nothing and does not migrate a database of another version.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { waitAtMost } from "../../../base/clock.ts";
import { Refusal } from "../../../base/refusal.ts";
import { findNearestName } from "../../../base/text.ts";
import { listApps } from "../../../platform/account/app.ts";
import { SCHEMA_VERSION } from "../../../store/migrate/migrations.ts";
import { openDatabaseFile, readSchemaVersion } from "../../../store/sqlite/database-file.ts";
import { withApi } from "../api/connect.ts";
import { readProfiles } from "../api/profile.ts";
import { type Command, CommandFailure, type Input, type NameKind } from "../command.ts";
import { withStore } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { readDataDir } from "../service-option.ts";

const MOMENT_MS = 1_000;
const MAX_NAMES = 200;

/** Returns the names of this kind at the command's target, or none if they are not available at once. */
export async function findNames(kind: NameKind, input: Input, io: Io): Promise<string[]> {
  const silent: Io = { ...io, inform: () => undefined, patienceMs: MOMENT_MS };
  let names: string[] = [];
  const read = readNames(kind, input, silent).then(
    (found) => {
      names = found;
    },
    () => undefined,
  );
  await waitAtMost(io.clock, MOMENT_MS, read);
  return names;
}

async function readNames(kind: NameKind, input: Input, io: Io): Promise<string[]> {
  if (kind === "profile") return readProfiles(io).profiles.map(({ name }) => name);
  if (kind !== "relay" && kind !== "app") return [];
  if (!(await isOfThisVersion(input, io))) return [];
  if (kind === "app")
    return await withStore(input, io, async (store) =>
      (await store.read((tx) => listApps(tx))).map(({ id }) => id),
    );
  return await withApi("read", input, io, async (api) =>
    (await api.page<{ name: string }>("/relays", {}, MAX_NAMES, null)).items.map(({ name }) => name),
  );
}

/** Reports whether the database has this version's schema. A missing database counts too, because the target may be elsewhere. */
async function isOfThisVersion(input: Input, io: Io): Promise<boolean> {
  const file = join(readDataDir(input, io), "relay.db");
  if (!existsSync(file)) return true;
  using database = openDatabaseFile(file);
  return (await readSchemaVersion(database)) === SCHEMA_VERSION;
}

/** Reports a filter's name that does not exist, with the likely one: "There is no relay chekout: did you mean checkout?" */
export async function printUnknownName(input: Input, io: Io): Promise<void> {
  for (const { kind, name } of input.named()) {
    const near = await findNear(kind, name, input, io);
    if (near !== null) io.inform(`There is no ${kind} ${JSON.stringify(name)}: did you mean ${near}?`);
  }
}

/** Adds the name that the user probably meant to a `not_found` error. */
export async function withNearName(
  error: unknown,
  { arguments: wanted = [] }: Command,
  input: Input,
  io: Io,
): Promise<unknown> {
  const isRefusal = error instanceof Refusal;
  if (!isRefusal && !(error instanceof CommandFailure)) return error;
  if (error.code !== "not_found" || error.message.includes("did you mean")) return error;
  const positional = wanted.flatMap(({ of }, at) => {
    const name = input.positionals[at];
    return typeof of === "string" && name !== undefined ? [{ kind: of, name }] : [];
  });
  for (const { kind, name } of [...positional, ...input.named()]) {
    const near = await findNear(kind, name, input, io);
    if (near === null) continue;
    const message = `${error.message} Did you mean ${near}?`;
    return isRefusal
      ? new Refusal(error.code, message, error.extra)
      : new CommandFailure(error.code, message);
  }
  return error;
}

async function findNear(kind: NameKind, name: string, input: Input, io: Io): Promise<string | null> {
  const known = await findNames(kind, input, io);
  return known.includes(name) ? null : findNearestName(name, known);
}
