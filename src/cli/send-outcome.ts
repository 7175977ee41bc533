/** What became of an event that was just sent: waits until it has ended or waits for a retry, and says so. */
import { FINAL_STATES } from "../event/event-row.ts";
import { findEventView } from "../event/event-view.ts";
import { sleep } from "../ground/clock.ts";
import type { Input } from "./command.ts";
import { withStore } from "./data-directory.ts";
import { writeOutcome } from "./event-text.ts";
import { programWord } from "./program-word.ts";
import type { World } from "./world.ts";

const LOOK_EVERY_MS = 50;
const GIVE_UP_MS = 12_000;

/** Answers the exit code: 0 when it is done, or still waiting after a while; 1 when it failed. */
export async function waitForEvent(
  id: string,
  environmentId: number,
  input: Input,
  world: World,
): Promise<number> {
  const begun = world.clock.monotonicMs();
  return await withStore(input, world, async (store) => {
    for (;;) {
      const event = await store.read((tx) => findEventView(tx, environmentId, id));
      const settled = event !== null && (FINAL_STATES.has(event.state) || event.nextAttemptAt !== null);
      if (event !== null && settled) {
        world.tell(`${writeOutcome(event)}. More: ${programWord(world)} events show ${id}`);
        return event.state === "done" ? 0 : 1;
      }
      if (world.clock.monotonicMs() - begun > GIVE_UP_MS) {
        world.tell(
          `The event is recorded and has not ended yet. More: ${programWord(world)} events show ${id}`,
        );
        return 0;
      }
      await sleep(world.clock, LOOK_EVERY_MS);
    }
  });
}
