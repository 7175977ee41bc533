/**
 * Opens the API of a command's target. To change production a command must name it: the default profile is not enough. The command then says where it
 * acts.
 */
import { plain } from "../../../base/text.ts";
import { CommandFailure, type Input, UsageError } from "../command.ts";
import { readRunningUrl, withEnvironment } from "../data-directory.ts";
import type { World } from "../io.ts";
import { readDatabase, readDataDir } from "../service-option.ts";
import { gather, type Listing, readLimit, type TimeOf } from "../terminal/listing.ts";
import type { Api, Query } from "./api.ts";
import { findServer, type Remote } from "./remote.ts";
import {
  chooseTarget,
  formatRemote,
  formatSource,
  hasDataDirectory,
  remoteOfProfile,
  type ServerTarget,
} from "./target.ts";

interface Access {
  /** True if the command changes anything. */
  writes?: boolean;
}

/** Calls the API of the target. `access` is `"write"` if the command changes something. */
export async function withApi<Result>(
  access: "read" | "write",
  input: Input,
  world: World,
  work: (api: Api) => Promise<Result>,
): Promise<Result> {
  const target = chooseTarget(input, world);
  const writes = access === "write";
  if (target.kind !== "folder") return await work(await connect(target, input, world, { writes }));
  requireDataDirectory(input, world);
  // The local API is imported late, because a command that calls a server needs none of it.
  const { openLocalApi } = await import("./local-api.ts");
  return await withEnvironment(input, world, async (store, environment) =>
    work(await openLocalApi(store, environment, { input, world, writes })),
  );
}

/** Throws for a folder without a data directory, before anything is created there. */
function requireDataDirectory(input: Input, world: World): void {
  if (hasDataDirectory(input, world)) return;
  throw new CommandFailure(
    "not_found",
    `There is no data directory at ${readDataDir(input, world)}, and no profile. Name the server's folder with --data-dir, start a service with relay dev or relay serve, or sign in to a server with relay login.`,
  );
}

/** Reads the first items of a list, as many as --limit says. --since compares the field `time`. */
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

/** Returns the target server. Throws UsageError if the command names none. */
export async function requireServer(input: Input, world: World, access: Access = {}): Promise<Remote> {
  const target = chooseTarget(input, world, false);
  if (target.kind === "folder")
    throw new UsageError(
      "The command names no server: write its address with --url or RELAY_URL, or sign in with relay login and name its profile.",
    );
  return await connect(target, input, world, access);
}

/** Returns the target server, or the service that runs on the data directory. `keyName` names the command's key there. */
export async function requireServerOrService(
  input: Input,
  world: World,
  keyName: string,
  access: Access = {},
): Promise<Remote> {
  const target = chooseTarget(input, world);
  if (target.kind === "folder") {
    requireDataDirectory(input, world);
    const { connectLocalService } = await import("./local-service.ts");
    return await connectLocalService(input, world, keyName);
  }
  return await connect(target, input, world, access);
}

async function connect(
  target: ServerTarget,
  input: Input,
  world: World,
  { writes = false }: Access,
): Promise<Remote> {
  const remote =
    target.kind === "profile"
      ? remoteOfProfile(target.profile, world.patienceMs)
      : await findServer(target.url, await readKey(input, world), target.by, world.patienceMs);
  requireNamedEnvironment(remote, input);
  const changesProduction = writes && remote.environment === "production";
  if (changesProduction && target.by === "default")
    throw new UsageError(
      `${formatRemote(remote)} is production, and only the default profile names it. To change production, write --profile ${remote.profile}.`,
    );
  if (changesProduction) world.tell(`This command changes PRODUCTION: ${formatRemote(remote)}.`);
  else if (isUnexpected(target.by, input, world))
    world.tell(`Target: ${formatRemote(remote)}, from ${formatSource(target.by)}.`);
  return remote;
}

/** Reports whether the user may have another target in mind, because no flag names this one. */
function isUnexpected(by: ServerTarget["by"], input: Input, world: World): boolean {
  if (by === "RELAY_URL") return hasDataDirectory(input, world);
  return by === "default" || by === "RELAY_PROFILE";
}

/** Refuses with `wrong_environment` if --app or --environment names another one than the key's. */
function requireNamedEnvironment(remote: Remote, input: Input): void {
  for (const name of ["app", "environment"] as const) {
    const given = input.text(name);
    if (given === null || given === remote[name]) continue;
    const how =
      remote.profile === null
        ? "set RELAY_KEY to a key of that one"
        : "name its profile with --profile, or create one with relay login";
    throw new CommandFailure(
      "wrong_environment",
      `The key belongs to ${formatRemote(remote)}, but --${name} is ${plain(given)}: ${how}.`,
    );
  }
}

async function readKey(input: Input, world: World): Promise<string> {
  return (input.on("key-stdin") ? await world.readInput() : (world.env.RELAY_KEY ?? "")).trim();
}

/**
 * Formats the hint about a local change: a service reads another process's writes to SQLite once a second. The text is empty on PostgreSQL,
 * which notifies the service at once.
 */
export function formatPickupDelay({ isLocal }: Api, input: Input, world: World): string {
  if (!isLocal || readDatabase(input) !== null) return "";
  if (readRunningUrl(readDataDir(input, world)) === null) return "";
  return " The running service reads the change within a second.";
}
