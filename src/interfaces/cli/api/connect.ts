/**
 * Opens the API of a command's target. To change production a command must name it: the default profile is not enough. The command then says where it
 * acts.
 */
import { plain } from "../../../base/text.ts";
import { CommandFailure, type Input, UsageError } from "../command.ts";
import { readRunningUrl, withEnvironment } from "../data-directory.ts";
import type { Io } from "../io.ts";
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
  io: Io,
  work: (api: Api) => Promise<Result>,
): Promise<Result> {
  const target = chooseTarget(input, io);
  const writes = access === "write";
  if (target.kind !== "folder") return await work(await connect(target, input, io, { writes }));
  requireDataDirectory(input, io);
  // The local API is imported late, because a command that calls a server needs none of it.
  const { openLocalApi } = await import("./local-api.ts");
  return await withEnvironment(input, io, async (store, environment) =>
    work(openLocalApi(store, environment, { input, io, writes })),
  );
}

/** Throws for a folder without a data directory, before anything is created there. */
function requireDataDirectory(input: Input, io: Io): void {
  if (hasDataDirectory(input, io)) return;
  throw new CommandFailure(
    "not_found",
    `There is no data directory at ${readDataDir(input, io)}, and no profile. Name the server's folder with --data-dir, start a service with relay dev or relay serve, or sign in to a server with relay login.`,
  );
}

/** Reads the first items of a list, as many as --limit says. --since compares the field `time`. */
export async function listItems<Item>(
  input: Input,
  io: Io,
  path: string,
  query: Query,
  time?: TimeOf<Item>,
): Promise<Listing<Item>> {
  const asked = { limit: readLimit(input), time };
  return await withApi("read", input, io, (api) =>
    gather(input, io, (limit, cursor) => api.page<Item>(path, query, limit, cursor), asked),
  );
}

/** Returns the target server. Throws UsageError if the command names none. */
export async function requireServer(input: Input, io: Io, access: Access = {}): Promise<Remote> {
  const target = chooseTarget(input, io, false);
  if (target.kind === "folder")
    throw new UsageError(
      "The command names no server: write its address with --url or RELAY_URL, or sign in with relay login and name its profile.",
    );
  return await connect(target, input, io, access);
}

/** Returns the target server, or the service that runs on the data directory. `keyName` names the command's key there. */
export async function requireServerOrService(
  input: Input,
  io: Io,
  keyName: string,
  access: Access = {},
): Promise<Remote> {
  const target = chooseTarget(input, io);
  if (target.kind === "folder") {
    requireDataDirectory(input, io);
    const { connectLocalService } = await import("./local-service.ts");
    return await connectLocalService(input, io, keyName);
  }
  return await connect(target, input, io, access);
}

async function connect(
  target: ServerTarget,
  input: Input,
  io: Io,
  { writes = false }: Access,
): Promise<Remote> {
  const remote =
    target.kind === "profile"
      ? remoteOfProfile(target.profile, io.patienceMs)
      : await findServer(target.url, await readKey(input, io), target.by, io.patienceMs);
  requireNamedEnvironment(remote, input);
  const changesProduction = writes && remote.environment === "production";
  if (changesProduction && target.by === "default")
    throw new UsageError(
      `${formatRemote(remote)} is production, and only the default profile names it. To change production, write --profile ${remote.profile}.`,
    );
  if (changesProduction) io.inform(`This command changes PRODUCTION: ${formatRemote(remote)}.`);
  else if (isUnexpected(target.by, input, io))
    io.inform(`Target: ${formatRemote(remote)}, from ${formatSource(target.by)}.`);
  return remote;
}

/** Reports whether the user may have another target in mind, because no flag names this one. */
function isUnexpected(by: ServerTarget["by"], input: Input, io: Io): boolean {
  if (by === "RELAY_URL") return hasDataDirectory(input, io);
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

async function readKey(input: Input, io: Io): Promise<string> {
  return (input.on("key-stdin") ? await io.readInput() : (io.env.RELAY_KEY ?? "")).trim();
}

/**
 * Formats the hint about a local change: a service reads another process's writes to SQLite once a second. The text is empty on PostgreSQL,
 * which notifies the service at once.
 */
export function formatPickupDelay({ isLocal }: Api, input: Input, io: Io): string {
  if (!isLocal || readDatabase(input) !== null) return "";
  if (readRunningUrl(readDataDir(input, io)) === null) return "";
  return " The running service reads the change within a second.";
}
