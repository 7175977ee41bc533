/** The reverse of sync: returns the contents of an environment as files, and records that a local folder has them. */
import { Type } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import { fields, oneOf, orNull } from "../../base/schema.ts";
import {
  deployedStateView,
  listDeployedState,
  recordPulled,
  SYNC_ITEM_KINDS,
} from "../../operator/sync/deployed-state.ts";
import { environmentRoute, listRoute } from "../http/route.ts";

/** Maximum of items in a request, because one transaction checks them all. */
const MAX_PULLED = 100;

export const pullRoutes = [
  listRoute({
    path: "/sync/items",
    needs: "read",
    summary:
      "Lists the items of an environment that files can define, each with its version of the last sync and who changed it. Items deleted since then come last.",
    item: deployedStateView,
    large: true,
    list: (tx, { environmentId }, page) => listDeployedState(tx, environmentId, page),
  }),
  environmentRoute({
    method: "POST",
    path: "/sync/pulled",
    needs: "request_changes",
    summary:
      "Records what the files contain now, each item by its mark. A sync can then replace an item that is still the same without a question. Nothing else changes.",
    body: fields({
      items: Type.Array(
        fields({
          kind: oneOf(SYNC_ITEM_KINDS),
          name: Type.String({ maxLength: 200 }),
          mark: orNull(Type.String()),
        }),
        { maxItems: MAX_PULLED },
      ),
    }),
    answer: Type.Object({
      known: Type.Integer({ description: "how many of them are the same as in the files" }),
    }),
    async write(tx, { environment, body, nowMs }) {
      if (environment.name !== "development")
        throw new Refusal(
          "forbidden",
          "Only the development environment records what files contain, because only it accepts a sync: pull without this request.",
        );
      return { known: await recordPulled(tx, environment.id, body.items, nowMs) };
    },
  }),
];
