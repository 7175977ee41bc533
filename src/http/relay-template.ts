/** The templates a relay may start from. Open to anyone: they hold nothing of anyone's. */
import { Type } from "typebox";
import { makePage, readPageRequest } from "../ground/page.ts";
import { fields, pageOf, pageQuery } from "../ground/schema.ts";
import { RELAY_TEMPLATES } from "../relay/relay-template.ts";
import { openRoute } from "./route.ts";

export const relayTemplateRoutes = [
  openRoute({
    method: "GET",
    path: "/api/relay-templates",
    summary: "Lists definitions to start from, each with what it names and what is left to do.",
    query: fields(pageQuery),
    answer: pageOf(
      Type.Object({
        name: Type.String(),
        title: Type.String(),
        summary: Type.String(),
        definition: Type.Unknown(),
        catalog: Type.Unknown({ description: "in the shape of catalog.json" }),
        steps: Type.Array(Type.String()),
      }),
    ),
    handle({ query }) {
      const page = readPageRequest(query);
      const first =
        page.after === null ? 0 : RELAY_TEMPLATES.findIndex(({ name }) => name === page.after) + 1;
      return makePage(
        RELAY_TEMPLATES.slice(first),
        page,
        ({ name }) => name,
        (one) => ({ ...one, steps: [...one.steps] }),
      );
    },
  }),
];
