/** Senders, the providers with a known recipe: a searchable list, and one sender with the start of a relay for it. */
import { Type } from "typebox";
import { makePage, readPageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, orNull, pageOf, pageQuery } from "../../base/schema.ts";
import { requireRelay } from "../../rules/relay/relay.ts";
import { listSender, senderLine, senderView, viewSender } from "../../rules/senders/sender-view.ts";
import { environmentRoute, openRoute } from "../http/route.ts";

/** The registry loads at the first request. */
const readSenders = () => import("../../rules/senders/registry.ts");

export const senderRoutes = [
  openRoute({
    method: "GET",
    path: "/api/senders",
    summary: "Lists the senders whose recipe is known, by name, each with what it tells.",
    query: fields({
      ...pageQuery,
      q: Type.Optional(Type.String({ maxLength: 100, description: "a text in its name or its sentence" })),
    }),
    answer: pageOf(senderLine),
    async handle({ query }) {
      const { searchSenders } = await readSenders();
      const page = readPageRequest(query);
      const found = searchSenders(query.q ?? "");
      const first = page.after === null ? 0 : found.findIndex(({ name }) => name === page.after) + 1;
      return makePage(found.slice(first), page, ({ name }) => name, listSender);
    },
  }),
  openRoute({
    method: "GET",
    path: "/api/senders/:name",
    summary: "Shows a sender: a relay to begin with, where its secret is, an example event, its pitfalls.",
    answer: Type.Object({ sender: senderView }),
    async handle({ params }) {
      const { findSender } = await readSenders();
      const sender = findSender(params.name);
      if (sender === null)
        throw new Refusal("not_found", "There is no sender of this name: GET /api/senders lists them.");
      return { sender: viewSender(sender) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/relays/:name/sender",
    summary:
      "Shows the sender whose recipe a relay has, as its recipe, map and types tell; null where none is known.",
    answer: Type.Object({ sender: orNull(senderView) }),
    async handle({ deps, environmentId, params }) {
      const { recogniseSender } = await readSenders();
      const { definition } = await deps.store.read((tx) => requireRelay(tx, environmentId, params.name));
      const { trigger } = definition;
      const sender = trigger.kind === "receiver" ? recogniseSender(trigger) : null;
      return { sender: sender === null ? null : viewSender(sender) };
    },
  }),
];
