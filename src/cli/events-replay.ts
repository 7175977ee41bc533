/** `relay events replay`: a final event runs again, from its first action; the running service takes it up by itself. */
import { actorWords, COMMAND_LINE } from "../account/actor.ts";
import { replayEvent } from "../event/replay.ts";
import type { Command } from "./command.ts";
import { APP, chooseEnvironment, ENVIRONMENT, withStore } from "./data-directory.ts";
import { DATA_DIR } from "./service-option.ts";

export const eventsReplay: Command = {
  words: ["events", "replay"],
  summary: "run an event again; what it did before is not done twice",
  arguments: [{ name: "event id", help: "as relay events list shows it" }],
  options: [APP, ENVIRONMENT, DATA_DIR],
  async run(input, world) {
    const id = input.first();
    await withStore(input, world, (store) =>
      store.write("dashboard", async (tx) => {
        const environment = await chooseEnvironment(tx, input);
        return await replayEvent(tx, {
          environmentId: environment.id,
          id,
          actor: actorWords(COMMAND_LINE),
          nowMs: world.clock.now(),
        });
      }),
    );
    world.tell(
      `${id} is queued again; calls are sent again, everything else only where it was not done. See relay events show ${id}`,
    );
    return 0;
  },
};
