/**
 * Routes about the service itself. Anyone can read whether the process is up, whether it is ready, and the changes of each release. Callers on this
 * machine can read the metrics in Prometheus' text format. Other callers need a secret key of any environment, or an owner's session. A request
 * through a proxy never counts as a call from this machine, even if the proxy runs on it.
 */
import { Type } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import { listChanges, writeChanges } from "../../base/release/feed.ts";
import { releaseView } from "../../base/release/release.ts";
import { VERSION } from "../../base/release/version.ts";
import { fields } from "../../base/schema.ts";
import { answerJson, answerText } from "../http/answer.ts";
import { identifyCaller } from "../http/caller.ts";
import { openRoute } from "../http/route.ts";

const LOOPBACK_SOURCE = /^(127\.|0:0:0:0::\/64$)/;
const LOOPBACK_HOST = /^(127(\.\d{1,3}){3}|localhost|\[::1\])(:\d{1,5})?$/i;
const PROXY_HEADERS = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

/**
 * Returns true if the address and the Host are this machine's and there was no proxy. The Host matters because a page with a rebound DNS name
 * sends its own.
 */
function isOwnMachine(request: Request, source: string): boolean {
  return (
    LOOPBACK_SOURCE.test(source) &&
    LOOPBACK_HOST.test(request.headers.get("host") ?? "") &&
    PROXY_HEADERS.every((name) => !request.headers.has(name))
  );
}

const sinceQuery = fields({
  since: Type.Optional(Type.String({ description: "a version such as 0.1.0" })),
});

function requireChanges(since: string | undefined) {
  const releases = listChanges(since);
  if (releases !== null) return releases;
  throw new Refusal("invalid_input", "since is not valid: write a version such as 0.1.0.");
}

export const aboutRoutes = [
  openRoute({
    method: "GET",
    path: "/healthz",
    summary: "Answers 200 while the process runs.",
    answer: Type.Object({ ok: Type.Boolean() }),
    handle: () => ({ ok: true }),
  }),
  openRoute({
    method: "GET",
    path: "/readyz",
    summary:
      "Answers 200 while the store accepts writes and the runner works; otherwise 503 with the problem.",
    answer: Type.Object({
      ready: Type.Boolean(),
      problem: Type.Optional(Type.String()),
      /** The node that answers and the number of its leases, if several nodes serve one database. */
      node: Type.Optional(Type.String()),
      holds: Type.Optional(
        Type.Object({ house: Type.Boolean(), environments: Type.Integer(), takeovers: Type.Integer() }),
      ),
    }),
    async handle({ deps }) {
      const state = await deps.checkReady();
      return state.ready ? state : answerJson(503, state);
    },
  }),
  openRoute({
    method: "GET",
    path: "/metrics",
    summary:
      "Returns the service's metrics in the Prometheus text format. From another machine, it needs a secret key of any environment.",
    answer: Type.String(),
    async handle({ deps, request, source, headers }) {
      if (!isOwnMachine(request, source)) {
        const caller = await identifyCaller(deps, { request, source }, headers);
        if (caller.kind === "key" && caller.key.kind !== "secret") {
          throw new Refusal("forbidden", "An app key cannot read metrics: use a secret key, from a server.");
        }
      }
      const { metrics } = deps;
      return answerText(200, await metrics.write(deps.store), { "content-type": metrics.contentType });
    },
  }),
  openRoute({
    method: "GET",
    path: "/changes.json",
    summary: "Lists what changed in each release, newest first.",
    query: sinceQuery,
    answer: Type.Object({ version: Type.String(), releases: Type.Array(releaseView) }),
    handle({ query }) {
      return { version: VERSION, releases: [...requireChanges(query.since)] };
    },
  }),
  openRoute({
    method: "GET",
    path: "/changes.txt",
    summary: "Returns what changed in each release as plain text, newest first.",
    query: sinceQuery,
    answer: Type.String(),
    handle: ({ query }) => answerText(200, writeChanges(requireChanges(query.since))),
  }),
];
