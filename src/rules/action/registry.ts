/**
 * Lists every action type in the order of the specification's table, and binds an action of a definition to its type. To add one, add its
 * file and one line here.
 */
import type { Json } from "../../base/json.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { grantAccess, revokeAccess } from "./access.ts";
import { callUrl } from "./call-url.ts";
import type {
  ActionOutcome,
  ActionPorts,
  ActionRun,
  ActionType,
  Preview,
  SendingAction,
} from "./contract.ts";
import { emailPerson } from "./email-person.ts";
import { grantCredits } from "./grant-credits.ts";
import { fulfilProduct, grantPlan, refundProduct, revokePlan } from "./sale.ts";
import { writeRecord } from "./write-record.ts";

export const ACTIONS: readonly ActionType[] = [
  writeRecord,
  grantAccess,
  revokeAccess,
  grantCredits,
  fulfilProduct,
  refundProduct,
  grantPlan,
  revokePlan,
  emailPerson,
  callUrl,
];

const BY_TYPE: ReadonlyMap<string, ActionType> = new Map(ACTIONS.map((action) => [action.type, action]));

/** Finds the action of this type, or null. */
export function findAction(type: string): ActionType | null {
  return BY_TYPE.get(type) ?? null;
}

/** An action of a definition, bound to its type, so that the runner need not know the type. */
export interface BoundAction {
  type: string;
  /** The action as the definition has it. */
  action: unknown;
  /** The name of what it acts on. */
  target: string;
  needsPerson: boolean;
  sends: boolean;
  /** True if every attempt and replay sends it again. */
  repeats: boolean;
  /** Reads ahead what the action will certainly read. */
  prefetch(reader: Reader, environmentId: number): readonly Promise<unknown>[];
  /** Runs the action, or intends what is sent after the commit. */
  start(tx: Writer, run: ActionRun): Promise<ActionOutcome | Intended>;
  /** null: nothing of it can stay unfinished. */
  conclude: NonNullable<SendingAction["conclude"]> | null;
}

/** An effect that is sent after the commit. */
export interface Intended {
  /** The mark that is stored with the intent, for `conclude`. */
  mark: Json | undefined;
  preview(): Preview;
  /** Sends it, and returns the function that records the result. */
  send(ports: ActionPorts): Promise<(tx: Writer) => Promise<ActionOutcome>>;
}

/** Binds the action to its type; a save checked that it fits the shape. null: this version has no such type. */
export function bindAction(action: { type: string }): BoundAction | null {
  const type = findAction(action.type);
  return type === null ? null : bind(type, action);
}

function bind<Action>(type: ActionType<Action>, action: Action): BoundAction {
  const bound = {
    type: type.type,
    action,
    target: type.target(action),
    needsPerson: type.needsPerson(action),
    prefetch: (reader: Reader, environmentId: number) => type.prefetch?.(reader, action, environmentId) ?? [],
  };
  if (!type.sends)
    return { ...bound, sends: false, repeats: false, start: type.bind(action), conclude: null };
  return {
    ...bound,
    sends: true,
    repeats: type.repeats,
    async start(tx, run) {
      const intended = await type.intend(tx, action, run);
      if ("outcome" in intended) return intended;
      const { plan, mark } = intended;
      return {
        mark,
        preview: () => type.preview(plan, run),
        async send(ports) {
          const sent = await type.send(plan, run, ports);
          return (later) => type.settle(later, plan, sent, run);
        },
      };
    },
    conclude: type.conclude ?? null,
  };
}
