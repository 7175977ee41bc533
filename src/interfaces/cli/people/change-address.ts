/** Changes a person's address (`relay people change-address`), as Change address… does on the person's page in the dashboard. */

import type { Command } from "../command.ts";
import { makePlannedChange, PLANNED } from "../terminal/planned-change.ts";
import { findPerson, PERSON } from "./people.ts";

interface Changed {
  plan: { message: string };
  /** False if the person had the address before. */
  changed: boolean;
}

export const peopleChangeAddress: Command = {
  words: ["people", "change-address"],
  summary: "change a person's address",
  details:
    "The person keeps the id, the access and everything else. An event that names the former address still finds them. Only the new address can sign in. The command first shows the plan.",
  arguments: [PERSON, { name: "new", help: "the new email address" }],
  options: PLANNED,
  examples: [
    "relay people change-address ada@example.com ada@example.org --plan",
    "relay people change-address ada@example.com ada@example.org --yes",
  ],
  async run(input, io) {
    const [name = "", email = ""] = input.positionals;
    const made = await makePlannedChange<Changed>(input, io, async (api) => {
      const { id } = await findPerson(api, name);
      return {
        path: `/persons/${encodeURIComponent(id)}/change-address`,
        body: { email },
        question: `Change the address of ${name} to ${email}?`,
        undone: "Nothing was changed",
        line: `relay people change-address ${name} ${email} --yes`,
      };
    });
    if (made === null) return;
    io.inform(made.changed ? `The address is ${email} now.` : made.plan.message);
  },
};
