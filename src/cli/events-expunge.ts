/** `relay events expunge`: an event's payload goes for good, audited; the event itself, its state and what it did stay known. */
import { actorWords, COMMAND_LINE } from "../account/owner.ts";
import { expungeByHand } from "../event/expunge.ts";
import type { Command } from "./command.ts";
import { APP, chooseEnvironment, ENVIRONMENT, withStore } from "./data-directory.ts";
import { DATA_DIR } from "./service-option.ts";

export const eventsExpunge: Command = {
  words: ["events", "expunge"],
  summary: "take an event's payload out for good, audited; it never runs again",
  arguments: [{ name: "event id", help: "as relay events list shows it" }],
  options: [APP, ENVIRONMENT, DATA_DIR],
  details:
    "What its results quote goes with it; an event that waits ends failed. Mails it caused and backups made before are not touched.",
  async run(input, world) {
    const id = input.first();
    await withStore(input, world, async (store) => {
      const { id: environmentId } = await store.read((tx) => chooseEnvironment(tx, input));
      const nowMs = world.clock.now();
      await expungeByHand(store, { environmentId, id, actor: actorWords(COMMAND_LINE), nowMs });
      // Nothing of it stays in pages that came free.
      while (await store.tend({ everything: true }));
    });
    world.tell(`${id} is expunged: its payload is gone for good. See relay events show ${id}`);
    return 0;
  },
};
