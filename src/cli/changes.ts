/** `relay changes`: what each release changed, from the feed that the service itself serves. */
import { writeJson } from "../ground/json.ts";
import { listChanges, writeChanges } from "../release/feed.ts";
import { type Command, UsageError } from "./command.ts";
import { JSON_OUTPUT } from "./data-directory.ts";

export const changes: Command = {
  words: ["changes"],
  summary: "what each release changed",
  options: [{ name: "since", value: "<version>", help: "only releases after this one" }, JSON_OUTPUT],
  async run(input, world) {
    const since = input.text("since") ?? undefined;
    const releases = listChanges(since);
    if (releases === null)
      throw new UsageError(`--since is ${JSON.stringify(since)}: write a version such as 0.1.0.`);
    world.say(input.on("json") ? writeJson({ releases }, 2) : writeChanges(releases).trimEnd());
  },
};
