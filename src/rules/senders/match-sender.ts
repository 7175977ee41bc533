/** Finds the known sender whose recipe a receiver uses. */
import { type JsonObject, writeJson } from "../../base/json.ts";
import type { ReceiverTrigger } from "../trigger/receiver.ts";
import type { Sender } from "./sender.ts";

/** The part of a sender that decides which receivers are its own. */
export type MatchedSender = Pick<Sender, "verify" | "map" | "eventTypes">;

/** The sender of a receiver. */
interface SenderMatch<S> {
  sender: S;
  /** True if no other sender has the recipe, or if the receiver reads what identifies this one. */
  isCertain: boolean;
  /** Every sender with this recipe. */
  ofRecipe: readonly S[];
}

/** The score that identifies a sender whose recipe others use too. One event type such as `order.paid` with the path `type` does not reach it. */
const CERTAIN_SCORE = 4;

/** Finds senders by recipe. It normalizes the recipes of the senders at the first search, because most commands search none. */
export class SenderIndex<S extends MatchedSender> {
  readonly #senders: readonly S[];
  #byRecipe: ReadonlyMap<string, readonly S[]> | null = null;

  constructor(senders: readonly S[]) {
    this.#senders = senders;
  }

  /**
   * Finds the sender whose recipe a receiver uses. If several senders have one recipe, the fields and types that the relay reads decide. null: no
   * sender has the recipe, or two fit equally well.
   */
  find(trigger: ReceiverTrigger): SenderMatch<S> | null {
    this.#byRecipe ??= Map.groupBy(this.#senders, ({ verify }) => normalVerify(verify));
    const ofRecipe = this.#byRecipe.get(normalVerify(trigger.verify)) ?? [];
    const [best, next] = ofRecipe
      .map((sender) => ({ sender, score: scoreSender(sender, trigger) }))
      .sort((one, other) => other.score - one.score);
    if (best === undefined || best.score === 0 || best.score === next?.score) return null;
    const { sender, score } = best;
    const isCertain = next === undefined || score >= CERTAIN_SCORE || mapsAll(sender, trigger);
    return { sender, isCertain, ofRecipe };
  }
}

/** Reports whether the receiver maps every path of the sender. */
function mapsAll(sender: MatchedSender, { map }: ReceiverTrigger): boolean {
  const paths = new Set(Object.values(map));
  return Object.values(sender.map).every((path) => paths.has(path));
}

/** Counts the sender's paths that the receiver maps, and its event types that the receiver matches. An event type counts twice. */
function scoreSender(sender: MatchedSender, { map, when = {} }: ReceiverTrigger): number {
  const paths = new Set(Object.values(map));
  const wanted = new Set(Object.values(when).flat());
  const shared = Object.values(sender.map).filter((path) => paths.has(path)).length;
  const types = sender.eventTypes.filter(({ type }) => wanted.has(type)).length;
  return shared + 2 * types;
}

const DEFAULTS = { algorithm: "hmac-sha256", encoding: "hex" };

/** Writes a recipe with its defaults and lower-case headers, so that equal recipes are equal texts. The handshake is left out, as it signs nothing. */
function normalVerify(verify: ReceiverTrigger["verify"]): string {
  const { handshake: _, toleranceSeconds: __, ...fields } = verify;
  const normalized: JsonObject = fields.scheme === "signature" ? { ...DEFAULTS, ...fields } : { ...fields };
  if (normalized.signatureKey !== undefined) normalized.separator ??= ",";
  for (const name of ["header", "timestampHeader"]) {
    const header = normalized[name];
    if (typeof header === "string") normalized[name] = header.toLowerCase();
  }
  return writeJson(
    Object.fromEntries(Object.entries(normalized).sort(([one], [other]) => (one < other ? -1 : 1))),
  );
}
