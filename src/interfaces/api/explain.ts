/** Checks and explains definitions without a save: the problems of a draft, and step by step what a draft or a saved relay would do. */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import type { Problem } from "../../base/refusal.ts";
import { fields, orNull, time, warningView } from "../../base/schema.ts";
import { simulateDraft } from "../../insight/simulate/draft.ts";
import { simulateRelay } from "../../insight/simulate/simulate.ts";
import { simulateInput, simulationView } from "../../insight/simulate/step.ts";
import { listWatchedChanges, watchedChange } from "../../insight/simulate/watched-change.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import { checkDefinition, dropAllowedUrls, warnOwnHost } from "../../rules/relay/definition.ts";
import type { Definition } from "../../rules/relay/definition-shape.ts";
import { findRelay } from "../../rules/relay/relay.ts";
import { listReferenceWarnings } from "../../rules/relay/relay-problem.ts";
import { checkSellers, checkWrites, makeCatalogLookup } from "../../rules/relay/relay-reference.ts";
import { checkSigningSecret } from "../../rules/relay/signing-secret.ts";
import type { ReceiverTrigger } from "../../rules/trigger/receiver.ts";
import { periodOf, type ScheduleTrigger } from "../../rules/trigger/schedule.ts";
import type { Reader } from "../../store/port.ts";
import type { HttpDeps } from "../http/deps.ts";
import { requirePayloads } from "../http/payload-mask.ts";
import { environmentRoute } from "../http/route.ts";
import { relayContext } from "./relay-context.ts";

export const definition = Type.Unknown({ description: "a relay definition, a JSON object" });

export const sell = Type.Optional(
  Type.Boolean({
    description:
      "true: a new relay sells the products and plans that its actions name, if nothing sells them yet",
  }),
);

const checkedView = Type.Object({
  problems: Type.Array(Type.Object({ field: Type.String(), message: Type.String() })),
  warnings: Type.Array(warningView),
  /** The next five times at which a valid schedule ticks. */
  nextTicks: Type.Optional(Type.Array(time)),
  /** At most five changes of the collection of a valid data_change trigger, newest first, each with whether it would run. */
  recentChanges: Type.Optional(Type.Array(watchedChange)),
  /** The title of the known sender whose recipe a valid receiver trigger uses, for example "Stripe". */
  sender: Type.Optional(Type.String()),
});
export type CheckedDefinition = Static<typeof checkedView>;

/** Checks a definition with the signing secret of the saved relay of its name. A new relay gets one that fits. */
async function checkSavedSecret(
  tx: Reader,
  environmentId: number,
  definition: Definition,
  sealer: Sealer,
): Promise<Problem[]> {
  const saved = await findRelay(tx, environmentId, definition.name);
  return saved === null ? [] : checkSigningSecret({ ...saved, definition }, sealer, false);
}

function simulateDeps({ store, sealer, clock, log, relays, config }: HttpDeps) {
  return { store, sealer, clock, log, relays, limits: config.limits };
}

async function describeSender(trigger: ReceiverTrigger): Promise<{ sender?: string }> {
  const { recogniseSender } = await import("../../rules/senders/registry.ts");
  const sender = recogniseSender(trigger);
  return sender === null ? {} : { sender: sender.title };
}

/** Finds the sender of a definition that has problems, if none is in its trigger. */
async function describeUnfinishedSender(
  definition: unknown,
  problems: readonly Problem[],
): Promise<{ sender?: string }> {
  if (problems.some(({ field }) => !/^(name|actions)\b/.test(field))) return {};
  const { trigger } = definition as Pick<Definition, "trigger">;
  return trigger.kind === "receiver" ? await describeSender(trigger) : {};
}

const SHOWN_TICKS = 5;

function listNextTicks(trigger: ScheduleTrigger, nowMs: number): string[] {
  return periodOf(trigger).list(nowMs, Number.POSITIVE_INFINITY, SHOWN_TICKS).map(toIso);
}

export const explainRoutes = [
  environmentRoute({
    method: "POST",
    path: "/relays/validate",
    needs: "read",
    summary:
      "Lists every problem and warning of a definition without saving it. A valid trigger gets its sender, next ticks or record changes.",
    body: fields({ definition }),
    answer: checkedView,
    async handle({ deps, environment, body, nowMs, may }) {
      const checked = checkDefinition(body.definition, nowMs);
      if ("problems" in checked) {
        const { problems } = checked;
        return { problems, warnings: [], ...(await describeUnfinishedSender(body.definition, problems)) };
      }
      const found = await deps.store.read(async (tx) => ({
        problems: [
          ...(await checkSavedSecret(tx, environment.id, checked.definition, deps.sealer)),
          ...(await checkWrites(makeCatalogLookup(tx, environment.id), checked.definition)),
          ...(await checkSellers(tx, environment.id, checked.definition)),
        ],
        warnings: [
          ...dropAllowedUrls(checked.warnings, checked.definition, deps.config.allowPrivate),
          ...warnOwnHost(checked.definition, deps.baseUrl()),
          ...(await listReferenceWarnings(makeCatalogLookup(tx, environment.id), checked.definition)),
        ],
      }));
      const { trigger } = checked.definition;
      if (trigger.kind === "receiver") return { ...found, ...(await describeSender(trigger)) };
      if (found.problems.length > 0) return found;
      if (trigger.kind === "schedule") return { ...found, nextTicks: listNextTicks(trigger, nowMs) };
      // The result of a chosen `where` tells the values of records.
      if (!may("read_payloads")) return found;
      return { ...found, recentChanges: await listWatchedChanges(deps.store, environment.id, trigger) };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/relays/explain",
    needs: "read",
    summary:
      "Shows step by step what a definition would do without saving it. Without secret, a saved relay's secret or an example verifies.",
    body: fields({
      definition,
      secret: Type.Optional(
        orNull(Type.String({ description: "the sender's secret or public key, which is not stored" })),
      ),
      sell,
      ...simulateInput.properties,
    }),
    answer: Type.Object({ explanation: simulationView }),
    async handle(call) {
      const { definition, secret = null, sell: sells = false, ...input } = call.body;
      if (input.event !== undefined) requirePayloads(call, "A draft for a stored event (event)");
      const draft = { definition, secret, sells };
      return { explanation: await simulateDraft(simulateDeps(call.deps), relayContext(call), draft, input) };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/relays/:name/explain",
    needs: "read",
    summary:
      "Shows step by step what the relay would do with a request, a record, a stored event or an example. It writes, mails and calls nothing.",
    body: simulateInput,
    answer: Type.Object({ explanation: simulationView }),
    async handle({ deps, environmentId, params, body }) {
      return { explanation: await simulateRelay(simulateDeps(deps), environmentId, params.name, body) };
    },
  }),
];
