/** Deletes a relay (`relay relays delete`), as the dashboard's Delete does. It first shows what the deletion removes, and asks for the name again. */
import { writeJson } from "../../../base/json.ts";
import type { Warning } from "../../../base/refusal.ts";
import type { RelayView } from "../../../rules/relay/relay-view.ts";
import { formatPickupDelay, withApi } from "../api/connect.ts";
import type { Command, Input } from "../command.ts";
import type { Io } from "../io.ts";
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
  summary: "permanently delete a relay and its secrets",
  details:
    "A receiver URL answers 404 at once, so its requests are lost. To let them wait instead, use relay relays pause. Waiting events become failed, and the relay's events stay for 30 days. If the relay came from relay sync or relay promote, the next one creates it again. To prevent that, delete it at its source too. In local development, the command also deletes the file.",
  arguments: [NAME],
  options: [
    {
      name: "confirm",
      value: "<name>",
      help: "the relay's name again: deletes without a question",
    },
    ...OF_RELAY,
  ],
  examples: ["relay relays delete orders --confirm orders"],
  async run(input, io) {
    const name = input.first();
    requireSame(input, "relay", name);
    const done = await withApi<Deleted>("write", input, io, async (api) => {
      const isLocal = api.environment === "local";
      const { relay } = await api.request<{ relay: RelayView }>("GET", pathOf(name));
      await askFirst(input, io, relay, isLocal);
      const { warnings = [] } = await api.request<{ warnings?: Warning[] }>("DELETE", pathOf(name));
      return { relay, warnings, isLocal, foundSoon: formatPickupDelay(api, input, io) };
    });
    const { relay, warnings, isLocal, foundSoon } = done;
    if (input.on("json")) io.print(writeJson({ deleted: name, warnings }, 2));
    for (const { message } of warnings) io.inform(`Warning: ${message}`);
    io.inform(`${name} is deleted: ${formatConsequence(relay, isLocal)}${foundSoon}`);
  },
};

async function askFirst(input: Input, io: Io, relay: RelayView, isLocal: boolean): Promise<void> {
  if (input.given("confirm")) return;
  const { name } = relay;
  io.inform(`If you delete ${name}: ${formatConsequence(relay, isLocal)}`);
  const line = `relay relays delete ${name} --confirm ${name}`;
  await requireYes(io, { question: `Permanently delete ${name}?`, undone: "Nothing was deleted", line });
}

function formatConsequence({ name, trigger, origin, last24h }: RelayView, isLocal: boolean): string {
  const stops =
    trigger === "receiver"
      ? "its receiver URL answers 404, so its requests are lost."
      : "it never runs again.";
  const { waiting } = last24h;
  const waits = `Waiting events become failed${waiting === 0 ? "" : ` (${waiting} in the last 24 hours)`}.`;
  const consequence = isLocal ? ` Its file relays/${name}.json is deleted too.` : formatRecreation(origin);
  return `${stops} ${waits} Its secrets are permanently deleted. Its events stay for 30 days.${consequence}`;
}

/** Describes what would create the relay again. */
function formatRecreation({ kind, promotedFrom }: RelayView["origin"]): string {
  if (promotedFrom !== undefined)
    return ` It was promoted from ${promotedFrom}: the next relay promote creates it again unless you delete it there too.`;
  return kind === "file"
    ? " It came from a file: the next relay sync creates it again unless you delete the file too."
    : "";
}
