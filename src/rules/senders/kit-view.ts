/** The views of a kit: its line in the list, and its relays, catalog, steps and lives with the seller's names. */
import { type Static, Type } from "typebox";
import type { JsonObject } from "../../base/json.ts";
import { type Kit, lifeOutcome } from "./kit.ts";
import { fillNames, type KitNames, kitDefinitions, sellsPlans } from "./kit-definitions.ts";
import type { Sender } from "./sender.ts";

const line = {
  sender: Type.String({ description: "the name of the provider, of its known sender and of the source" }),
  title: Type.String(),
  sellsPlans: Type.Boolean({ description: "false: the kit sells one product and no plans" }),
  cannot: Type.Array(Type.String(), { description: "what the provider's events do not say" }),
  docs: Type.String({ description: "the page of the documentation" }),
};

export const kitLine = Type.Object(line);
export type KitLine = Static<typeof kitLine>;

export const kitView = Type.Object({
  ...line,
  relays: Type.Array(
    Type.Object({
      does: Type.String(),
      definition: Type.Unsafe<JsonObject>({ type: "object" }),
    }),
    { description: "the relays to save, in order: the source, then those that follow it" },
  ),
  catalog: Type.Unsafe<JsonObject>({
    type: "object",
    description: "what the relays name, in the shape of catalog.json",
  }),
  eventTypes: Type.Array(Type.String(), { description: "the event types of the endpoint" }),
  steps: Type.Array(Type.String(), { description: "what to set up at the provider, in order" }),
  lives: Type.Array(
    Type.Object({
      name: Type.String(),
      title: Type.String(),
      steps: Type.Array(
        Type.Object({
          day: Type.Integer(),
          does: Type.String(),
          outcome: lifeOutcome,
        }),
      ),
    }),
    { description: "the lives that the tests play, with what the customer has after each step" },
  ),
});
export type KitView = Static<typeof kitView>;

export function listKit({ sender, cannot, ...kit }: Kit, { title }: Sender): KitLine {
  return {
    sender,
    title,
    sellsPlans: sellsPlans({ ...kit, sender, cannot }),
    cannot: [...cannot],
    docs: `/docs/${kitPage(sender)}`,
  };
}

/** Returns the id of the kit's page in the documentation. */
export function kitPage(sender: string): string {
  return `sell-with-${sender}`;
}

/** Throws if a name is invalid, or if two are equal. */
export function viewKit(kit: Kit, sender: Sender, names: KitNames): KitView {
  const { relays, catalog } = kitDefinitions(kit, sender, names);
  const fill = (text: string) => fillNames(text, names) as string;
  const does = [
    `Keeps every event of ${sender.title} as a record.`,
    ...kit.relays.map((one) => fill(one.does)),
  ];
  return {
    ...listKit(kit, sender),
    relays: relays.map((definition, index) => ({ does: does[index] ?? "", definition })),
    catalog,
    eventTypes: [...kit.eventTypes],
    steps: kitSteps(kit, sender, names),
    lives: kit.lives.map(({ name, title, steps }) => ({
      name,
      title,
      steps: steps.map(({ day, does: step, outcome }) => ({
        day,
        does: fill(step),
        outcome: fillNames(outcome, names) as typeof outcome,
      })),
    })),
  };
}

const SECRET_STEP: Readonly<Record<Sender["secret"]["from"], (name: string) => string>> = {
  sender: (name) => `Store it here with relay relays set-secret ${name}.`,
  relay: () => "In local development, relay dev writes it to service/.secrets.json.",
  either: (name) => `Store one from there with relay relays set-secret ${name}.`,
};

/** Lists what to set up at the provider, in order, one or two sentences each. */
export function kitSteps(kit: Kit, sender: Sender, names: KitNames): string[] {
  const { title, register, secret } = sender;
  return [
    ...kit.prepare.map((step) => fillNames(step, names) as string),
    `Register one endpoint at ${title}, with the receiver URL of the relay ${sender.name}: ${kit.register ?? register}`,
    ...(kit.eventTypes.length === 0 ? [] : [`Choose these events for it: ${kit.eventTypes.join(", ")}.`]),
    `Set the secret of the relay ${sender.name}: ${secret.where} ${SECRET_STEP[secret.from](sender.name)}`,
  ];
}
