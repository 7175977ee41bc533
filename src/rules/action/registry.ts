/**
 * Every action type, in the order of the specification's table, and an action of a definition bound to its own. A new one is a file and one
 * line here.
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

/** The action of this type, or null when there is none. */
export function findAction(type: string): ActionType | null {
  return BY_TYPE.get(type) ?? null;
}

/** An action of a definition, bound to its type: who runs it need not know how it is written. */
export interface BoundAction {
  type: string;
  /** As the definition says it. */
  action: unknown;
  /** What it acts on, by name. */
  target: string;
  needsPerson: boolean;
  sends: boolean;
  /** It is sent again on every attempt and replay. */
  repeats: boolean;
  /** Asks for what it reads whatever comes, before it is done. */
  prefetch(ahead: Reader, environmentId: number): readonly Promise<unknown>[];
  /** Does it, or intends what is to leave the house once this is committed. */
  start(tx: Writer, run: ActionRun): Promise<ActionOutcome | Intended>;
  /** null: nothing of it can be left unsettled. */
  conclude: NonNullable<SendingAction["conclude"]> | null;
}

/** What is to leave the house. */
export interface Intended {
  /** Kept with the intent, for `conclude`. */
  mark: Json | undefined;
  preview(): Preview;
  /** Sends it, and answers how its end is recorded. */
  send(ports: ActionPorts): Promise<(tx: Writer) => Promise<ActionOutcome>>;
}

/** The action bound to its type, whose shape it was checked to fit when it was saved; null: this version knows no such type. */
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
    prefetch: (ahead: Reader, environmentId: number) => type.prefetch?.(ahead, action, environmentId) ?? [],
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
