/** The change feed, as JSON and as text, and the page of each error code. Open to anyone. */
import { Type } from "typebox";
import { Refusal } from "../ground/refusal.ts";
import { explainCode } from "../ground/result-code.ts";
import { fields, orNull } from "../ground/schema.ts";
import { VERSION } from "../release/change.ts";
import { listChanges, writeChanges } from "../release/feed.ts";
import { answerText } from "./answer.ts";
import { openRoute } from "./route.ts";

const sinceQuery = fields({
  since: Type.Optional(Type.String({ description: "a version such as 0.1.0" })),
});

const release = Type.Object({
  version: Type.String(),
  changes: Type.Array(
    Type.Object({ subject: Type.String(), was: orNull(Type.String()), now: Type.String() }),
  ),
  codesAdded: Type.Array(Type.String()),
  codesRemoved: Type.Array(Type.String()),
});

function requireChanges(since: string | undefined) {
  const releases = listChanges(since);
  if (releases !== null) return [...releases];
  throw new Refusal("invalid_input", "since is not valid: write a version such as 0.1.0.");
}

export const changeRoutes = [
  openRoute({
    method: "GET",
    path: "/changes.json",
    summary: "Lists what changed in each release, newest first.",
    query: sinceQuery,
    answer: Type.Object({ version: Type.String(), releases: Type.Array(release) }),
    handle({ query }) {
      const releases = requireChanges(query.since).map((entry) => ({
        ...entry,
        changes: [...entry.changes],
        codesAdded: [...entry.codesAdded],
        codesRemoved: [...entry.codesRemoved],
      }));
      return { version: VERSION, releases };
    },
  }),
  openRoute({
    method: "GET",
    path: "/changes.txt",
    summary: "Tells what changed in each release as plain text, newest first.",
    query: sinceQuery,
    answer: Type.String(),
    handle: ({ query }) => answerText(200, writeChanges(requireChanges(query.since))),
  }),
  openRoute({
    method: "GET",
    path: "/docs/errors/:code",
    summary: "Explains one error code: when it happens and what to do.",
    answer: Type.Object({
      code: Type.String(),
      status: orNull(Type.Integer()),
      when: Type.String(),
      todo: Type.String(),
    }),
    handle({ request, params }) {
      const { code } = params;
      const found = explainCode(code);
      if (found === null) throw new Refusal("not_found", "There is no error code of this name.");
      const { status, when, todo } = found;
      if (!(request.headers.get("accept") ?? "").includes("text/")) return { code, status, when, todo };
      return answerText(
        200,
        `${code} (${status ?? "in an event's results"})\n\nWhen: ${when}\nWhat to do: ${todo}\n`,
      );
    },
  }),
];
