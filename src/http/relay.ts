/** Relays: the list, making, saving, deleting, and looking at a definition without saving it. */
import { Type } from "typebox";
import { readPageRequest } from "../ground/page.ts";
import { fields, orNull, pageOf, pageQuery } from "../ground/schema.ts";
import { checkDefinition } from "../relay/definition.ts";
import { warnOwnHost } from "../relay/definition-warning.ts";
import { warnOfReferences } from "../relay/relay-reference.ts";
import { deleteRelay } from "../relay/relay-remove.ts";
import { requireRelay } from "../relay/relay-row.ts";
import { createRelay, updateRelay } from "../relay/relay-save.ts";
import { listRelays, showRelay } from "../relay/relay-view.ts";
import { checkWrites } from "../relay/write-reference.ts";
import { definition, relay, relayContext, relayItem, savedRelay } from "./relay-schema.ts";
import { environmentRoute } from "./route.ts";

/** A save through the API counts as the dashboard's: a sync asks before it replaces it. */
const SAVED_HERE = { kind: "dashboard", synced: false } as const;

export const relayRoutes = [
  environmentRoute({
    method: "GET",
    path: "/relays",
    summary: "Lists relays, newest first, each with how its events of the last 24 hours ended.",
    query: fields(pageQuery),
    answer: pageOf(relayItem),
    async handle(call) {
      const { deps, query } = call;
      const page = readPageRequest(query);
      const context = relayContext(call);
      return await deps.store.read((tx) => listRelays(tx, context, page));
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/relays",
    summary: "Makes a relay; a secret that is minted stands in this answer and in no other.",
    body: fields({
      definition,
      secret: Type.Optional(orNull(Type.String({ description: "the sender's secret or public key" }))),
      signingSecret: Type.Optional(orNull(Type.String({ description: "a secret to sign notices with" }))),
    }),
    answer: savedRelay,
    status: 201,
    async handle(call) {
      const { deps, origin, body } = call;
      const input = {
        definition: body.definition,
        secret: body.secret ?? null,
        signingSecret: body.signingSecret ?? null,
        origin: SAVED_HERE,
      };
      const context = relayContext(call);
      return await deps.store.write(origin, (tx) => createRelay(tx, context, input));
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/relays/validate",
    summary: "Tells every problem and warning of a definition without saving it.",
    body: fields({ definition }),
    answer: Type.Object({
      problems: Type.Array(Type.Object({ field: Type.String(), message: Type.String() })),
      warnings: Type.Array(Type.String()),
    }),
    async handle({ deps, environment, body, nowMs }) {
      const checked = checkDefinition(body.definition, nowMs);
      if ("problems" in checked) return { problems: checked.problems, warnings: [] };
      return await deps.store.read(async (tx) => ({
        problems: await checkWrites(tx, environment.id, checked.definition),
        warnings: [
          ...checked.warnings,
          ...warnOwnHost(checked.definition, deps.baseUrl()),
          ...(await warnOfReferences(tx, environment.id, checked.definition)),
        ],
      }));
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/relays/:name",
    summary: "Shows one relay with its definition, what is known of its secrets, and its problems.",
    answer: Type.Object({ relay }),
    async handle(call) {
      const { deps, environment, params } = call;
      const context = relayContext(call);
      return await deps.store.read(async (tx) => {
        const row = await requireRelay(tx, environment.id, params.name);
        return { relay: await showRelay(tx, context, row) };
      });
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/relays/:name",
    summary: "Replaces a relay's definition, which was read at the given version.",
    body: fields({ definition, version: Type.Integer({ description: "the version you read, an integer" }) }),
    answer: savedRelay,
    async handle(call) {
      const { deps, origin, params, body } = call;
      const context = relayContext(call);
      const input = { definition: body.definition, version: body.version, origin: SAVED_HERE };
      const saved = await deps.store.write(origin, (tx) => updateRelay(tx, context, params.name, input));
      return saved;
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/relays/:name",
    summary: "Deletes a relay with its secrets; its receiver answers 404 from then on.",
    answer: null,
    async handle(call) {
      const { deps, origin, params } = call;
      const context = relayContext(call);
      await deps.store.write(origin, (tx) => deleteRelay(tx, context, params.name));
      return undefined;
    },
  }),
];
