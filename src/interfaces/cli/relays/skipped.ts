/** Lists the runs of a schedule that a hold skipped, and starts them (`relay relays skipped`). */
import { writeJson } from "../../../base/json.ts";
import { plain } from "../../../base/text.ts";
import type { SkippedRunsView, StartedRunsView } from "../../../engine/schedule/skipped-run.ts";
import { withApi } from "../api/connect.ts";
import type { Command, Input } from "../command.ts";
import type { Io } from "../io.ts";
import { requireYes } from "../terminal/confirm.ts";
import { printSheet } from "../terminal/terminal.ts";
import { NAME, OF_RELAY } from "./relays.ts";
import { pathOf } from "./request.ts";

export const relaysSkipped: Command = {
  words: ["relays", "skipped"],
  summary: "list or start the runs that a hold skipped",
  details:
    "The list has the last 100 skipped runs of the relay's current trigger that have no event. --run starts them, each with its scheduled time. A run never starts twice. During a hold, a started run waits for the release.",
  arguments: [NAME],
  options: [
    { name: "run", help: "start the runs" },
    { name: "at", value: "<time>", list: true, help: "with --run: only the runs of these times" },
    { name: "dry-run", help: "with --run: show which runs would start" },
    { name: "yes", help: "start without a question" },
    ...OF_RELAY,
  ],
  examples: [
    "relay relays skipped nightly",
    "relay relays skipped nightly --run --yes",
    "relay relays skipped nightly --run --at 2026-11-21T00:00:00.000Z --dry-run",
  ],
  async run(input, io) {
    const name = input.first();
    const path = `${pathOf(name)}/skipped`;
    const starts = input.on("run") && !input.on("dry-run");
    const asked = input.list("at");
    await withApi(starts ? "write" : "read", input, io, async (api) => {
      const found = (await api.request<{ skipped: SkippedRunsView }>("GET", path)).skipped;
      const chosen = { ...found, runs: chooseRuns(found, asked) };
      if (!starts) return await showRuns(input, io, chosen);
      if (chosen.runs.length === 0 && asked.length === 0)
        return io.inform(`No hold skipped a run of ${name} that has no event.`);
      if (!input.on("yes")) {
        io.inform(writeRuns(chosen).join("\n"));
        const line = `relay relays skipped ${name} --run --yes`;
        const question = chosen.runs.length === 1 ? "Start this run?" : "Start these runs?";
        await requireYes(io, { question, undone: "Nothing was started", line });
      }
      // The server refuses a time that is no skipped run.
      const at = asked.length > 0 ? asked : chosen.runs.map((run) => run.at);
      const started = await api.request<StartedRunsView>("POST", `${path}/run`, { at });
      if (input.on("json")) io.print(writeJson(started, 2));
      io.inform(writeStarted(name, started));
    });
  },
};

function chooseRuns({ runs }: SkippedRunsView, asked: readonly string[]): SkippedRunsView["runs"] {
  if (asked.length === 0) return runs;
  const times = new Set(asked.map((text) => Date.parse(text)));
  return runs.filter(({ at }) => times.has(Date.parse(at)));
}

async function showRuns(input: Input, io: Io, runs: SkippedRunsView): Promise<void> {
  if (input.on("json")) io.print(writeJson({ skipped: runs }, 2));
  else await printSheet(input, io, writeRuns(runs));
}

function writeRuns({ relay, held, runs }: SkippedRunsView): string[] {
  const name = plain(relay);
  if (runs.length === 0) return [`No hold skipped a run of ${name} that has no event.`];
  const count = runs.length === 1 ? "1 run" : `${runs.length} runs`;
  return [
    `${held ? "The environment is on hold. " : ""}Holds skipped ${count} of ${name}:`,
    ...runs.map(({ at }) => `  ${plain(at)}`),
  ];
}

function writeStarted(name: string, { held, runs }: StartedRunsView): string {
  const started = runs.filter((run) => run.started).length;
  const before = runs.length - started;
  const known = before === 0 ? "" : ` ${before} had an event already.`;
  const next = held ? " The environment is on hold, so they wait for the release." : "";
  return `${started} ${started === 1 ? "run" : "runs"} of ${name} started.${known}${next} See relay events list --relay ${name}`;
}
