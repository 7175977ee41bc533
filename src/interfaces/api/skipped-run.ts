/** The runs of a schedule that a hold skipped: the list, and starting some of them. */
import { Type } from "typebox";
import {
  listSkippedRuns,
  skippedRunsView,
  startedRunsView,
  startRunsInput,
  startSkippedRuns,
} from "../../engine/schedule/skipped-run.ts";
import { environmentRoute } from "../http/route.ts";

export const skippedRunRoutes = [
  environmentRoute({
    method: "GET",
    path: "/relays/:name/skipped",
    needs: "read",
    summary:
      "Lists the runs of a schedule that a hold of the environment skipped and that have no event, of the last 100 that belong to the current trigger.",
    answer: Type.Object({ skipped: skippedRunsView }),
    async handle({ deps, environmentId, params, nowMs }) {
      const skipped = await deps.store.write(
        "app",
        (tx) => listSkippedRuns(tx, environmentId, params.name, nowMs),
        environmentId,
      );
      return { skipped };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/relays/:name/skipped/run",
    needs: "replay",
    summary:
      "Starts skipped runs of a schedule, each with its scheduled time. A run that has an event is not started again. During a hold, the runs wait.",
    body: startRunsInput,
    answer: startedRunsView,
    write: (tx, { params, body, change }) => startSkippedRuns(tx, params.name, body, change),
  }),
];
