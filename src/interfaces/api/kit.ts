/** Selling kits: the providers that have one, the relays and the catalog of one kit with the seller's names, and the save of a kit. */
import { type Static, Type } from "typebox";
import { makePage, readPageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, pageOf, pageQuery, savedFile, warningView } from "../../base/schema.ts";
import { CATALOG_TARGET } from "../../operator/sync/local-problem.ts";
import { saveNew } from "../../operator/sync/plan-apply.ts";
import { appliedView } from "../../operator/sync/plan-view.ts";
import { relayTarget } from "../../rules/relay/relay.ts";
import { kitLine, kitView, listKit, viewKit } from "../../rules/senders/kit-view.ts";
import { findDefaultPlan } from "../../shop/selling/plan.ts";
import { environmentRoute, openRoute } from "../http/route.ts";
import { saveToFiles } from "../http/saved-file.ts";
import { relayContext } from "./relay-context.ts";
import { readSent } from "./sync.ts";

/** The kits load at the first request. */
const readKits = async () => ({
  ...(await import("../../rules/senders/kit-registry.ts")),
  ...(await import("../../rules/senders/kit-definitions.ts")),
  ...(await import("../../rules/senders/registry.ts")),
});

const kitName = (what: string, usual: string) =>
  Type.Optional(
    Type.String({
      maxLength: 40,
      description: `the name of ${what}, at most 40 characters; ${usual} if absent`,
    }),
  );

const kitNames = {
  product: kitName("the product", "course"),
  plan: kitName("the first plan", "basic"),
  plan2: kitName("the second plan", "pro"),
};

const savedKit = Type.Object({
  source: Type.String({ description: "the relay that has the receiver URL and the secret" }),
  relays: Type.Array(Type.String(), { description: "the kit's relays, the source first" }),
  changes: Type.Integer({ description: "how many relays and catalog items were created" }),
  secrets: appliedView.properties.secrets,
  warnings: Type.Array(warningView),
  ...savedFile,
});
export type SavedKit = Static<typeof savedKit>;

/** Finds a kit with the seller's names. Throws `not_found` for a provider without one, and `invalid_input` for a name. */
async function requireKit(name: string, names: { product?: string; plan?: string; plan2?: string }) {
  const { findKit, KIT_NAMES, requireSender } = await readKits();
  const kit = findKit(name);
  if (kit === null)
    throw new Refusal("not_found", "There is no kit for this provider: GET /api/kits lists the kits.");
  return viewKit(kit, requireSender(kit.sender), { ...KIT_NAMES, ...names });
}

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
    query: fields(kitNames),
    answer: Type.Object({ kit: kitView }),
    async handle({ params, query }) {
      return { kit: await requireKit(params.sender, query) };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/kits/:sender",
    needs: "edit_definitions",
    summary:
      "Saves the relays and the catalog of a selling kit in one transaction, except in production. Only this response has new secrets.",
    body: fields(kitNames),
    answer: savedKit,
    status: 201,
    async handle(call) {
      const { deps, environment, environmentId, origin, params, body, nowMs } = call;
      if (environment.name === "production")
        throw new Refusal(
          "approval_needed",
          "Production accepts no complete kit without an owner's approval: save it in development, try it there, then promote it with relay promote.",
        );
      const kit = await requireKit(params.sender, body);
      const { withoutDefaultPlan } = await readKits();
      const relays = kit.relays.map(({ definition }) => definition);
      const hasDefault = (await deps.store.read((tx) => findDefaultPlan(tx, environmentId))) !== null;
      const catalog = hasDefault ? withoutDefaultPlan(kit.catalog) : kit.catalog;
      const { files, warnings } = await readSent({ relays, catalog }, false, nowMs);
      const cap = deps.syncCap.makeCap(environment, nowMs);
      const names = relays.map(({ name }) => String(name));
      return await saveToFiles(deps.projectFolder, [CATALOG_TARGET, ...names.map(relayTarget)], async () => {
        const saved = await deps.store.write(origin, (tx) => saveNew(tx, relayContext(call), files, cap));
        const { changes, entries, secrets } = saved;
        const ofEntries = entries.flatMap((entry) => entry.warnings);
        return {
          source: kit.sender,
          relays: names,
          changes,
          secrets,
          warnings: [...warnings, ...ofEntries, ...saved.warnings],
        };
      });
    },
  }),
];
