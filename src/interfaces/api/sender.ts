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
    summary: "Lists the senders with a known recipe, by name, each with what it sends.",
    query: fields({
      ...pageQuery,
      q: Type.Optional(Type.String({ maxLength: 100, description: "a text in the name or the description" })),
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
    summary:
      "Shows a sender: a relay to start from, where to find its secret, an example event, and pitfalls.",
    answer: Type.Object({ sender: senderView }),
    async handle({ params }) {
      const { findSender } = await readSenders();
      const sender = findSender(params.name);
      if (sender === null)
        throw new Refusal(
          "not_found",
          "There is no sender with this name: GET /api/senders lists the senders.",
        );
      return { sender: viewSender(sender) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/relays/:name/sender",
    needs: "read",
    summary:
      "Shows the sender that matches the recipe, map and types of a relay. The value is null if no known sender matches.",
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
