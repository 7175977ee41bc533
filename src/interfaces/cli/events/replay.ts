/** Replays one event (`relay events replay`), or shows first what that would do. The running service picks up what the command queues. */

import { writeJson } from "../../../base/json.ts";
import { MAX_ACTIONS_PER_RELAY } from "../../../base/limit.ts";
import { plain } from "../../../base/text.ts";
import type { PlannedAction, ReplayPlan } from "../../../engine/event/replay-plan.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import { type Command, type Input, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { eventPath, findEventId, postEvent } from "./events.ts";

export const eventsReplay: Command = {
  words: ["events", "replay"],
  summary: "run an event again, without repeating done work",
  details:
    "--plan shows what each action would do. An action is skipped if its work is done. Choose an action with --run if it was edited after its work was done, or did its work for another person. A purchase then moves to the new person.",
  arguments: [{ name: "event id", help: "the id (or its ending) as relay events list shows it" }],
  options: [
    { name: "plan", help: "show what each action would do, and replay nothing" },
    {
      name: "run",
      value: "<index>",
      list: true,
      otherwise: "none",
      help: "the index, from 0, of an action to run although its work is done; --plan shows which",
    },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay events replay evt_… --plan", "relay events replay evt_… --run 2"],
  async run(input, io) {
    if (input.on("plan")) return await printPlan(input, io);
    const run = readIndexes(input);
    const id = await withApi("write", input, io, async (api) => {
      const id = await findEventId(api, input.first());
      return await postEvent(api, `${eventPath(id)}/replay`, { run });
    });
    if (input.on("json")) io.print(writeJson({ event: { id, state: "queued" } }, 2));
    io.inform(
      `${id} is queued again. Calls are sent again; other work only if it was not done. See relay events show ${id}`,
    );
  },
};

async function printPlan(input: Input, io: Io): Promise<void> {
  const plan = await withApi("read", input, io, async (api) => {
    const path = eventPath(await findEventId(api, input.first()));
    return (await api.request<{ plan: ReplayPlan }>("GET", `${path}/replay`)).plan;
  });
  if (input.on("json")) io.print(writeJson({ plan }, 2));
  else if (plan.relay === null || plan.stop !== null) io.inform(plain(plan.stop ?? ""));
  else {
    const { name, version } = plan.relay;
    io.print([`${plain(name)}, version ${version}`, ...plan.actions.map(writePlanned)].join("\n"));
  }
}

function writePlanned({ index, type, message, mayChoose }: PlannedAction): string {
  const choice = mayChoose ? ` (--run ${index})` : "";
  return `  actions.${index}  ${type}  ${plain(message)}${choice}`;
}

function readIndexes(input: Input): number[] {
  return input.list("run").map((text) => {
    const index = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
    if (index < MAX_ACTIONS_PER_RELAY) return index;
    throw new UsageError(
      `--run is ${JSON.stringify(text)}: write the index of an action, from 0 to ${MAX_ACTIONS_PER_RELAY - 1}, as --plan shows it.`,
    );
  });
}
