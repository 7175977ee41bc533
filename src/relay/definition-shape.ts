/** The shape of a whole definition, made from the registries' shapes. A new trigger, scheme or action is in it by itself. */
import { type TSchema, Type } from "typebox";
import { ACTIONS } from "../action/registry.ts";
import { MAX_ACTIONS_PER_RELAY } from "../ground/limit.ts";
import { RELAY_NAME } from "../ground/shape.ts";
import { TRIGGERS } from "../trigger/registry.ts";

const triggerShape = Type.Union(
  TRIGGERS.map((trigger): TSchema => trigger.shape),
  {
    description: "What the relay waits for: exactly one trigger.",
    expects: `one trigger object, such as { "kind": "schedule", "every": "1d" }`,
    discriminator: "kind",
  },
);

const actionShape = Type.Union(
  ACTIONS.map((action): TSchema => action.shape),
  {
    description: "One thing that the relay does.",
    expects: `an action object, such as { "type": "call_url", "url": "https://example.com/notice" }`,
    discriminator: "type",
  },
);

export const definitionShape = Type.Object(
  {
    name: Type.String({
      pattern: RELAY_NAME.source,
      description:
        "The relay's name: its file's name and the last segment of its receiver URL; fixed once created.",
      expects: "2 to 63 characters, lowercase letters, digits and hyphens, starting with a letter",
    }),
    trigger: triggerShape,
    actions: Type.Array(actionShape, {
      minItems: 1,
      maxItems: MAX_ACTIONS_PER_RELAY,
      description: "What the relay does, in order; a failure stops the rest.",
      expects: `a list of 1 to ${MAX_ACTIONS_PER_RELAY} actions, run in order`,
    }),
  },
  {
    additionalProperties: false,
    description: "A relay: when the trigger happens, run the actions in order.",
    expects: "a JSON object with name, trigger and actions",
    strangers: {
      $schema: "remove it; editors find the schema through their settings, which `relay init` writes",
      secret: "remove it, because secrets never stand in a definition; set it on the relay's page",
      triggers: "name it `trigger`; a relay has exactly one",
      action: "name it `actions` and make it a list",
      when: "move it into `trigger`",
      map: "move it into `trigger`",
      verify: "move it into `trigger`",
    },
  },
);
