/** Lists the versions of a relay's definition, and restores an earlier one (`relay relays history`, `restore`). */
import { writeJson } from "../../../base/json.ts";
import { tellWarnings } from "../../../base/refusal.ts";
import type { RelayVersion } from "../../../rules/relay/relay-version.ts";
import type { RelayView, SavedRelay } from "../../../rules/relay/relay-view.ts";
import { listItems, withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import { type Command, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { BASE_URL } from "../service-option.ts";
import { LIMIT, SINCE } from "../terminal/listing.ts";
import { sayList } from "../terminal/terminal.ts";
import { NAME } from "./relays.ts";
import { pathOf } from "./request.ts";

export const relaysHistory: Command = {
  words: ["relays", "history"],
  summary: "the versions of its definition, and what changed",
  details:
    "When, by whom, and what differs from the version before. With --json each version has its whole definition, and the one before it.",
  arguments: [NAME],
  options: [SINCE, LIMIT, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay relays history orders"],
  async run(input, world) {
    const name = input.first();
    const time = { of: (one: RelayVersion) => one.at, ordered: true };
    const versions = await listItems<RelayVersion>(input, world, `${pathOf(name)}/versions`, {}, time);
    await sayList(input, world, versions, {
      columns: [
        { heading: "VERSION", value: ({ version }) => String(version), right: true },
        { heading: "AT", value: ({ at }) => at },
        {
          heading: "BY",
          value: ({ actor, actorName }) => (actorName === null ? actor : `key ${actorName}`),
        },
        {
          heading: "FROM",
          value: ({ origin, restores }) => (restores === undefined ? origin : `version ${restores}`),
        },
        {
          heading: "CHANGED",
          value: ({ before, changed }) => (before === null ? "made" : changed.join(", ")),
        },
      ],
      none: "There is no version of it in the audit.",
    });
  },
};

export const relaysRestore: Command = {
  words: ["relays", "restore"],
  summary: "save an earlier version again, as a new one",
  details: "It is checked like any other save: what it names must exist here.",
  arguments: [NAME],
  options: [
    { name: "to", value: "<version>", help: "the version, as relay relays history lists it" },
    JSON_OUTPUT,
    BASE_URL,
    ...ANYWHERE,
  ],
  examples: ["relay relays restore orders --to 3"],
  async run(input, world) {
    const name = input.first();
    const restores = input.number("to", { from: 1, to: Number.MAX_SAFE_INTEGER });
    if (restores === null)
      throw new UsageError("Name the version with --to: relay relays history lists them.");
    const saved = await withApi<SavedRelay>("write", input, world, async (api) => {
      const path = pathOf(name);
      const { relay } = await api.request<{ relay: RelayView }>("GET", path);
      return await api.request<SavedRelay>("POST", `${path}/restore`, {
        restores,
        version: relay.version,
      });
    });
    if (input.on("json")) world.say(writeJson(saved, 2));
    world.tell(`${name} is at version ${saved.relay.version} now, which says what version ${restores} said.`);
    for (const warning of tellWarnings(saved.warnings)) world.tell(`Warning: ${warning}`);
  },
};
