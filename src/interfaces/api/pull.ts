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
    summary:
      "Lists what files may say of an environment, each thing with what the last sync brought of it and who changed it; at the end what was deleted since.",
    item: deployedStateView,
    large: true,
    list: (tx, { environmentId }, page) => listDeployedState(tx, environmentId, page),
  }),
  environmentRoute({
    method: "POST",
    path: "/sync/pulled",
    summary:
      "Says what files hold now, each by its mark: where it still stands so, a sync no longer asks before it replaces it. Nothing else changes.",
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
      known: Type.Integer({ description: "how many of them stand as the files hold them" }),
    }),
    async write(tx, { environment, body, nowMs }) {
      if (environment.name !== "development")
        throw new Refusal(
          "forbidden",
          "Only the development environment remembers what files hold, because only it takes a sync: pull without saying so.",
        );
      return { known: await recordPulled(tx, environment.id, body.items, nowMs) };
    },
  }),
];
