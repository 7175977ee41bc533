/** Changes that show their plan first: the server reports the plan, a person confirms it, and then the server makes the change. */
import { writeJson } from "../../../base/json.ts";
import type { Api } from "../api/api.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import type { Input, Option } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { requireYes } from "./confirm.ts";

export const PLANNED: readonly Option[] = [
  { name: "plan", help: "show the plan and change nothing" },
  { name: "yes", help: "make the change without a question" },
  JSON_OUTPUT,
  ...ANYWHERE,
];

/** The answer of a route with `plan`. */
interface Planned {
  plan: { message: string };
}

interface PlannedChange {
  path: string;
  body: Record<string, string>;
  question: string;
  /** Says what did not happen, such as `Nothing was moved`. */
  undone: string;
  /** The command without a question. */
  line: string;
}

/** Shows the plan of a change and makes the change after a yes. Returns the answer, or null with --plan. */
export async function makePlannedChange<Answer extends Planned>(
  input: Input,
  io: Io,
  find: (api: Api) => Promise<PlannedChange>,
): Promise<Answer | null> {
  const access = input.on("plan") ? "read" : "write";
  const made = await withApi<{ answer: Answer; isPlan: boolean }>(access, input, io, async (api) => {
    const { path, body, ...words } = await find(api);
    const planned = await api.request<Answer>("POST", path, { ...body, plan: true });
    if (input.on("plan")) return { answer: planned, isPlan: true };
    io.inform(planned.plan.message);
    if (!input.on("yes")) await requireYes(io, words);
    return { answer: await api.request<Answer>("POST", path, body), isPlan: false };
  });
  if (input.on("json")) io.print(writeJson(made.answer, 2));
  if (!made.isPlan) return made.answer;
  if (!input.on("json")) io.print(made.answer.plan.message);
  return null;
}
