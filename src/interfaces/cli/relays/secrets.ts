/**
 * Rotates or sets a relay's secret and ends an overlap period (`relay relays rotate-secret`, `set-secret`, `end-overlap`). A new secret
 * goes to stdout once, and the sender's own is read only from stdin. A running service picks up the changes.
 */

import { writeJson } from "../../../base/json.ts";
import { MAX_SECRET_OVERLAP_SECONDS } from "../../../base/limit.ts";
import { formatPickupDelay, withApi } from "../api/connect.ts";
import { type Command, type Input, UsageError } from "../command.ts";
import type { Io } from "../io.ts";
import { NAME, OF_RELAY } from "./relays.ts";
import { changeRelaySecret, endRelayOverlap, rotateSigning } from "./request.ts";

const OVERLAP = {
  name: "overlap",
  value: "<seconds>",
  otherwise: "0",
  help: `how long the previous secret stays valid, at most ${MAX_SECRET_OVERLAP_SECONDS}`,
} as const;

export const relaysRotateSecret: Command = {
  words: ["relays", "rotate-secret"],
  summary: "create a new secret for a relay, shown once",
  details:
    "The command prints the secret to standard output once. Give it to the sender. The previous secret stops working at once, or after the overlap period if you use --overlap. If the sender creates the secret, store it with relay relays set-secret.",
  arguments: [NAME],
  options: [
    OVERLAP,
    { name: "signing", help: "rotate the secret that signs the relay's own outbound calls instead" },
    ...OF_RELAY,
  ],
  examples: [
    "relay relays rotate-secret orders --overlap 86400",
    "relay relays rotate-secret orders --signing --overlap 86400",
  ],
  async run(input, io) {
    if (!input.on("signing")) return await changeSecret(input, io, null);
    const name = input.first();
    const overlap = readOverlap(input);
    const made = await withApi("write", input, io, (api) => rotateSigning(api, name, overlap));
    const { signingSecret, previousUntil } = made;
    io.print(input.on("json") ? writeJson({ relay: name, ...made }, 2) : signingSecret);
    const before =
      previousUntil === undefined
        ? ""
        : ` Calls also carry a signature of the previous secret until ${previousUntil}.`;
    io.inform(
      `Copy the new signing secret of ${name} now: it is shown once. It signs the next outbound call.${before}`,
    );
  },
};

export const relaysSetSecret: Command = {
  words: ["relays", "set-secret"],
  summary: "store the secret that the sender created",
  details: "The command reads the secret or public key from standard input.",
  arguments: [NAME],
  options: [OVERLAP, ...OF_RELAY],
  examples: ["relay relays set-secret orders < secret.txt"],
  async run(input, io) {
    const value = (await io.readInput()).trim();
    if (value !== "") return await changeSecret(input, io, value);
    throw new UsageError(
      `Standard input was empty, and the command reads the secret from it: relay relays set-secret ${input.first()} < file.`,
    );
  },
};

export const relaysEndOverlap: Command = {
  words: ["relays", "end-overlap"],
  summary: "end the overlap period of a rotation now",
  details: "The previous secret stops working at once.",
  arguments: [NAME],
  options: [
    {
      name: "signing",
      help: "end the overlap of the secrets that sign the relay's own outbound calls instead",
    },
    ...OF_RELAY,
  ],
  examples: ["relay relays end-overlap orders"],
  async run(input, io) {
    const name = input.first();
    const foundSoon = await withApi("write", input, io, async (api) => {
      await endRelayOverlap(api, name, input.on("signing"));
      return formatPickupDelay(api, input, io);
    });
    if (input.on("json")) io.print(writeJson({ relay: name }, 2));
    io.inform(
      input.on("signing")
        ? `Only the current signing secret of ${name} signs its calls now.${foundSoon}`
        : `Only the current secret of ${name} is valid now.${foundSoon}`,
    );
  },
};

function readOverlap(input: Input): number {
  return input.number("overlap", { from: 0, to: MAX_SECRET_OVERLAP_SECONDS }) ?? 0;
}

async function changeSecret(input: Input, io: Io, value: string | null): Promise<void> {
  const name = input.first();
  const overlap = readOverlap(input);
  const { foundSoon, ...done } = await withApi("write", input, io, async (api) => ({
    ...(await changeRelaySecret(api, name, value, overlap)),
    foundSoon: formatPickupDelay(api, input, io),
  }));
  const { receiverSecret, previousUntil } = done;
  if (input.on("json")) io.print(writeJson({ relay: name, ...done }, 2));
  else if (receiverSecret !== undefined) io.print(receiverSecret);
  const shown = receiverSecret === undefined ? "is stored." : "is shown once: give it to the sender.";
  const before =
    previousUntil === undefined
      ? "The previous secret is no longer valid."
      : `The previous secret is valid until ${previousUntil}.`;
  io.inform(`The new secret of ${name} ${shown} ${before}${foundSoon}`);
}
