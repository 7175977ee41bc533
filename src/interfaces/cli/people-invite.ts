/** `relay people invite`: makes a person by their address, as the dashboard's Add a person does; no mail is sent. */

import { writeJson } from "../../base/json.ts";
import { COMMAND_LINE, formatActor } from "../../platform/account/api-key.ts";
import { type PersonView, viewPerson } from "../../shop/people/person.ts";
import { invitePerson } from "../../shop/people/person-invite.ts";
import type { Command, Input } from "./command.ts";
import { JSON_OUTPUT, readRunningLimits } from "./data-directory.ts";
import type { World } from "./io.ts";
import { askPlace } from "./remote.ts";
import { readDataDir, readLimits } from "./service-option.ts";
import { ANYWHERE, atPlace } from "./target.ts";

interface Invited {
  person: PersonView;
  /** false: somebody with this address was here, and stays as they are. */
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
    const made = await atPlace<Invited>(input, world, {
      writes: true,
      here: async (store, { id: environmentId }) => {
        const [createdBy, nowMs] = [formatActor(COMMAND_LINE), world.clock.now()];
        const invite = { environmentId, email, createdBy, nowMs, invitesPerDay: readCap(input, world) };
        const { person, created } = await store.write("dashboard", (tx) => invitePerson(tx, invite));
        return { person: viewPerson(person), created };
      },
      there: (remote) => askPlace<Invited>(remote, "POST", "/persons", { email }),
    });
    if (input.on("json")) world.say(writeJson(made, 2));
    const { person, created } = made;
    world.tell(
      created
        ? `${email} is added. No mail was sent: they can hold access and credits at once, and sign in to your app.`
        : `${email} was here already (${person.status}): nothing changed.`,
    );
  },
};

/** The cap that the server here was started with, else this command's own. */
function readCap(input: Input, world: World): number {
  return readRunningLimits(readDataDir(input, world))?.invitesPerDay ?? readLimits(world.env).invitesPerDay;
}
