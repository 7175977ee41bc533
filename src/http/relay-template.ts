/** The templates a relay may start from. Open to anyone: they hold nothing of anyone's. */
import { t } from "elysia";
import { RELAY_TEMPLATES } from "../relay/relay-template.ts";
import { openRoute } from "./route.ts";

export const relayTemplateRoutes = [
  openRoute({
    method: "GET",
    path: "/api/relay-templates",
    summary: "Lists definitions to start from, each with what it names and what is left to do.",
    answer: t.Object({
      items: t.Array(
        t.Object({
          name: t.String(),
          title: t.String(),
          summary: t.String(),
          definition: t.Unknown(),
          catalog: t.Unknown({ description: "in the shape of catalog.json" }),
          steps: t.Array(t.String()),
        }),
      ),
    }),
    handle: () => ({ items: RELAY_TEMPLATES.map((one) => ({ ...one, steps: [...one.steps] })) }),
  }),
];
