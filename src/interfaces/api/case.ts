/** Cases of a relay: example requests with their results, which each save compares. Running them writes, mails and calls nothing. */
import { Type } from "typebox";
import { MAX_CASE_BODY_BYTES } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, orNull } from "../../base/schema.ts";
import { utf8Bytes } from "../../base/text.ts";
import { type CaseDeps, caseReport, runCases, runRequest } from "../../insight/simulate/case-run.ts";
import { requireRelay } from "../../rules/relay/relay.ts";
import {
  caseView,
  findCase,
  keepCase,
  listCases,
  removeCase,
  viewCase,
} from "../../rules/relay/relay-case.ts";
import { saveRelay } from "../../rules/relay/relay-save.ts";
import type { Writer } from "../../store/port.ts";
import type { HttpDeps } from "../http/deps.ts";
import { requirePayloads } from "../http/payload-mask.ts";
import { environmentRoute } from "../http/route.ts";
import { relayContext } from "./relay-context.ts";

const CASE_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

export function caseDeps({ clock, config, log, sealer, baseUrl }: HttpDeps): CaseDeps {
  return { clock, limits: config.limits, log, sealer, baseUrl };
}

export const caseRoutes = [
  environmentRoute({
    method: "GET",
    path: "/relays/:name/cases",
    needs: "read",
    summary:
      "Lists the cases of a relay: example requests, each with the result at the time when it was kept.",
    answer: Type.Object({ cases: Type.Array(caseView) }),
    async read(tx, { environmentId, params }) {
      const relay = await requireRelay(tx, environmentId, params.name);
      return { cases: (await listCases(tx, relay.id)).map(viewCase) };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/relays/:name/cases/run",
    needs: "read",
    summary:
      "Runs the cases of a relay without effect, and reports the ones with another result. With definition, it runs them as if that were saved.",
    body: fields({
      definition: Type.Optional(Type.Unknown({ description: "a relay definition, a JSON object" })),
    }),
    answer: Type.Object({ report: orNull(caseReport) }),
    async handle(call) {
      const { deps, environment, environmentId, params, body } = call;
      const { definition } = body;
      if (definition !== undefined) requirePayloads(call, "A draft for the stored cases (definition)");
      const own = caseDeps(deps);
      const relay = await deps.store.read((tx) => requireRelay(tx, environmentId, params.name));
      const trying = { ...relayContext(call), recordDue: async () => undefined };
      const origin = { kind: "dashboard", synced: false } as const;
      const save = async (tx: Writer): Promise<void> => {
        if (definition === undefined) return;
        const { version } = await requireRelay(tx, environmentId, relay.name);
        await saveRelay(tx, trying, relay.name, { definition, version, origin });
      };
      const reports = await runCases(deps.store, own, environment, [relay.name], save);
      const report = reports.get(relay.name) ?? null;
      return { report };
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/relays/:name/cases/:case",
    needs: "edit_definitions",
    summary:
      "Keeps a request as a case of a relay, with its result now. Without a body, it keeps the stored case again with its new result.",
    body: fields({
      body: Type.Optional(
        Type.String({ maxLength: MAX_CASE_BODY_BYTES, description: "the request's body, as text" }),
      ),
      contentType: Type.Optional(Type.String({ maxLength: 200, description: "the body's content type" })),
    }),
    answer: Type.Object({ case: caseView }),
    async handle(call) {
      const { deps, environmentId, params, body, change, origin } = call;
      const name = params.case;
      if (!CASE_NAME.test(name))
        throw new Refusal(
          "invalid_input",
          "The name of a case has 1 to 63 lower-case letters, digits and hyphens, such as paid: choose such a name.",
        );
      const { relay, known } = await deps.store.read(async (tx) => {
        const row = await requireRelay(tx, environmentId, params.name);
        return { relay: row, known: await findCase(tx, row.id, name) };
      });
      const request = makeRequest(body) ?? known;
      if (request === null)
        throw new Refusal(
          "invalid_input",
          `body is missing, and there is no case ${name} yet: send the request's body.`,
        );
      if (utf8Bytes(request.body) > MAX_CASE_BODY_BYTES)
        throw new Refusal(
          "invalid_input",
          `body is longer than the ${MAX_CASE_BODY_BYTES} bytes of a case: make it shorter.`,
        );
      const ran = await runRequest(deps.store, caseDeps(deps), environmentId, relay.name, request);
      if (ran === null)
        throw new Refusal(
          "invalid_input",
          "A case is a request, and this relay has no receiver: keep cases of relays with a receiver.",
        );
      const kept = {
        name,
        body: request.body,
        contentType: request.contentType,
        expected: ran.result,
        personId: ran.personId,
      };
      return await deps.store.write(origin, async (tx) => {
        const now = await requireRelay(tx, environmentId, relay.name);
        return { case: viewCase(await keepCase(tx, now, kept, change)) };
      });
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/relays/:name/cases/:case",
    needs: "edit_definitions",
    summary: "Removes a case of a relay.",
    answer: null,
    async write(tx, { environmentId, params, change }) {
      const relay = await requireRelay(tx, environmentId, params.name);
      await removeCase(tx, relay, params.case, change);
    },
  }),
];

/** Returns the request of the input; null where it has no body. */
function makeRequest({ body, contentType }: { body?: string; contentType?: string }) {
  if (body === undefined) return null;
  const likely = /^\s*[[{]/.test(body.slice(0, 100))
    ? "application/json"
    : "application/x-www-form-urlencoded";
  return { body, contentType: contentType ?? likely };
}
