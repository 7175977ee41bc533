/** Code for the called server that verifies the notices of call_url, by language. */
import { Type } from "typebox";
import { makePage, readPageRequest } from "../../base/page.ts";
import { fields, pageOf, pageQuery } from "../../base/schema.ts";
import { NOTICE_VERIFIERS } from "../../rules/action/notice-verifier.ts";
import { openRoute } from "../http/route.ts";

export const verifierRoutes = [
  openRoute({
    method: "GET",
    path: "/api/verifiers",
    summary: "Lists code that verifies the calls of call_url on your server, one file for each language.",
    query: fields(pageQuery),
    answer: pageOf(
      Type.Object({
        language: Type.String(),
        title: Type.String(),
        file: Type.String({ description: "the name of the file to save the code in" }),
        code: Type.String(),
      }),
    ),
    handle({ query }) {
      const page = readPageRequest(query);
      const first = NOTICE_VERIFIERS.findIndex(({ language }) => language === page.after) + 1;
      return makePage(
        NOTICE_VERIFIERS.slice(first),
        page,
        ({ language }) => language,
        (one) => one,
      );
    },
  }),
];
