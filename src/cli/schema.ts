/** `relay schema`: the JSON Schema of a definition, for editors. */
import { writeJson } from "../ground/json.ts";
import { makeDefinitionSchema } from "../relay/definition-shape.ts";
import type { Command } from "./command.ts";

export const schema: Command = {
  words: ["schema"],
  summary: "the JSON Schema of a relay definition, for editors",
  options: [],
  async run(_input, world) {
    world.say(writeJson(makeDefinitionSchema(), 2));
    return 0;
  },
};
