/**
 * Simulates a draft: a definition that is not saved. A transaction that is rolled back saves it, so that the checks, the secrets and the source are
 * those of a save. A draft without a secret gets an example secret. The caller's secret is in no answer, error or log.
 */
import { Refusal } from "../../base/refusal.ts";
import { type Checked, requireDefinition } from "../../rules/relay/definition.ts";
import { listKnownSecrets } from "../../rules/relay/known-secret.ts";
import { findLiveRelay } from "../../rules/relay/live-relay.ts";
import { findRelay } from "../../rules/relay/relay.ts";
import { createRelay, type UpdateContext, updateRelay } from "../../rules/relay/relay-save.ts";
import { secretNeedOf } from "../../rules/relay/relay-secret.ts";
import { prepareSecret, readSecretSlot, storeSecret } from "../../rules/relay/secret-rotation.ts";
import { dryRun } from "../../store/dry-run.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Writer } from "../../store/port.ts";
import { simulate } from "./simulate.ts";
import type { SimulateDeps, SimulateInput, Simulation, Subject } from "./step.ts";

export interface Draft {
  definition: unknown;
  /** The sender's secret or public key. null: the secret that the saved relay of this name keeps, or else an example. */
  secret: string | null;
  /** True if a new relay must sell the products and plans that its actions name and that nothing sells. */
  sells?: boolean;
}

type DraftContext = Omit<UpdateContext, "recordDue">;

/**
 * Runs the simulation. Throws what a save throws, such as `invalid_definition`, `relay_missing` and `invalid_input` for a secret that does not fit.
 * Also throws `not_found` and `invalid_input` for an input that cannot be simulated.
 */
export async function simulateDraft(
  deps: SimulateDeps,
  context: DraftContext,
  { definition, ...draft }: Draft,
  input: SimulateInput,
): Promise<Simulation> {
  const checked = requireDefinition(definition, context.nowMs);
  const open = (tx: Writer) => openDraft(tx, context, checked, draft);
  await yieldToEventLoop();
  const opened = await dryRun(deps.store, "relay", open, context.environment.id);
  await yieldToEventLoop();
  return await simulate(deps, { ...opened, open: async (tx) => (await open(tx)).relay }, input);
}

async function openDraft(
  tx: Writer,
  context: DraftContext,
  checked: Checked,
  draft: Omit<Draft, "definition">,
): Promise<Omit<Subject, "open">> {
  const { environment, sealer, baseUrl } = context;
  const { name } = checked.definition;
  const hasExample = await saveDraft(tx, context, checked, draft);
  const relay = await findLiveRelay(tx, environment.id, name, { sealer, baseUrl: () => baseUrl });
  if (relay === null) throw new Refusal("invalid_input", UNREADABLE);
  const { receiver } = relay;
  const secrets = receiver === null ? [] : await listKnownSecrets(tx, sealer, relay);
  return { relay, secrets, lacksSecret: hasExample || receiver?.closed === "no_secret" };
}

const UNREADABLE =
  "The stored secret that would verify the requests cannot be opened, because another master key sealed it: give the secret.";

/** Saves the draft and its secret. Returns true if the secret is an example. */
async function saveDraft(
  tx: Writer,
  context: DraftContext,
  checked: Checked,
  { secret, sells = false }: Omit<Draft, "definition">,
): Promise<boolean> {
  const { environment, sealer, nowMs } = context;
  const { name } = checked.definition;
  const origin = { kind: "dashboard", synced: false } as const;
  const before = await findRelay(tx, environment.id, name);
  const { row, receiverSecret } =
    before === null
      ? await createRelay(tx, context, { checked, secret: null, signingSecret: null, sells, origin })
      : await updateRelay(tx, { ...context, recordDue: async () => undefined }, name, {
          checked,
          version: before.version,
          origin,
        });
  const needsExample = secret === null && row.secret === null && secretNeedOf(row.definition) === "shared";
  if (secret !== null || needsExample) {
    // Only local development makes a secret that the sender would make itself.
    const slot = {
      ...(await readSecretSlot(tx, environment.id, name)),
      ...(needsExample && { isLocal: true }),
    };
    await storeSecret(tx, context, prepareSecret(slot, secret, sealer, nowMs));
  }
  return secret === null && (receiverSecret !== null || needsExample);
}
