/** `relay events replay`: a final event runs again, from its first action; the running service takes it up by itself. Its plan is shown before. */
import { actorWords, COMMAND_LINE } from "../account/owner.ts";
import { type PlannedAction, planReplay, replayEvent } from "../event/replay.ts";
import { writeJson } from "../ground/json.ts";
import { MAX_ACTIONS_PER_RELAY } from "../ground/limit.ts";
import { type Command, type Input, UsageError } from "./command.ts";
import { APP, chooseEnvironment, ENVIRONMENT, JSON_OUTPUT, withStore } from "./data-directory.ts";
import { DATA_DIR } from "./service-option.ts";
import { plain } from "./table.ts";
import type { World } from "./world.ts";

export const eventsReplay: Command = {
  words: ["events", "replay"],
  summary: "run an event again; what it did before is not done twice",
  details:
    "--plan says first what each action will do. An action that was edited after it had done its work is skipped unless --run names it.",
  arguments: [{ name: "event id", help: "as relay events list shows it" }],
  options: [
    { name: "plan", help: "only say what each action would do" },
    {
      name: "run",
      value: "<index>",
      list: true,
      otherwise: "none",
      help: "an action edited after its work that runs all the same, counted from 0 as the plan does",
    },
    JSON_OUTPUT,
    APP,
    ENVIRONMENT,
    DATA_DIR,
  ],
  examples: ["relay events replay evt_… --plan", "relay events replay evt_… --run 2"],
  async run(input, world) {
    if (input.on("plan")) return await sayPlan(input, world);
    const id = input.first();
    const run = readIndexes(input);
    await withStore(input, world, (store) =>
      store.write("dashboard", async (tx) => {
        const environment = await chooseEnvironment(tx, input);
        return await replayEvent(tx, {
          environmentId: environment.id,
          id,
          actor: actorWords(COMMAND_LINE),
          nowMs: world.clock.now(),
          run,
        });
      }),
    );
    if (input.on("json")) world.say(writeJson({ event: { id, state: "queued" } }, 2));
    world.tell(
      `${id} is queued again; calls are sent again, everything else only where it was not done. See relay events show ${id}`,
    );
    return 0;
  },
};

async function sayPlan(input: Input, world: World): Promise<number> {
  const plan = await withStore(input, world, (store) =>
    store.read(async (tx) =>
      planReplay(tx, { environmentId: (await chooseEnvironment(tx, input)).id, id: input.first() }),
    ),
  );
  if (input.on("json")) world.say(writeJson({ plan }, 2));
  else if (plan.relay === null || plan.stop !== null) world.tell(plain(plan.stop ?? ""));
  else {
    const { name, version } = plan.relay;
    world.say([`${plain(name)}, version ${version}`, ...plan.actions.map(writePlanned)].join("\n"));
  }
  return 0;
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
