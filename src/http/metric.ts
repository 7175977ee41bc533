/**
 * The metrics in Prometheus' text format. Open to this machine's own callers; anyone else needs a secret key, of whatever environment, or
 * an owner's session. What came through a proxy is never this machine's own, wherever the proxy stands.
 */
import { Type } from "typebox";
import { Refusal } from "../ground/refusal.ts";
import { answerText } from "./answer.ts";
import { identifyCaller } from "./caller.ts";
import { openRoute } from "./route.ts";

const LOOPBACK_SOURCE = /^(127\.|0:0:0:0::\/64$)/;
const LOOPBACK_HOST = /^(127(\.\d{1,3}){3}|localhost|\[::1\])(:\d{1,5})?$/i;
const PROXY_HEADERS = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

export const metricRoutes = [
  openRoute({
    method: "GET",
    path: "/metrics",
    summary:
      "Tells the service's metrics in Prometheus' text format; off loopback with a secret key of any environment.",
    answer: Type.String(),
    async handle({ deps, request, source, headers }) {
      if (!isOwnMachine(request, source)) {
        const caller = await identifyCaller(deps, request, headers);
        if (caller.kind === "key" && caller.key.kind !== "secret") {
          throw new Refusal("forbidden", "An app key reads no metrics: use a secret key, from a server.");
        }
      }
      const { metrics } = deps;
      return answerText(200, await metrics.write(deps.store), { "content-type": metrics.contentType });
    },
  }),
];

/** By address, by the name it was called under (a page whose name was pointed here carries its own), and through nobody. */
function isOwnMachine(request: Request, source: string): boolean {
  return (
    LOOPBACK_SOURCE.test(source) &&
    LOOPBACK_HOST.test(request.headers.get("host") ?? "") &&
    PROXY_HEADERS.every((name) => !request.headers.has(name))
  );
}
