/** The rejected requests of a relay whose events are missing: the list, and closing it. */
import { Type } from "typebox";
import { deleteSettled } from "../../engine/receiver/rejected-delivery.ts";
import { clearProblem } from "../../platform/audit/problem.ts";
import {
  countRejected,
  listRejected,
  REQUESTS_REJECTED,
  rejectedView,
  showRejected,
} from "../../rules/relay/rejected-request.ts";
import { relayTarget, requireRelay } from "../../rules/relay/relay.ts";
import { environmentRoute } from "../http/route.ts";

export const rejectedRoutes = [
  environmentRoute({
    method: "GET",
    path: "/relays/:name/rejected",
    needs: "read",
    summary:
      "Lists the requests that a relay rejected because of its secret or recipe, and which of their events arrived later. The ids are not verified.",
    answer: Type.Object({ rejected: rejectedView }),
    async handle({ deps, environmentId, params, nowMs }) {
      await deps.writeRecentRequests();
      return await deps.store.read(async (tx) => {
        const relay = await requireRelay(tx, environmentId, params.name);
        return { rejected: await showRejected(tx, relay, nowMs) };
      });
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/relays/:name/rejected/close",
    needs: "replay",
    summary:
      "Closes the list of rejected requests of a relay, and deletes it. Use it when nothing more is to come.",
    answer: Type.Object({
      requests: Type.Integer(),
      arrived: Type.Integer(),
      missing: Type.Integer(),
      withoutId: Type.Integer(),
    }),
    async write(tx, { environmentId, params, audit, change: { nowMs } }) {
      const relay = await requireRelay(tx, environmentId, params.name);
      const rows = (await listRejected(tx, relay.id)).filter(({ settled }) => settled === 1);
      const closed = countRejected(rows);
      if (rows.length === 0) return closed;
      await deleteSettled(tx, relay.id);
      const target = relayTarget(relay.name);
      await clearProblem(tx, { environmentId, code: REQUESTS_REJECTED, target, nowMs });
      await audit(tx, { action: "relay.rejections_closed", target, before: closed });
      return closed;
    },
  }),
];
