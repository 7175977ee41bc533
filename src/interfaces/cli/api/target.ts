/**
 * Where a command looks and acts: a data directory on this machine, or one environment of a server. What is said wins over what is found: the
 * flags, then RELAY_URL with RELAY_KEY, then RELAY_PROFILE, then the data directory here, and only where there is none the default profile. A
 * change never reaches production because of where one happened to stand: production is named, and it is said where the change goes.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { plain } from "../../../base/text.ts";
import { COMMAND_LINE, formatActor } from "../../../platform/account/api-key.ts";
import { requireCommandKey } from "../../../platform/account/command-key.ts";
import { writeAudit } from "../../../platform/audit/audit.ts";
import { loadMasterKey } from "../../../platform/secret/master-key.ts";
import { Sealer } from "../../../platform/secret/seal.ts";
import { DataDirectoryTaken, lockDataDirectory } from "../../../store/sqlite/directory-lock.ts";
import { CommandFailure, type Input, type Option, UsageError } from "../command.ts";
import { APP, ENVIRONMENT, readRunningUrl, withEnvironment } from "../data-directory.ts";
import type { World } from "../io.ts";
import { DATA_DIR, DATABASE, readDatabase, readDataDir } from "../service-option.ts";
import { gather, type Listing, readLimit, type TimeOf } from "../terminal/listing.ts";
import type { Api, Query } from "./api.ts";
import { openLocalApi } from "./local-api.ts";
import { PROFILE, type Profile, readProfiles, requireProfile } from "./profile.ts";
import { findServer, Remote, readServerUrl } from "./remote.ts";

export const SERVER_URL: Option = {
  name: "url",
  value: "<url>",
  env: "RELAY_URL",
  otherwise: "the data directory's own service",
  help: "a server elsewhere; its secret key is read from RELAY_KEY",
};

/** Which environment, of a server or of a data directory here. */
export const ANYWHERE: readonly Option[] = [
  APP,
  ENVIRONMENT,
  PROFILE,
  SERVER_URL,
  { ...DATA_DIR, otherwise: ".relay where there is one, else the default profile" },
  DATABASE,
];

/** Which server, of a command that carries something to one. */
export const TARGET: readonly Option[] = [
  { ...PROFILE, otherwise: "the default one" },
  { ...SERVER_URL, otherwise: "none", help: "the server; its secret key is read from RELAY_KEY" },
  { name: "key-stdin", help: "read the secret key from standard input instead of RELAY_KEY" },
];

type Place =
  | { kind: "folder" }
  | { kind: "server"; url: string; by: "--url" | "RELAY_URL" }
  | { kind: "profile"; profile: Profile; by: "--profile" | "RELAY_PROFILE" | "default" };

/** Throws UsageError where two are named. `folder`: whether a data directory may be meant. */
function choosePlace(input: Input, world: World, folder = true): Place {
  const flags = ["profile", "url", input.given("data-dir") ? "data-dir" : "database"].filter((name) =>
    input.given(name),
  );
  if (flags.length > 1)
    throw new UsageError(`--${flags[0]} and --${flags[1]} name two places: write one of them.`);
  const [url, named] = [input.text("url"), input.text("profile")];
  if ((input.given("data-dir") || input.given("database")) && folder) return { kind: "folder" };
  if (input.given("url") && url !== null) return { kind: "server", url, by: "--url" };
  if (input.given("profile") && named !== null)
    return { kind: "profile", profile: requireProfile(world, named), by: "--profile" };
  // Without a key it names no place that could be looked at, and a data directory here goes on being meant.
  const keyed = Boolean(world.env.RELAY_KEY) || input.on("key-stdin");
  if (url !== null && (keyed || !folder || !isHere(input, world)))
    return { kind: "server", url, by: "RELAY_URL" };
  if (named !== null) return { kind: "profile", profile: requireProfile(world, named), by: "RELAY_PROFILE" };
  if (folder && isHere(input, world)) return { kind: "folder" };
  const held = readProfiles(world);
  const profile = held.profiles.find(({ name }) => name === held.default);
  return profile === undefined ? { kind: "folder" } : { kind: "profile", profile, by: "default" };
}

/** One that is named counts as there: that it is not is for the command to say. */
function isHere(input: Input, world: World): boolean {
  if (input.text("data-dir") !== null || input.text("database") !== null) return true;
  return existsSync(join(readDataDir(input, world), "relay.db"));
}

/** The profile that is meant, and by what; null: another place is. */
export function meantProfile(input: Input, world: World): { profile: Profile; from: string } | null {
  const place = choosePlace(input, world);
  if (place.kind !== "profile") return null;
  const { profile, by } = place;
  return {
    profile,
    from: by === "default" ? `profile ${profile.name}` : `profile ${profile.name}, by ${by}`,
  };
}

/** Where commands that name nothing look, for a person. */
export function sayPlace(input: Input, world: World): string {
  const place = choosePlace(input, world);
  if (place.kind === "folder")
    return isHere(input, world)
      ? sayData(input, world)
      : "nothing: there is no data directory and no profile";
  return place.kind === "server"
    ? `${place.url}, by ${place.by}`
    : `${describeRemote(remoteOf(place.profile))}, by ${sayBy(place.by)}`;
}

/** Where the rows of this machine's own are, for a person. */
function sayData(input: Input, world: World): string {
  const database = readDatabase(input);
  return database === null ? `the data directory ${readDataDir(input, world)}` : `the database ${database}`;
}

interface Doing {
  /** Whether the command changes anything. */
  writes?: boolean;
}

/** Calls the API of the environment that is meant, in the data directory or at a server. `"write"`: the command changes something. */
export async function withApi<Result>(
  access: "read" | "write",
  input: Input,
  world: World,
  work: (api: Api) => Promise<Result>,
): Promise<Result> {
  const place = choosePlace(input, world);
  const writes = access === "write";
  if (place.kind !== "folder") return await work(await reach(place, input, world, { writes }));
  if (!isHere(input, world))
    throw new CommandFailure(
      "not_found",
      `There is no data directory at ${readDataDir(input, world)}, and no profile: name the server's folder with --data-dir, start one with relay dev or relay serve, or sign in to a server elsewhere with relay login.`,
    );
  return await withEnvironment(input, world, async (store, environment) =>
    work(await openLocalApi(store, environment, { input, world, writes })),
  );
}

/** The first items of a list, as many as --limit says. `time`: the time that --since compares. */
export async function listItems<Item>(
  input: Input,
  world: World,
  path: string,
  query: Query,
  time?: TimeOf<Item>,
): Promise<Listing<Item>> {
  const asked = { limit: readLimit(input), time };
  return await withApi("read", input, world, (api) =>
    gather(input, world, (limit, cursor) => api.page<Item>(path, query, limit, cursor), asked),
  );
}

/** The server that is meant, of a command that carries something to one. Throws UsageError where none is named. */
export async function findTarget(input: Input, world: World, doing: Doing = {}): Promise<Remote> {
  const place = choosePlace(input, world, false);
  if (place.kind === "folder")
    throw new UsageError(
      "The server is not named: give its address with --url or RELAY_URL, or sign in with relay login and name its profile.",
    );
  return await reach(place, input, world, doing);
}

/** The server that is meant, else the service of the data directory. `name`: what the command's own key is called there. */
export async function findRemote(
  input: Input,
  world: World,
  name: string,
  doing: Doing = {},
): Promise<Remote> {
  const place = choosePlace(input, world);
  return place.kind === "folder"
    ? await findOwn(input, world, name)
    : await reach(place, input, world, doing);
}

async function reach(
  place: Exclude<Place, { kind: "folder" }>,
  input: Input,
  world: World,
  { writes = false }: Doing,
): Promise<Remote> {
  const remote =
    place.kind === "profile"
      ? remoteOf(place.profile, world.patienceMs)
      : await findServer(place.url, await readKey(input, world), place.by, world.patienceMs);
  requireMeant(remote, input);
  const isLive = remote.environment === "production";
  if (writes && isLive && place.by === "default")
    throw new UsageError(
      `${describeRemote(remote)} is production, and nothing but the default profile names it: write --profile ${remote.profile} to change something there.`,
    );
  if (writes && isLive) world.tell(`This acts on PRODUCTION: ${describeRemote(remote)}.`);
  else if (isSaid(place.by, input, world)) world.tell(`At ${describeRemote(remote)}, by ${sayBy(place.by)}.`);
  return remote;
}

type By = Exclude<Place, { kind: "folder" }>["by"];

/** Where it may not be what one had in mind. */
function isSaid(by: By, input: Input, world: World): boolean {
  return by === "default" || by === "RELAY_PROFILE" || (by === "RELAY_URL" && isHere(input, world));
}

function sayBy(by: By): string {
  return by === "default" ? "the default profile" : by;
}

/** A key is of one environment: another one that is named is not meant. */
function requireMeant(remote: Remote, input: Input): void {
  for (const name of ["app", "environment"] as const) {
    const meant = input.text(name);
    if (meant === null || meant === remote[name]) continue;
    const how =
      remote.profile === null
        ? "give a key of that one in RELAY_KEY"
        : "name its profile with --profile, or make one with relay login";
    throw new CommandFailure(
      "wrong_environment",
      `The key is of ${describeRemote(remote)}, and --${name} says ${plain(meant)}: ${how}.`,
    );
  }
}

async function readKey(input: Input, world: World): Promise<string> {
  return (input.on("key-stdin") ? await world.readInput() : (world.env.RELAY_KEY ?? "")).trim();
}

export function remoteOf({ name, url, app, environment, key }: Profile, patienceMs?: number): Remote {
  const origin = readServerUrl(url, `The address of the profile ${name}`);
  return new Remote({ url: origin, app, environment, key, profile: name, patienceMs });
}

/** `shop/production at https://relay.example.com (profile shop)`. */
export function describeRemote({
  url,
  app,
  environment,
  profile,
}: Pick<Remote, "url" | "app" | "environment" | "profile">): string {
  return plain(`${app}/${environment} at ${url}${profile === null ? "" : ` (profile ${profile})`}`);
}

async function findOwn(input: Input, world: World, name: string): Promise<Remote> {
  const dataDir = readDataDir(input, world);
  const sealer = new Sealer(await loadMasterKey(dataDir, world.env.RELAY_MASTER_KEY || null));
  return await withEnvironment(input, world, async (store, environment) => {
    const url = readRunningUrl(dataDir);
    if (url === null || !isHeld(dataDir, world))
      throw new CommandFailure(
        "service_not_running",
        `No service runs on ${dataDir}: start one with relay dev or relay serve, or name a server with --profile, or with RELAY_URL and RELAY_KEY.`,
      );
    const nowMs = world.clock.now();
    const digest = (text: string): Uint8Array => sealer.digest(text);
    const key = await store.write("dashboard", async (tx) => {
      const { token, made } = await requireCommandKey(tx, { environment, name, nowMs, digest });
      if (made !== null)
        await writeAudit(tx, {
          environmentId: environment.id,
          nowMs,
          by: formatActor(COMMAND_LINE),
          action: "key.created",
          target: `key:${made.id}`,
          after: { kind: made.kind, name: made.name, hint: made.hint, origins: made.origins },
        });
      return token;
    });
    return new Remote({ url, key, app: environment.appId, environment: environment.name, profile: null });
  });
}

/** Whether a service runs there: the note of one that was killed stays, and whoever listens there now is to get no key. */
function isHeld(dataDir: string, world: World): boolean {
  try {
    lockDataDirectory(dataDir, "a relay command", world.clock.now()).release();
    return false;
  } catch (error) {
    if (error instanceof DataDirectoryTaken) return true;
    throw error;
  }
}

/** Added to what is said of a change here: a service looks once a second for what another process wrote into its file; PostgreSQL tells it at once. */
export function sayFoundSoon({ isLocal }: Api, input: Input, world: World): string {
  if (!isLocal || readDatabase(input) !== null || readRunningUrl(readDataDir(input, world)) === null)
    return "";
  return " The service that runs here finds that within a second.";
}
