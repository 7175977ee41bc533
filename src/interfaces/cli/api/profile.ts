/**
 * Stores profiles: the servers that `relay login` signed this user in to, each with its key. One file in the user's configuration folder
 * holds them, and no other user can read it. This module sends no request.
 */
import { accessSync, chmodSync, constants, lstatSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileErrorCode, writeOwnFile } from "../../../base/durable-file.ts";
import { isJsonObject, type JsonObject } from "../../../base/json.ts";
import { findNearestName } from "../../../base/text.ts";
import { CommandFailure, type Option, UsageError } from "../command.ts";
import type { Io } from "../io.ts";

export const PROFILE: Option = {
  name: "profile",
  value: "<name>",
  env: "RELAY_PROFILE",
  otherwise: "none; the default profile if there is no data directory here",
  help: "a server that relay login signed in to",
  of: "profile",
};

export interface Profile {
  name: string;
  /** The server's origin, without a trailing slash. */
  url: string;
  app: string;
  environment: string;
  key: string;
  /** The owner to whom the key belongs. */
  owner: string;
  /** The time when the key expires. */
  endsAt: string;
}

interface Profiles {
  /** The name of the profile that a command uses if it names none. */
  default: string | null;
  profiles: Profile[];
}

const FOLDER = "relay";
const FILE = "profiles.json";
const MAX_FILE_BYTES = 1024 * 1024;
const MAX_PROFILES = 100;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const OTHERS = 0o077;
const FIELDS = ["url", "app", "environment", "key", "owner", "endsAt"] as const;

/** Returns the path of the profile file, or null if this user has no configuration folder. */
export function profilePath({ env, system }: Io): string | null {
  const folder = system.settingsFolder(env);
  return folder === null ? null : join(folder, FOLDER, FILE);
}

/** Throws UsageError. */
export function checkProfileName(name: string): string {
  if (NAME.test(name)) return name;
  throw new UsageError(
    `--profile is ${JSON.stringify(name)}: write 1 to 63 letters, digits, dots, hyphens or underscores, such as shop-production.`,
  );
}

/** Returns the part of a key that may be shown, as in the dashboard. */
export function hintOf(key: string): string {
  return `${/^[a-z]+_[a-z]+_/.exec(key)?.[0] ?? ""}…${key.slice(-4)}`;
}

/** Reads the profiles. If other users can read the file, it removes their access and reports that. */
export function readProfiles(io: Io): Profiles {
  const path = profilePath(io);
  if (path === null || !isThere(path)) return { default: null, profiles: [] };
  if (io.system.hasModes) keepOwn(path, io);
  const held = parse(readFileSync(path, "utf8"), path);
  const first = held.default;
  return { ...held, default: held.profiles.some(({ name }) => name === first) ? first : null };
}

/** Finds the profile of this environment of this server. */
export function findProfileOf(
  io: Io,
  { url, app, environment }: Pick<Profile, "url" | "app" | "environment">,
): Profile | null {
  const isSame = (one: Profile): boolean =>
    one.url === url && one.app === app && one.environment === environment;
  return readProfiles(io).profiles.find(isSame) ?? null;
}

/** Returns the profile of this name. Fails with the names that exist. */
export function requireProfile(io: Io, name: string): Profile {
  const { profiles } = readProfiles(io);
  const found = profiles.find((one) => one.name === name);
  if (found !== undefined) return found;
  const names = profiles.map((one) => one.name);
  const near = findNearestName(name, names);
  const known =
    names.length === 0
      ? "there is no profile yet"
      : near === null
        ? `there are ${names.join(", ")}`
        : `did you mean ${near}?`;
  throw new CommandFailure(
    "not_found",
    `There is no profile ${JSON.stringify(name)} (${known}): relay login --profile creates one.`,
  );
}

/** Fails if a profile cannot be stored, before the command creates a key that would be lost. */
export function requireProfileFile(io: Io): string {
  const path = profilePath(io);
  if (path === null)
    throw new CommandFailure(
      "file_unusable",
      "There is no folder for the profile: set HOME or XDG_CONFIG_HOME.",
    );
  readProfiles(io);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  accessSync(dirname(path), constants.W_OK);
  return path;
}

/** Stores the profile and replaces one of the same name. It becomes the default with `isDefault` or if there is none yet. */
export function saveProfile(io: Io, profile: Profile, isDefault = false): void {
  const path = requireProfileFile(io);
  const before = readProfiles(io);
  const profiles = [...before.profiles.filter(({ name }) => name !== profile.name), profile];
  if (profiles.length > MAX_PROFILES)
    throw new CommandFailure(
      "invalid_input",
      `There are ${MAX_PROFILES} profiles, which is the limit: remove one with relay logout.`,
    );
  write(path, io, { default: isDefault ? profile.name : (before.default ?? profile.name), profiles });
}

/** Removes the profile. If it was the default, there is no default until a login names one, so no command acts on a place that you did not choose. */
export function removeProfile(io: Io, name: string): void {
  const path = profilePath(io);
  if (path === null) return;
  const before = readProfiles(io);
  const profiles = before.profiles.filter((one) => one.name !== name);
  write(path, io, { default: before.default === name ? null : before.default, profiles });
}

function write(path: string, { system }: Io, { default: first, profiles }: Profiles): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (system.hasModes) chmodSync(folder, 0o700);
  const byName = Object.fromEntries(profiles.map(({ name, ...rest }) => [name, rest]));
  writeOwnFile(path, `${JSON.stringify({ default: first, profiles: byName }, null, 2)}\n`, { replace: true });
}

function isThere(path: string): boolean {
  try {
    const found = lstatSync(path);
    // A symbolic link may point anywhere, reading a pipe may never return, and a device has no end.
    if (found.isFile() && found.size <= MAX_FILE_BYTES) return true;
  } catch (error) {
    if (fileErrorCode(error) === "ENOENT" || fileErrorCode(error) === "ENOTDIR") return false;
    throw error;
  }
  throw unusable(path, "it is not a regular file of at most 1 MiB");
}

/** Requires that this user owns the file and its folder, and removes other users' access. The keys in the file give access to servers. */
function keepOwn(path: string, io: Io): void {
  const ownUid = process.getuid?.();
  for (const [place, kept] of [
    [dirname(path), 0o700],
    [path, 0o600],
  ] as const) {
    const { mode, uid } = lstatSync(place);
    if (ownUid !== undefined && uid !== ownUid) throw unusable(path, `${place} belongs to another user`);
    if ((mode & OTHERS) === 0) continue;
    chmodSync(place, kept);
    io.inform(
      `Other users of this machine could open ${place}. Only you can open it now (mode ${kept.toString(8)}). If another user may have read it, run relay logout and relay login.`,
    );
  }
}

function parse(text: string, path: string): Profiles {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {}
  if (!isJsonObject(value) || !isJsonObject(value.profiles ?? null)) throw unusable(path, "it is damaged");
  const profiles = Object.entries(value.profiles as JsonObject).map(([name, entry]): Profile => {
    if (!isJsonObject(entry) || !NAME.test(name)) throw unusable(path, "it is damaged");
    const profile: Profile = { name, url: "", app: "", environment: "", key: "", owner: "", endsAt: "" };
    for (const field of FIELDS) {
      const one = entry[field];
      if (typeof one !== "string") throw unusable(path, `the profile ${name} has no ${field}`);
      profile[field] = one;
    }
    return profile;
  });
  return { default: typeof value.default === "string" ? value.default : null, profiles };
}

function unusable(path: string, why: string): CommandFailure {
  return new CommandFailure(
    "file_unusable",
    `${path} cannot be used (${why}): remove it and run relay login. Revoke its keys in the dashboard's Settings, under Keys.`,
  );
}
