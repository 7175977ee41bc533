/** Retries waiting events now (`relay events retry`, `relay relays retry`). The running service picks up what becomes due. */

import { writeJson } from "../../../base/json.ts";
import type { TriedEvents } from "../../../engine/event/retry-now.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import type { Command } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { count } from "../sync/plan-lines.ts";
import { eventPath, findEventId, postEvent } from "./events.ts";

const COUNTS = "The attempt counts like any other.";

export const eventsRetry: Command = {
  words: ["events", "retry"],
  summary: "retry a waiting event now",
  details: `Use this after you fixed the cause. ${COUNTS} To run an event that has ended: relay events replay.`,
  arguments: [{ name: "event id", help: "the id (or its ending) as relay events list shows it" }],
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay events retry evt_…"],
  async run(input, io) {
    const id = await withApi("write", input, io, async (api) => {
      const id = await findEventId(api, input.first());
      return await postEvent(api, `${eventPath(id)}/retry`);
    });
    if (input.on("json")) io.print(writeJson({ event: { id, state: "queued" } }, 2));
    io.inform(`${id} runs now. See relay events show ${id}`);
  },
};

export const relaysRetry: Command = {
  words: ["relays", "retry"],
  summary: "retry the waiting events of a relay now",
  details: `Use this after you fixed the cause. ${COUNTS} To run events that have ended: relay replays start.`,
  arguments: [{ name: "name", help: "the name of the relay" }],
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay relays retry checkout-completed"],
  async run(input, io) {
    const name = input.first();
    const { tried, stopped } = await withApi("write", input, io, async (api) => {
      const path = `/relays/${encodeURIComponent(name)}/retry`;
      const { tried, stopped } = await api.request<TriedEvents>("POST", path);
      // A server of an earlier version does not send `stopped`.
      return { tried, stopped: stopped ?? null };
    });
    if (input.on("json")) io.print(writeJson({ tried, stopped }, 2));
    io.inform(
      tried === 0
        ? `No event of ${name} waits for a retry.`
        : `${count(tried, "event")} of ${name} ${tried === 1 ? "runs" : "run"} now. See relay events list --relay ${name}`,
    );
    if (stopped !== null) io.inform(`The events after them still wait: ${stopped}`);
  },
};
