/** The rejected requests of a relay whose events are missing: the list, and closing it. */
import { Type } from "typebox";
import { deleteSettled, listSettled, markArrivals } from "../../engine/receiver/rejected-delivery.ts";
import { countRejected, rejectedView, showRejected } from "../../insight/overview/rejected.ts";
import { relayTarget, requireRelay } from "../../rules/relay/relay.ts";
import { environmentRoute } from "../http/route.ts";

export const rejectedRoutes = [
  environmentRoute({
    method: "GET",
    path: "/relays/:name/rejected",
    summary:
      "Lists the requests that a relay rejected before a request verified again, with the event ids that have not arrived. The ids are not verified.",
    answer: Type.Object({ rejected: rejectedView }),
    async handle({ deps, environmentId, params, nowMs }) {
      const { store } = deps;
      await deps.writeRecentRequests();
      const relay = await store.read((tx) => requireRelay(tx, environmentId, params.name));
      await markArrivals(store, nowMs, relay.id);
      return { rejected: await showRejected(store, environmentId, relay, nowMs) };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/relays/:name/rejected/close",
    summary:
      "Closes the list of rejected requests of a relay, and deletes it. Use it when nothing more is to come.",
    answer: Type.Object({
      requests: Type.Integer(),
      arrived: Type.Integer(),
      missing: Type.Integer(),
      withoutId: Type.Integer(),
    }),
    async write(tx, { environmentId, params, audit }) {
      const relay = await requireRelay(tx, environmentId, params.name);
      const rows = await listSettled(tx, environmentId, relay.id);
      const closed = countRejected(rows);
      if (rows.length === 0) return closed;
      await deleteSettled(tx, relay.id);
      await audit(tx, { action: "relay.rejections_closed", target: relayTarget(relay.name), before: closed });
      return closed;
    },
  }),
];
