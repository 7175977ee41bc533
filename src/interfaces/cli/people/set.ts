/** Sets a person's attributes (`relay people set`), as Change… does on the person's page in the dashboard. The audit contains only their names. */

import { writeJson } from "../../../base/json.ts";
import type { PersonView } from "../../../shop/people/person.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import type { Command } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { readJsonObject } from "../terminal/read-json.ts";
import { findPerson, PERSON } from "./people.ts";

interface ChangedAttributes {
  person: PersonView;
  /** False if the attributes had exactly these values before. */
  changed: boolean;
}

export const peopleSet: Command = {
  words: ["people", "set"],
  summary: "set or remove attributes of a person",
  details:
    "Attributes are data of your app about a person: a name with any JSON value. Each name in the JSON is set, and a name with null is removed. All other attributes stay. Without the JSON argument, the command reads standard input. relay people show shows the attributes.",
  arguments: [PERSON, { name: "json", help: "an object with names and values", optional: true }],
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: [
    `relay people set ada@example.com '{"company":"Lamps","trial":null}'`,
    "relay people set ada@example.com < attributes.json",
  ],
  async run(input, io) {
    const name = input.first();
    const attributes = readJsonObject(input.positionals[1] ?? (await io.readInput()));
    const set = await withApi<ChangedAttributes>("write", input, io, async (api) => {
      const path = `/persons/${encodeURIComponent((await findPerson(api, name)).id)}`;
      const before = await api.request<{ person: PersonView }>("GET", path);
      const after = await api.request<{ person: PersonView }>("PATCH", path, { attributes });
      return compare(before.person, after.person);
    });
    if (input.on("json")) io.print(writeJson(set, 2));
    const names = Object.keys(set.person.attributes);
    const has = names.length === 0 ? "no attributes" : `the attributes ${names.join(", ")}`;
    io.inform(set.changed ? `${name} has ${has} now.` : `${name} has ${has} already: nothing changed.`);
  },
};

function compare(before: PersonView, person: PersonView): ChangedAttributes {
  return { person, changed: writeJson(before.attributes) !== writeJson(person.attributes) };
}
