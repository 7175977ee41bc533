/** Lists current problems and sent alerts, and resolves them (`relay problems …`, `relay alerts …`). */

import { writeJson } from "../../../base/json.ts";
import type { AlertView } from "../../../platform/audit/alert.ts";
import type { ProblemView } from "../../../platform/audit/problem.ts";
import type { Api } from "../api/api.ts";
import { listItems, withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import type { Command, Input } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { expandId } from "../terminal/id-suffix.ts";
import { LIMIT, SINCE } from "../terminal/listing.ts";
import { printList } from "../terminal/terminal.ts";

/** Formats the hints, what happened and what to do. A server of an earlier version sends no hints. */
function formatWhat({ hints = [], message, todo }: Pick<AlertView, "hints" | "message" | "todo">): string {
  return [...hints, message, ...(todo === null ? [] : [todo])].join(" ");
}

export const problemsList: Command = {
  words: ["problems", "list"],
  summary: "list what is wrong now, and what to do about it",
  details:
    "Newest first. The list has everything that Home of the dashboard shows, such as a hold, dead events and open alerts.",
  options: [
    { name: "all", help: "also list problems that have ended" },
    SINCE,
    LIMIT,
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay problems list", "relay problems list --all --since 7d"],
  async run(input, io) {
    const standing = !input.on("all");
    const all = { all: String(!standing) };
    const time = { of: (one: ProblemView) => one.raisedAt, ordered: true };
    const problems = await listItems<ProblemView>(input, io, "/problems", all, time);
    await printList(input, io, problems, {
      columns: [
        { heading: "SINCE", value: (one) => one.raisedAt },
        { heading: "UNTIL", value: (one) => one.clearedAt ?? "" },
        {
          heading: "PROBLEM",
          value: (one) => one.code,
          tone: (one) => (one.clearedAt === null ? "bad" : "quiet"),
        },
        { heading: "OF", value: (one) => one.target },
        { heading: "WHAT", value: (one) => formatWhat(one), wrap: true },
      ],
      none: standing ? "There is no problem now." : "There is no problem, open or ended.",
    });
  },
};

export const alertsList: Command = {
  words: ["alerts", "list"],
  summary: "list open alerts, newest first",
  options: [{ name: "all", help: "also list resolved alerts" }, SINCE, LIMIT, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay alerts list", "relay alerts list --all --json"],
  async run(input, io) {
    const open = !input.on("all");
    const query = { open: String(open) };
    const time = { of: (one: AlertView) => one.lastAt, ordered: false };
    const alerts = await listItems<AlertView>(input, io, "/alerts", query, time);
    await printList(input, io, alerts, {
      columns: [
        { heading: "LAST", value: (one) => one.lastAt },
        { heading: "TIMES", value: (one) => String(one.count), right: true },
        { heading: "ALERT", value: (one) => one.code },
        { heading: "OF", value: (one) => one.target },
        { heading: "ID", value: (one) => one.id },
        {
          heading: "STATE",
          value: (one) => (one.resolvedAt === null ? "open" : `resolved by ${one.resolvedBy}`),
          tone: (one) => (one.resolvedAt === null ? "bad" : "quiet"),
        },
        { heading: "WHAT", value: (one) => formatWhat(one), wrap: true },
      ],
      none: open ? "No alert is open." : "There is no alert.",
    });
  },
};

export const alertsResolve: Command = {
  words: ["alerts", "resolve"],
  summary: "mark alerts as resolved",
  details:
    "This also ends their problems. Most alerts resolve automatically when their cause is gone and the dead events were replayed. Relay raises a new alert if the same thing happens again.",
  arguments: [{ name: "alert id", help: "as relay alerts list shows it, or its ending", many: true }],
  options: [{ name: "all", help: "resolve every open alert" }, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay alerts resolve alt_…", "relay alerts resolve --all"],
  async run(input, io) {
    const alerts = await withApi("write", input, io, (api) => resolveAlerts(api, input));
    if (input.on("json")) io.print(writeJson({ items: alerts }, 2));
    for (const { id, code, target } of alerts) io.inform(`${id} is resolved: ${code} of ${target}.`);
    if (alerts.length === 0) {
      io.inform(
        input.on("all")
          ? "No alert is open."
          : "No alert was resolved: name an alert by its id, as relay alerts list shows it, or write --all.",
      );
      return input.on("all") ? 0 : 1;
    }
    return 0;
  },
};

async function resolveAlerts(api: Api, input: Input): Promise<AlertView[]> {
  const open = input.on("all") ? await api.list<AlertView>("/alerts", { open: "true" }) : { items: [] };
  const done: AlertView[] = [];
  const named: string[] = [];
  for (const text of input.positionals)
    named.push(
      await expandId(text, "alerts", (most, cursor) => api.page<AlertView>("/alerts", {}, most, cursor)),
    );
  for (const id of new Set([...named, ...open.items.map(({ id }) => id)])) {
    const path = `/alerts/${encodeURIComponent(id)}/resolve`;
    done.push((await api.request<{ alert: AlertView }>("POST", path)).alert);
  }
  return done;
}
