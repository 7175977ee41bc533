/**
 * Adds or spends credits manually (`relay people credits`), as the dashboard's Credits does. A change that is sent again with its key
 * applies once.
 */

import { writeJson } from "../../../base/json.ts";
import { MAX_CREDIT_LINE } from "../../../base/limit.ts";
import type { CreditView } from "../../../shop/people/credit.ts";
import { withApi } from "../api/connect.ts";
import { NothingSent } from "../api/remote.ts";
import { ANYWHERE } from "../api/target.ts";
import { type Command, CommandFailure, type Input, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { count } from "../sync/plan-lines.ts";
import { findPerson, PERSON } from "./people.ts";

interface Changed {
  /** The line in the ledger, with the key. */
  credit: CreditView;
  /** The balance after that line. */
  balance: number;
  /** False if the key was used before, so nothing changed. */
  applied: boolean;
}

const SPEND_IT = "write a positive number and add --spend";

export const peopleCredits: Command = {
  words: ["people", "credits"],
  summary: "add or spend credits of a person",
  details:
    "Each run changes the balance again. To make a repeat safe, use --key: a change with the same key applies once. The balance never falls below zero.",
  arguments: [PERSON, { name: "how many", help: "a whole number" }],
  options: [
    { name: "spend", help: "spend credits instead of adding them" },
    {
      name: "reason",
      value: "<text>",
      help: "required: why you make this change; the ledger keeps it permanently",
    },
    {
      name: "key",
      value: "<text>",
      otherwise: "a new one",
      help: "your own key for this change; a repeat with the same key applies once",
    },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  // An amount such as `-20` reads as these options.
  refuses: Object.fromEntries([..."0123456789"].map((digit) => [digit, `to spend, ${SPEND_IT}`])),
  examples: [
    "relay people credits ada@example.com 50 --reason welcome",
    "relay people credits ada@example.com 20 --spend --reason mistaken",
  ],
  async run(input, io) {
    const [name = ""] = input.positionals;
    const amount = readAmount(input);
    const reason = input.text("reason");
    if (reason === null)
      throw new UsageError(
        "--reason is missing: say why you make this change. The ledger keeps the reason permanently.",
      );
    const key = input.text("key") ?? `command-${crypto.randomUUID()}`;
    const made = await withApi<{ person: string } & Changed>("write", input, io, async (api) => {
      const { id } = await findPerson(api, name);
      const path = `/persons/${encodeURIComponent(id)}/credits`;
      const asked = api.request<Changed>("POST", path, { amount, reason, key });
      const answer = await asked.catch((error) => {
        if (error instanceof CommandFailure && !(error instanceof NothingSent))
          io.inform(
            `The answer was lost, so the change may or may not have happened. Run the command again with --key ${key}: the change then applies once.`,
          );
        throw error;
      });
      return { person: id, ...answer };
    });
    if (input.on("json")) io.print(writeJson(made, 2));
    const left = count(made.balance, "credit");
    io.inform(
      made.applied
        ? `${name} has ${left} now.`
        : `Nothing changed: the key ${key} was used before. The balance after that change was ${left}.`,
    );
  },
};

/** Reads the amount. A negative amount spends. Throws UsageError. */
function readAmount(input: Input): number {
  const text = input.positionals[1] ?? "";
  const count = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > MAX_CREDIT_LINE)
    throw new UsageError(
      `<how many> is ${JSON.stringify(text)}: write a whole number from 1 to ${MAX_CREDIT_LINE}. To spend, ${SPEND_IT}.`,
    );
  return input.on("spend") ? -count : count;
}
