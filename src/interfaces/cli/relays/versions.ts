/** Lists the versions of a relay's definition, and restores an earlier one (`relay relays history`, `restore`). */
import { writeJson } from "../../../base/json.ts";
import { listMessages } from "../../../base/refusal.ts";
import { plain } from "../../../base/text.ts";
import type { RelayVersion } from "../../../rules/relay/relay-version.ts";
import type { RelayView, SavedRelay } from "../../../rules/relay/relay-view.ts";
import { listItems, withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import { type Command, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { BASE_URL } from "../service-option.ts";
import { formatCommit } from "../sync/plan-lines.ts";
import { LIMIT, SINCE } from "../terminal/listing.ts";
import { printList } from "../terminal/terminal.ts";
import { NAME } from "./relays.ts";
import { pathOf } from "./request.ts";

export const relaysHistory: Command = {
  words: ["relays", "history"],
  summary: "list the versions of a relay, and what changed",
  details:
    "For each version: when it was saved, by whom, and what it changed. With --json, each version has its whole definition and the previous one.",
  arguments: [NAME],
  options: [SINCE, LIMIT, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay relays history orders"],
  async run(input, io) {
    const name = input.first();
    const time = { of: (one: RelayVersion) => one.at, ordered: true };
    const versions = await listItems<RelayVersion>(input, io, `${pathOf(name)}/versions`, {}, time);
    await printList(input, io, versions, {
      columns: [
        { heading: "VERSION", value: ({ version }) => String(version), right: true },
        { heading: "AT", value: ({ at }) => at },
        {
          heading: "BY",
          value: ({ actor, actorName }) => (actorName === null ? actor : `key ${actorName}`),
        },
        {
          heading: "FROM",
          value: ({ origin, commit, restores }) => {
            if (restores !== undefined) return `version ${restores}`;
            return commit === undefined ? origin : plain(formatCommit(commit));
          },
        },
        {
          heading: "CHANGED",
          value: ({ before, changed }) => (before === null ? "created" : changed.join(", ")),
        },
      ],
      none: "The audit log has no version of this relay.",
    });
  },
};

export const relaysRestore: Command = {
  words: ["relays", "restore"],
  summary: "restore an earlier version as a new version",
  details: "Relay checks it like any other save: everything that it names must exist in this environment.",
  arguments: [NAME],
  options: [
    { name: "to", value: "<version>", help: "the number of the version, as relay relays history lists it" },
    JSON_OUTPUT,
    BASE_URL,
    ...ANYWHERE,
  ],
  examples: ["relay relays restore orders --to 3"],
  async run(input, io) {
    const name = input.first();
    const restores = input.number("to", { from: 1, to: Number.MAX_SAFE_INTEGER });
    if (restores === null)
      throw new UsageError(
        "--to is missing: name the version to restore. relay relays history lists the versions.",
      );
    const saved = await withApi<SavedRelay>("write", input, io, async (api) => {
      const path = pathOf(name);
      const { relay } = await api.request<{ relay: RelayView }>("GET", path);
      return await api.request<SavedRelay>("POST", `${path}/restore`, {
        restores,
        version: relay.version,
      });
    });
    if (input.on("json")) io.print(writeJson(saved, 2));
    io.inform(
      `${name} is now at version ${saved.relay.version}, with the definition of version ${restores}.`,
    );
    for (const warning of listMessages(saved.warnings)) io.inform(`Warning: ${warning}`);
  },
};
