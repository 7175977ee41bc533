/** Shows what each release changed (`relay changes`), from the feed that the service itself serves. */
import { writeJson } from "../../base/json.ts";
import { listChanges, writeChanges } from "../../base/release/feed.ts";
import type { Release } from "../../base/release/release.ts";
import { writeQuery } from "./api/api.ts";
import { requireProfile } from "./api/profile.ts";
import { askServer, readServerUrl } from "./api/remote.ts";
import { type Command, type Input, UsageError } from "./command.ts";
import { JSON_OUTPUT } from "./data-directory.ts";
import type { Io } from "./io.ts";

export const changes: Command = {
  words: ["changes"],
  summary: "show the changes of each release",
  details:
    "The command shows the changes of this program. With --profile or --url it shows those of a server, which may run another version.",
  options: [
    { name: "since", value: "<version>", help: "only later releases than this one" },
    { name: "profile", value: "<name>", help: "show the changes of this profile's server", of: "profile" },
    { name: "url", value: "<url>", help: "show the changes of the server at this address" },
    JSON_OUTPUT,
  ],
  examples: ["relay changes", "relay changes --since 0.5.0"],
  async run(input, io) {
    const since = input.text("since") ?? undefined;
    const releases = (await readRemoteChanges(input, io, since)) ?? listChanges(since);
    if (releases === null)
      throw new UsageError(`--since is ${JSON.stringify(since)}: write a version such as 0.1.0.`);
    io.print(input.on("json") ? writeJson({ releases }, 2) : writeChanges(releases).trimEnd());
  },
};

/** Reads the feed of a server. The feed is public, so the command sends no key. */
async function readRemoteChanges(input: Input, io: Io, since: string | undefined) {
  const name = input.text("profile");
  const text = name === null ? input.text("url") : requireProfile(io, name).url;
  if (text === null) return null;
  const server = { url: readServerUrl(text), key: null, profile: null };
  const path = `/changes.json${writeQuery({ since })}`;
  return (await askServer<{ releases: Release[] }>(server, "GET", path)).releases;
}
