/** Imports missed events, which a provider lists and never delivered. A request contains a batch of lines and imports or previews it. */
import { Type } from "typebox";
import { MAX_MANAGEMENT_BODY_BYTES } from "../../base/limit.ts";
import { fields, oneOf } from "../../base/schema.ts";
import { updateRejected } from "../../engine/event/rejected-arrival.ts";
import { importEvents, importView } from "../../engine/receiver/import.ts";
import { environmentRoute } from "../http/route.ts";

export const missedRoutes = [
  environmentRoute({
    method: "POST",
    path: "/relays/:name/import-missed",
    needs: "edit_definitions",
    keepsDefinitions: true,
    summary:
      "Imports events that a receiver and its followers missed, each once. A line is JSON: an event, or a delivery { headers, body }. dryRun=true stores nothing.",
    query: fields({
      dryRun: Type.Optional(oneOf(["true", "false"])),
      file: Type.Optional(
        Type.String({
          pattern: "^[0-9a-f]{64}$",
          description: "the SHA-256 of the whole file in hex, if this body is a part of it",
        }),
      ),
      line: Type.Optional(
        Type.String({
          pattern: "^[1-9][0-9]{0,8}$",
          description: "the number of the first line in the file, from 1",
        }),
      ),
      version: Type.Optional(
        Type.String({ pattern: "^[0-9]{1,9}$", description: "the relay's version in the plan, an integer" }),
      ),
      followers: Type.Optional(
        Type.String({
          pattern: "^(none|([a-z0-9-]{1,63}@[0-9]{1,9}(,|$)){1,20})$",
          description: "the followers and their versions in the plan, as in archive@3,paid@1, or none",
        }),
      ),
    }),
    rawBytes: MAX_MANAGEMENT_BODY_BYTES,
    answer: importView,
    async handle({ deps: { store, relays }, origin, params, query, bytes, change, nowMs }) {
      const { dryRun, file = null, line = "1", version, followers = null } = query;
      const batch = {
        bytes,
        firstLine: Number(line),
        file,
        dryRun: dryRun === "true",
        version: version === undefined ? null : Number(version),
        followers,
      };
      const snapshot = await relays.current();
      const imported = await importEvents({ store, snapshot, origin }, params.name, batch, change);
      if (!batch.dryRun) await updateRejected(store, nowMs);
      return imported;
    },
  }),
];
