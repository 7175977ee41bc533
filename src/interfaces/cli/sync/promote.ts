/** Carries a server's development environment into production after an owner approves it (`relay promote`). */

import { requireServer } from "../api/connect.ts";
import { TARGET } from "../api/target.ts";
import type { Command } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { readServiceDir, SERVICE_DIR } from "../service-option.ts";
import { carryLive, LIVE_EXIT_CODES, OPEN } from "./live.ts";
import { DRY_RUN, decidePlan, REPLACE } from "./plan-decision.ts";

export const promote: Command = {
  words: ["promote"],
  summary: "carry development into production, once approved",
  details: `What stands in a server's development environment goes into production, with an owner's approval. The plan is shown first: relays and the catalog, each difference by its field. An owner then approves exactly that plan in the browser, once, within 10 minutes; the command waits and carries it out in one transaction, and a change of either environment meanwhile voids it. Nothing is deleted; data and secrets stay where they are, and secrets that production makes are written to .secrets.json of the service directory. A relay that breaks the unsigned-event rule is named and not carried; one that takes unsigned events by trustUnsignedEvents is carried with its warning. What was edited in production since the last time is replaced when you say so in the terminal, or with --yes. A key of either environment asks. ${LIVE_EXIT_CODES}`,
  options: [DRY_RUN, REPLACE, OPEN, JSON_OUTPUT, ...TARGET, SERVICE_DIR],
  examples: ["relay promote --dry-run", "relay promote --profile shop --open", "relay promote --yes --json"],
  async run(input, world) {
    const remote = await requireServer(input, world);
    const sent = { from: "development", to: "production" };
    const sides = { source: "what stands in development", into: " of production" };
    const decided = await decidePlan(remote, sent, sides, input, world);
    if (typeof decided === "number") return decided;
    const serviceDir = readServiceDir(input, world);
    const change = { sent, decided, serviceDir, requireSame: async () => undefined };
    const done = await carryLive(remote, change, input, world);
    return typeof done === "number" ? done : 0;
  },
};
