/** Retries waiting events now (`relay events retry`, `relay relays retry`). The running service picks up what becomes due. */

import { writeJson } from "../../../base/json.ts";
import type { TriedEvents } from "../../../engine/event/retry-now.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import type { Command } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { eventPath, findEventId, postEvent } from "./events.ts";

const COUNTS = "The attempt counts as any other.";

export const eventsRetry: Command = {
  words: ["events", "retry"],
  summary: "try an event that waits for its retry now",
  details: `For once its cause was mended. ${COUNTS} One that has ended is replayed: relay events replay.`,
  arguments: [{ name: "event id", help: "as relay events list shows it, or its ending" }],
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay events retry evt_…"],
  async run(input, world) {
    const id = await withApi("write", input, world, async (api) => {
      const id = await findEventId(api, input.first());
      return await postEvent(api, `${eventPath(id)}/retry`);
    });
    if (input.on("json")) world.say(writeJson({ event: { id, state: "queued" } }, 2));
    world.tell(`${id} is tried now. See relay events show ${id}`);
  },
};

export const relaysRetry: Command = {
  words: ["relays", "retry"],
  summary: "try a relay's events that wait for their retry now",
  details: `For once their cause was mended. ${COUNTS} What has ended is replayed: relay replays start.`,
  arguments: [{ name: "name", help: "the relay's" }],
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay relays retry checkout-completed"],
  async run(input, world) {
    const name = input.first();
    const { tried, stopped } = await withApi("write", input, world, async (api) => {
      const path = `/relays/${encodeURIComponent(name)}/retry`;
      const { tried, stopped } = await api.request<TriedEvents>("POST", path);
      // A server of an earlier version does not send `stopped`.
      return { tried, stopped: stopped ?? null };
    });
    if (input.on("json")) world.say(writeJson({ tried, stopped }, 2));
    world.tell(
      tried === 0
        ? `Nothing of ${name} waits for its retry.`
        : `${tried} of ${name} ${tried === 1 ? "is" : "are"} tried now. See relay events list --relay ${name}`,
    );
    if (stopped !== null) world.tell(`Those behind them were left: ${stopped}`);
  },
};
