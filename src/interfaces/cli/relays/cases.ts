/** Lists, keeps, runs and removes the cases of a relay (`relay relays cases`). */
import { resolve } from "node:path";
import { writeJson } from "../../../base/json.ts";
import { plain } from "../../../base/text.ts";
import type { CaseReport } from "../../../insight/simulate/case-run.ts";
import type { CaseResult, CaseView } from "../../../rules/relay/relay-case.ts";
import type { Api } from "../api/api.ts";
import { withApi } from "../api/connect.ts";
import { type Command, CommandFailure, type Input, UsageError } from "../command.ts";
import type { Io } from "../io.ts";
import { NAME, OF_RELAY } from "./relays.ts";
import { pathOf } from "./request.ts";

/** The exit code if a case has a different result. */
const CHANGED_EXIT_CODE = 3;

export const relaysCases: Command = {
  words: ["relays", "cases"],
  summary: "list, keep and run the cases of a relay",
  details:
    "A case is an example request that is kept with its result. Each save, sync and promote runs the cases without effect, and warns if a result has changed.\n--keep without --data keeps a stored case again, with its result now.\nExit codes:\n  0: done; with --run, each case has its kept result\n  1: refused or failed\n  3: with --run, a case has a different result",
  arguments: [NAME],
  options: [
    { name: "keep", value: "<case>", help: "keep the request in --data as this case" },
    { name: "data", value: "<file|->", help: "the body of the request; - reads standard input" },
    { name: "remove", value: "<case>", help: "remove this case" },
    { name: "run", help: "run the cases and compare; this has no effect" },
    ...OF_RELAY,
  ],
  examples: [
    "relay relays cases orders",
    "relay relays cases orders --keep paid --data paid.json",
    "relay relays cases orders --run",
    "relay relays cases orders --remove paid",
  ],
  async run(input, io) {
    const [keep, remove] = [input.text("keep"), input.text("remove")];
    const chosen = [keep !== null, remove !== null, input.on("run")].filter(Boolean).length;
    if (chosen > 1) throw new UsageError("--keep, --remove and --run cannot be combined: give one of them.");
    if (input.text("data") !== null && keep === null)
      throw new UsageError("--data has the request of a case: add --keep <case>, or leave --data out.");
    const path = `${pathOf(input.first())}/cases`;
    const isWrite = keep !== null || remove !== null;
    return await withApi(isWrite ? "write" : "read", input, io, async (api) => {
      if (keep !== null) return await keepCase(api, path, keep, input, io);
      if (remove !== null) {
        await api.command("DELETE", `${path}/${encodeURIComponent(remove)}`);
        if (input.on("json")) io.print(writeJson({ removed: remove }, 2));
        else io.inform(`The case ${plain(remove)} is removed.`);
        return 0;
      }
      if (input.on("run")) return await runCases(api, path, input, io);
      const { cases } = await api.request<{ cases: CaseView[] }>("GET", path);
      if (input.on("json")) io.print(writeJson({ cases }, 2));
      else if (cases.length === 0)
        io.inform("The relay has no cases. Keep one: --keep <case> --data <file>.");
      for (const one of input.on("json") ? [] : cases)
        io.print(`${plain(one.name)}  ${formatResult(one.expected)}  ${one.updatedAt}`);
      return 0;
    });
  },
};

async function keepCase(api: Api, path: string, name: string, input: Input, io: Io): Promise<number> {
  const data = input.text("data");
  const body = data === null ? null : data === "-" ? await io.readInput() : await readBody(data, io);
  const sent = body === null ? {} : { body };
  const { case: kept } = await api.request<{ case: CaseView }>(
    "PUT",
    `${path}/${encodeURIComponent(name)}`,
    sent,
  );
  if (input.on("json")) io.print(writeJson({ case: kept }, 2));
  else io.inform(`Kept the case ${plain(name)}: ${formatResult(kept.expected)}.`);
  return 0;
}

async function readBody(path: string, io: Io): Promise<string> {
  const file = Bun.file(resolve(io.cwd, path));
  if (await file.exists()) return await file.text();
  throw new CommandFailure(
    "not_found",
    `There is no file ${plain(path)}: give --data the path of the request's body.`,
  );
}

async function runCases(api: Api, path: string, input: Input, io: Io): Promise<number> {
  const { report } = await api.request<{ report: CaseReport | null }>("POST", `${path}/run`, {});
  if (input.on("json")) io.print(writeJson({ report }, 2));
  else io.print(report === null ? "The relay has no cases." : plain(report.message));
  return report === null || report.asBefore === report.total ? 0 : CHANGED_EXIT_CODE;
}

function formatResult({ ends, why, actions }: CaseResult): string {
  const types = actions.map(({ type }) => type).join(", ");
  if (why !== null) return `${ends} (${plain(why)})`;
  return types === "" ? ends : `${ends}: ${plain(types)}`;
}
