/** Merges two people (`relay people merge`), as Merge… does on the person's page in the dashboard. */

import type { Command } from "../command.ts";
import { makePlannedChange, PLANNED } from "../terminal/planned-change.ts";
import { findPerson } from "./people.ts";

interface Merged {
  plan: { message: string };
  /** False if nothing was left to move. */
  merged: boolean;
}

export const peopleMerge: Command = {
  words: ["people", "merge"],
  summary: "move everything of one person to another",
  details:
    "For a customer who is here under two addresses. Purchases, access, credits, tokens, customer IDs and records move in one transaction. After the merge, the first person keeps the address and the timeline and has no access. The command first shows what moves. A second merge moves what came since.",
  arguments: [
    { name: "from", help: "the person who gives everything: an address, an id, or its ending" },
    { name: "to", help: "the person who gets it: an address, an id or a token" },
  ],
  options: PLANNED,
  examples: [
    "relay people merge ada.old@example.com ada@example.com --plan",
    "relay people merge ada.old@example.com ada@example.com --yes",
  ],
  async run(input, io) {
    const [from = "", to = ""] = input.positionals;
    const made = await makePlannedChange<Merged>(input, io, async (api) => {
      const { id } = await findPerson(api, from);
      return {
        path: `/persons/${encodeURIComponent(id)}/merge`,
        body: { into: to },
        question: `Merge ${from} into ${to}?`,
        undone: "Nothing was merged",
        line: `relay people merge ${from} ${to} --yes`,
      };
    });
    if (made === null) return;
    io.inform(made.merged ? `${from} is merged into ${to}.` : made.plan.message);
  },
};
