/** Selling kits: the providers that have one, and the relays and the catalog of one kit with the seller's names. */
import { Type } from "typebox";
import { makePage, readPageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, pageOf, pageQuery } from "../../base/schema.ts";
import { kitLine, kitView, listKit, viewKit } from "../../rules/senders/kit-view.ts";
import { openRoute } from "../http/route.ts";

/** The kits load at the first request. */
const readKits = async () => ({
  ...(await import("../../rules/senders/kit-registry.ts")),
  ...(await import("../../rules/senders/kit-definitions.ts")),
  ...(await import("../../rules/senders/registry.ts")),
});

const kitName = (what: string) =>
  Type.Optional(Type.String({ maxLength: 40, description: `the name of ${what} in the catalog` }));

export const kitRoutes = [
  openRoute({
    method: "GET",
    path: "/api/kits",
    summary: "Lists the selling kits, by provider, each with what the provider's events do not say.",
    query: fields(pageQuery),
    answer: pageOf(kitLine),
    async handle({ query }) {
      const { KITS, requireSender } = await readKits();
      const page = readPageRequest(query);
      const first = page.after === null ? 0 : KITS.findIndex(({ sender }) => sender === page.after) + 1;
      return makePage(
        KITS.slice(first),
        page,
        ({ sender }) => sender,
        (kit) => listKit(kit, requireSender(kit.sender)),
      );
    },
  }),
  openRoute({
    method: "GET",
    path: "/api/kits/:sender",
    summary:
      "Shows a selling kit with the seller's names: its relays, its catalog, the steps at the provider.",
    query: fields({
      product: kitName("the product; course if absent"),
      plan: kitName("the first plan; basic if absent"),
      plan2: kitName("the second plan; pro if absent"),
    }),
    answer: Type.Object({ kit: kitView }),
    async handle({ params, query }) {
      const { findKit, KIT_NAMES, requireSender } = await readKits();
      const kit = findKit(params.sender);
      if (kit === null)
        throw new Refusal("not_found", "There is no kit for this provider: GET /api/kits lists the kits.");
      return { kit: viewKit(kit, requireSender(kit.sender), { ...KIT_NAMES, ...query }) };
    },
  }),
];
