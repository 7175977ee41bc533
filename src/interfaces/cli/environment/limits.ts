/** Lists how much of its limits an environment uses (`relay limits list`). */
import { formatCount } from "../../../base/text.ts";
import type { LimitUsage } from "../../../insight/overview/limit-usage.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import type { Command } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { printList } from "../terminal/terminal.ts";

/** The share of a limit from which it needs attention. */
const NEAR = 0.6;

export const limitsList: Command = {
  words: ["limits", "list"],
  summary: "list how much of each limit is used",
  details:
    "The list leaves out per-minute limits. relay config shows the value and the source of every limit.",
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay limits list", "relay limits list --profile shop --json"],
  async run(input, io) {
    const { limits } = await withApi("read", input, io, (api) =>
      api.request<{ limits: LimitUsage[] }>("GET", "/limits"),
    );
    const share = ({ used, limit }: LimitUsage): number => used / limit;
    await printList(input, io, limits, {
      columns: [
        { heading: "USED", value: ({ used }) => formatCount(used) },
        { heading: "LIMIT", value: ({ limit }) => formatCount(limit) },
        {
          heading: "SHARE",
          value: (one) => `${Math.floor(100 * share(one))} %`,
          tone: (one) => (share(one) >= NEAR ? "bad" : "quiet"),
        },
        { heading: "OF", value: ({ counts }) => counts, wrap: true },
        { heading: "VARIABLE", value: ({ variable }) => variable },
      ],
      none: "No limit is measured.",
    });
  },
};
