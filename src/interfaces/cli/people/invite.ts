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
  summary: "make a person by their address; no mail is sent",
  details:
    "They can hold access and credits at once, and are active once they sign in to your app. Whoever is here already stays as they are.",
  arguments: [{ name: "address", help: "an e-mail address" }],
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay people invite ada@example.com"],
  async run(input, world) {
    const email = input.first();
    const made = await withApi<Invited>("write", input, world, (api) =>
      api.request<Invited>("POST", "/persons", { email }),
    );
    if (input.on("json")) world.say(writeJson(made, 2));
    const { person, created } = made;
    world.tell(
      created
        ? `${email} is added. No mail was sent: they can hold access and credits at once, and sign in to your app.`
        : `${email} was here already (${person.status}): nothing changed.`,
    );
  },
};
