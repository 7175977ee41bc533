/**
 * Decides what a command acts on: a data directory on this machine, or one environment of a server. The order is: flags, then RELAY_URL with
 * RELAY_KEY, then RELAY_PROFILE, then a data directory here, then the default profile.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { plain } from "../../../base/text.ts";
import { type Input, type Option, UsageError } from "../command.ts";
import { APP, ENVIRONMENT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { DATA_DIR, DATABASE, readDatabase, readDataDir } from "../service-option.ts";
import { PROFILE, type Profile, readProfiles, requireProfile } from "./profile.ts";
import { Remote, readServerUrl } from "./remote.ts";

export const SERVER_URL: Option = {
  name: "url",
  value: "<url>",
  env: "RELAY_URL",
  otherwise: "the data directory's own service",
  help: "a server's address; set its key in RELAY_KEY",
};

/** Options of a command that works on a data directory and on a server. */
export const ANYWHERE: readonly Option[] = [
  APP,
  ENVIRONMENT,
  PROFILE,
  SERVER_URL,
  { ...DATA_DIR, otherwise: ".relay if it exists, else the default profile" },
  DATABASE,
];

/** Options of a command that works on a server only. */
export const TARGET: readonly Option[] = [
  { ...PROFILE, otherwise: "the default profile" },
  { ...SERVER_URL, otherwise: "none", help: "the server's address; set its key in RELAY_KEY" },
  { name: "key-stdin", help: "read the secret key from standard input instead of RELAY_KEY" },
];

/** The kind of server target. `by` is the flag, the variable or the default that names it. */
export type ServerTarget =
  | { kind: "server"; url: string; by: "--url" | "RELAY_URL" }
  | { kind: "profile"; profile: Profile; by: "--profile" | "RELAY_PROFILE" | "default" };

type Target = { kind: "folder" } | ServerTarget;

/** Chooses the target. Throws UsageError if flags name two. `allowFolder` allows a data directory. */
export function chooseTarget(input: Input, io: Io, allowFolder = true): Target {
  requireOneTarget(input);
  const [url, profileName] = [input.text("url"), input.text("profile")];
  if ((input.given("data-dir") || input.given("database")) && allowFolder) return { kind: "folder" };
  if (input.given("url") && url !== null) return { kind: "server", url, by: "--url" };
  if (input.given("profile") && profileName !== null)
    return { kind: "profile", profile: requireProfile(io, profileName), by: "--profile" };
  const isFolder = allowFolder && hasDataDirectory(input, io);
  // RELAY_URL without a key cannot be called, so a data directory takes precedence over it.
  const hasKey = Boolean(io.env.RELAY_KEY) || input.on("key-stdin");
  if (url !== null && (hasKey || !isFolder)) return { kind: "server", url, by: "RELAY_URL" };
  if (profileName !== null)
    return { kind: "profile", profile: requireProfile(io, profileName), by: "RELAY_PROFILE" };
  if (isFolder) return { kind: "folder" };
  return findDefaultProfile(io) ?? { kind: "folder" };
}

function requireOneTarget(input: Input): void {
  const names = ["profile", "url", input.given("data-dir") ? "data-dir" : "database"];
  const flags = names.filter((name) => input.given(name));
  if (flags.length > 1)
    throw new UsageError(`--${flags[0]} and --${flags[1]} name two targets: write one of them.`);
}

function findDefaultProfile(io: Io): ServerTarget | null {
  const stored = readProfiles(io);
  const profile = stored.profiles.find(({ name }) => name === stored.default);
  return profile === undefined ? null : { kind: "profile", profile, by: "default" };
}

/** Reports whether a data directory exists, or an option names one. The command that opens it reports a missing one. */
export function hasDataDirectory(input: Input, io: Io): boolean {
  if (input.text("data-dir") !== null || input.text("database") !== null) return true;
  return existsSync(join(readDataDir(input, io), "relay.db"));
}

/** Returns the profile that is the target, and in words its source. Returns null for any other target. */
export function findTargetProfile(input: Input, io: Io): { profile: Profile; from: string } | null {
  const target = chooseTarget(input, io);
  if (target.kind !== "profile") return null;
  const { profile, by } = target;
  const from = `profile ${profile.name}`;
  return { profile, from: by === "default" ? from : `${from}, by ${by}` };
}

/** Describes the target of a command without flags. */
export function formatTarget(input: Input, io: Io): string {
  const target = chooseTarget(input, io);
  switch (target.kind) {
    case "server":
      return `${target.url}, from ${target.by}`;
    case "profile":
      return `${formatRemote(remoteOfProfile(target.profile))}, from ${formatSource(target.by)}`;
    case "folder":
      return hasDataDirectory(input, io)
        ? formatFolder(input, io)
        : "nothing, because there is no data directory and no profile";
  }
}

function formatFolder(input: Input, io: Io): string {
  const database = readDatabase(input);
  return database === null ? `the data directory ${readDataDir(input, io)}` : `the database ${database}`;
}

export function formatSource(by: ServerTarget["by"]): string {
  return by === "default" ? "the default profile" : by;
}

/** Returns the server of a profile. Throws UsageError if the profile's address is no origin that may receive a key. */
export function remoteOfProfile({ name, url, app, environment, key }: Profile, patienceMs?: number): Remote {
  const origin = readServerUrl(url, `The address of the profile ${name}`);
  return new Remote({ url: origin, app, environment, key, profile: name, patienceMs });
}

/** Formats a server, such as `shop/production at https://relay.example.com (profile shop)`. */
export function formatRemote({
  url,
  app,
  environment,
  profile,
}: Pick<Remote, "url" | "app" | "environment" | "profile">): string {
  return plain(`${app}/${environment} at ${url}${profile === null ? "" : ` (profile ${profile})`}`);
}
