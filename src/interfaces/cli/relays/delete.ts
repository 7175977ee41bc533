/** Deletes a relay (`relay relays delete`), as the dashboard's Delete does. It first shows what the deletion removes, and asks for the name again. */
import { writeJson } from "../../../base/json.ts";
import type { Warning } from "../../../base/refusal.ts";
import type { RelayView } from "../../../rules/relay/relay-view.ts";
import { formatPickupDelay, withApi } from "../api/connect.ts";
import type { Command, Input } from "../command.ts";
import type { World } from "../io.ts";
import { requireSame, requireYes } from "../terminal/confirm.ts";
import { NAME, OF_RELAY } from "./relays.ts";
import { pathOf } from "./request.ts";

interface Deleted {
  relay: RelayView;
  warnings: Warning[];
  isLocal: boolean;
  foundSoon: string;
}

export const relaysDelete: Command = {
  words: ["relays", "delete"],
  summary: "delete a relay with its secrets, for good",
  details:
    "A receiver's URL answers 404 at once, so its sender's calls are lost; to let them wait instead, relay relays pause. What still waits ends failed; its events stay for 30 days. A relay that a sync or a promote brought comes back with the next one as long as it stands where it came from; in local development the file goes too.",
  arguments: [NAME],
  options: [
    {
      name: "confirm",
      value: "<name>",
      help: "the relay's name once more, which deletes without asking; without it a terminal is asked",
    },
    ...OF_RELAY,
  ],
  examples: ["relay relays delete orders --confirm orders"],
  async run(input, world) {
    const name = input.first();
    requireSame(input, "relay", name);
    const done = await withApi<Deleted>("write", input, world, async (api) => {
      const isLocal = api.environment === "local";
      const { relay } = await api.request<{ relay: RelayView }>("GET", pathOf(name));
      await askFirst(input, world, relay, isLocal);
      const { warnings = [] } = await api.request<{ warnings?: Warning[] }>("DELETE", pathOf(name));
      return { relay, warnings, isLocal, foundSoon: formatPickupDelay(api, input, world) };
    });
    const { relay, warnings, isLocal, foundSoon } = done;
    if (input.on("json")) world.say(writeJson({ deleted: name, warnings }, 2));
    for (const { message } of warnings) world.tell(`Warning: ${message}`);
    world.tell(`${name} is deleted: ${sayConsequence(relay, isLocal)}${foundSoon}`);
  },
};

async function askFirst(input: Input, world: World, relay: RelayView, isLocal: boolean): Promise<void> {
  if (input.given("confirm")) return;
  const { name } = relay;
  world.tell(`${name} would go: ${sayConsequence(relay, isLocal)}`);
  const line = `relay relays delete ${name} --confirm ${name}`;
  await requireYes(world, { question: `Delete ${name} for good?`, undone: "Nothing was deleted", line });
}

function sayConsequence({ name, trigger, origin, last24h }: RelayView, isLocal: boolean): string {
  const stops =
    trigger === "receiver"
      ? "its receiver URL answers 404, so its sender's calls are lost."
      : "it never runs again.";
  const { waiting } = last24h;
  const waits = `What still waits ends failed${waiting === 0 ? "" : ` (${waiting} of the last 24 hours)`}.`;
  const again = isLocal ? ` Its file relays/${name}.json goes with it.` : sayAgain(origin);
  return `${stops} ${waits} Its secrets are permanently removed; its events stay for 30 days.${again}`;
}

/** Describes what would create the relay again. */
function sayAgain({ kind, promotedFrom }: RelayView["origin"]): string {
  if (promotedFrom !== undefined)
    return ` It was promoted from ${promotedFrom}: as long as it is there, the next relay promote makes it again.`;
  return kind === "file"
    ? " It came from a file: as long as that is there, the next relay sync makes it again."
    : "";
}
