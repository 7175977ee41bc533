/** Lists the rejected requests of a relay whose events are missing, and closes the list (`relay relays rejected`). */
import { writeJson } from "../../../base/json.ts";
import { cutToLine, plain } from "../../../base/text.ts";
import type { RejectedView } from "../../../rules/relay/rejected-request.ts";
import { withApi } from "../api/connect.ts";
import { type Command, CommandFailure } from "../command.ts";
import { requireYes } from "../terminal/confirm.ts";
import { printSheet } from "../terminal/terminal.ts";
import { NAME, OF_RELAY } from "./relays.ts";
import { pathOf } from "./request.ts";

/** The event ids that a terminal shows. With --json the command prints all of them. */
const MAX_SHOWN_IDS = 50;
const MAX_ID_CHARS = 80;

export const relaysRejected: Command = {
  words: ["relays", "rejected"],
  summary: "list rejected requests whose events are missing",
  details:
    "The list has the requests that the relay rejected because of its secret or its recipe. A request leaves the list when its event arrives or is imported. The event ids are not verified.\nExit codes:\n  0: nothing is missing\n  1: refused or failed\n  3: events are missing",
  arguments: [NAME],
  options: [
    { name: "close", help: "delete the list, because nothing more is to come" },
    { name: "yes", help: "close without a question" },
    ...OF_RELAY,
  ],
  examples: ["relay relays rejected orders", "relay relays rejected orders --close --yes"],
  async run(input, io) {
    const name = input.first();
    const isClosing = input.on("close");
    const rejected = await withApi(isClosing ? "write" : "read", input, io, async (api) => {
      const path = `${pathOf(name)}/rejected`;
      const read = await api.request<{ rejected: RejectedView }>("GET", path);
      if (isClosing) {
        if (read.rejected.ongoing)
          throw new CommandFailure(
            "invalid_input",
            `The relay ${name} still rejects its requests, so its list cannot be closed: store the sender's secret with relay relays set-secret ${name}.`,
          );
        if (!input.on("yes")) {
          io.inform(plain(read.rejected.message));
          const line = `relay relays rejected ${name} --close --yes`;
          await requireYes(io, { question: "Close the list?", undone: "Nothing was closed", line });
        }
        await api.request("POST", `${path}/close`);
      }
      return read.rejected;
    });
    if (input.on("json")) io.print(writeJson(isClosing ? { closed: rejected } : { rejected }, 2));
    else if (isClosing) io.inform(`The list of rejected requests of ${name} is closed.`);
    else await printSheet(input, io, writeRejected(rejected));
    return isClosing || rejected.requests === rejected.arrived ? 0 : 3;
  },
};

function writeRejected({ relay, ongoing, message, items, requests, arrived }: RejectedView): string[] {
  const missing = items.filter(({ arrivedAt }) => arrivedAt === null);
  const ids = missing.slice(0, MAX_SHOWN_IDS).map(({ eventId, eventType, firstAt }) => {
    const shown = [eventId, ...(eventType === null ? [] : [eventType])];
    return `  ${firstAt}  ${shown.map((text) => plain(cutToLine(text, MAX_ID_CHARS))).join("  ")}`;
  });
  const more = missing.length - ids.length;
  return [
    plain(message),
    ...(ids.length === 0 ? [] : ["Event ids without an event (not verified):"]),
    ...ids,
    ...(more > 0 ? [`  and ${more} more: relay relays rejected ${plain(relay)} --json`] : []),
    ...(requests === arrived
      ? []
      : [
          `Import the missing events: relay import-missed ${plain(relay)} (guide: relay docs provider-says-sent)`,
          ...(ongoing
            ? []
            : [`If nothing more is to come, close the list: relay relays rejected ${plain(relay)} --close`]),
        ]),
  ];
}
