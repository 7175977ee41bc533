/** Creates a person by their address (`relay people invite`), as the dashboard's Add a person does. It sends no mail. */

import { writeJson } from "../../../base/json.ts";
import type { PersonView } from "../../../shop/people/person.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import type { Command } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";

interface Invited {
  person: PersonView;
  /** False if a person with this address exists already. That person stays unchanged. */
  created: boolean;
}

export const peopleInvite: Command = {
  words: ["people", "invite"],
  summary: "add a person by email address, without a mail",
  details:
    "The person can have access and credits at once, and becomes active when they sign in to your app. A person who exists already does not change.",
  arguments: [{ name: "address", help: "an email address" }],
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay people invite ada@example.com"],
  async run(input, io) {
    const email = input.first();
    const made = await withApi<Invited>("write", input, io, (api) =>
      api.request<Invited>("POST", "/persons", { email }),
    );
    if (input.on("json")) io.print(writeJson(made, 2));
    const { person, created } = made;
    io.inform(
      created
        ? `${email} is added, and no mail was sent. They can have access and credits now, and sign in to your app.`
        : `${email} exists already (${person.status}): nothing changed.`,
    );
  },
};
