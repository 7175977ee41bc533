/** Carries a server's development environment into production after an owner approves it (`relay promote`). */

import type { PlanPreview } from "../../../operator/sync/plan-view.ts";
import { requireServer } from "../api/connect.ts";
import { TARGET } from "../api/target.ts";
import type { Command } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { readServiceDir, SERVICE_DIR } from "../service-option.ts";
import { carryLive, LIVE_EXIT_CODES, OPEN, requireSecretsFile } from "./live.ts";
import { DRY_RUN, decidePlan, printLeft, REPLACE } from "./plan-decision.ts";

export const promote: Command = {
  words: ["promote"],
  summary: "promote development to production",
  details: `The command shows the plan first: relays and the catalog, with each field that differs. An owner must approve exactly this plan in the browser within 10 minutes. The command waits, then applies the plan in one transaction. A change of either environment meanwhile voids the approval.\nThe command deletes nothing and copies no data and no secrets. It writes new secrets of production to .secrets.json of the service directory. It does not promote a relay that breaks the unsigned-event rule. A relay with trustUnsignedEvents is promoted with a warning. Edits of production since the last promotion are replaced if you confirm, or with --yes. A key of either environment works.\n${LIVE_EXIT_CODES}`,
  options: [DRY_RUN, REPLACE, OPEN, JSON_OUTPUT, ...TARGET, SERVICE_DIR],
  examples: ["relay promote --dry-run", "relay promote --profile shop --open", "relay promote --yes --json"],
  async run(input, io) {
    const remote = await requireServer(input, io);
    const sent = { from: "development", to: "production" };
    const pull = "relay pull with a profile of production, then relay sync to development";
    const serviceDir = readServiceDir(input, io);
    const requireReady = (plan: PlanPreview) => requireSecretsFile(plan, serviceDir);
    const place = `${remote.url}/${remote.app}/production`;
    const sides = { source: "the content of development", into: " of production", pull, place, requireReady };
    const decided = await decidePlan(remote, sent, sides, input, io);
    if (decided.code !== null) return decided.code;
    const change = { decided, serviceDir, requireSame: async () => undefined };
    const done = await carryLive(remote, change, input, io);
    if (typeof done === "number") return done;
    return printLeft(decided.left, sides.pull, io);
  },
};
