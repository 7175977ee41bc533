/** The client library itself, for pages of any origin: it holds nothing of anyone's. The same file is the published package's. */
import { Type } from "typebox";
import library from "../../client/g.js" with { type: "text" };
import { openRoute } from "./route.ts";
import { DATA_HEADERS } from "./security-header.ts";

const ETAG = `"${Bun.hash(library).toString(36)}"`;

const HEADERS = {
  ...DATA_HEADERS,
  "access-control-allow-origin": "*",
  "cross-origin-resource-policy": "cross-origin",
  "content-type": "text/javascript; charset=utf-8",
  "cache-control": "public, no-cache",
  etag: ETAG,
};

export const clientLibraryRoutes = [
  openRoute({
    method: "GET",
    path: "/client/g.js",
    summary: "Serves the client library, an ES module.",
    answer: Type.String(),
    handle({ request }) {
      const known = request.headers.get("if-none-match")?.includes(ETAG) ?? false;
      return known
        ? new Response(null, { status: 304, headers: HEADERS })
        : new Response(library, { headers: HEADERS });
    },
  }),
];
