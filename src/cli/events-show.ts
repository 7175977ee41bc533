/** `relay events show`: one event, its payload, and what each attempt did. */
import { requireEventView } from "../event/event-view.ts";
import { writeJson } from "../ground/json.ts";
import type { Command } from "./command.ts";
import { APP, chooseEnvironment, ENVIRONMENT, JSON_OUTPUT, withStore } from "./data-directory.ts";
import { writeEvent } from "./event-text.ts";
import { DATA_DIR } from "./service-option.ts";

export const eventsShow: Command = {
  words: ["events", "show"],
  summary: "one event: its payload, and what each attempt did",
  arguments: [{ name: "event id", help: "as relay events list shows it" }],
  options: [JSON_OUTPUT, APP, ENVIRONMENT, DATA_DIR],
  async run(input, world) {
    const id = input.first();
    const event = await withStore(input, world, (store) =>
      store.read(async (tx) => requireEventView(tx, (await chooseEnvironment(tx, input)).id, id)),
    );
    world.say(input.on("json") ? writeJson({ event }, 2) : writeEvent(event));
    return 0;
  },
};
