/**
 * A relay that follows another receiver, the source, gets each request that the source verified. This file finds the source of a relay and the
 * followers of a source. It gives a follower's definition the source's scheme, so that every rule about signatures judges both alike. A source has
 * its own scheme, so no follower is followed. Source: sources, "Following a receiver".
 */
import { MAX_FOLLOWERS } from "../../base/limit.ts";
import { type Problem, Refusal, type Warning } from "../../base/refusal.ts";
import { findNearestName } from "../../base/text.ts";
import type { Reader } from "../../store/port.ts";
import { FOLLOWED_RECEIVER } from "../verify/followed-receiver.ts";
import type { Definition } from "./definition-shape.ts";
import { findRelay, listRelayRows, RELAY } from "./relay.ts";
import { checkUnsignedRule, unsignedWarning, widensUnsigned } from "./unsigned-rule.ts";

const FIELD = "trigger.verify.receiver";
const OPT_IN = "trigger.trustUnsignedEvents";
const FOLLOWER = RELAY.pick("name", "definition");

/** Returns the name of the receiver that the relay follows; null if it follows none. */
export function sourceNameOf({ trigger }: Pick<Definition, "trigger">): string | null {
  // A definition that was written by SQL may have no `verify`.
  if (trigger.kind !== "receiver" || trigger.verify?.scheme !== FOLLOWED_RECEIVER) return null;
  return typeof trigger.verify.receiver === "string" ? trigger.verify.receiver : null;
}

/** Reports whether the definition has its own scheme, so that other relays can follow it. */
export function isSource({ trigger }: Pick<Definition, "trigger">): boolean {
  return trigger.kind === "receiver" && trigger.verify?.scheme !== FOLLOWED_RECEIVER;
}

/** Returns the follower's definition with the scheme of its source, and with the source's space of customer ids unless it names one. */
export function withScheme(follower: Definition, source: Definition): Definition {
  if (follower.trigger.kind !== "receiver" || source.trigger.kind !== "receiver") return follower;
  const { customer, ...trigger } = follower.trigger;
  const shared = customer && {
    ...customer,
    space: customer.space ?? source.trigger.customer?.space ?? source.name,
  };
  return {
    ...follower,
    trigger: { ...trigger, verify: source.trigger.verify, ...(shared && { customer: shared }) },
  };
}

/** Returns the definition with the scheme that verifies its requests: its own or its source's. A follower without a source stays unchanged. */
export async function withSourceScheme(
  tx: Reader,
  environmentId: number,
  definition: Definition,
  name = sourceNameOf(definition),
): Promise<Definition> {
  const source = name === null ? null : await findRelay(tx, environmentId, name);
  return source === null ? definition : withScheme(definition, source.definition);
}

/** Lists the relays that follow a receiver, by name. */
export function listFollowers(
  tx: Reader,
  environmentId: number,
  source: string,
): Promise<{ name: string; definition: Definition }[]> {
  const rest = "WHERE environment_id = $environmentId AND source_name = $source ORDER BY name";
  return FOLLOWER.all(tx, rest, { environmentId, source });
}

/** Lists all relays of an environment that follow a receiver, by name. */
export function listAllFollowers(
  tx: Reader,
  environmentId: number,
): Promise<{ name: string; definition: Definition }[]> {
  const rest = "WHERE environment_id = $environmentId AND source_name IS NOT NULL ORDER BY name";
  return FOLLOWER.all(tx, rest, { environmentId });
}

/** A saved definition and the one before it, which is null for a new relay. */
interface SavedDefinition {
  environmentId: number;
  before: Definition | null;
  after: Definition;
}

/**
 * Checks a saved relay with the relay that it follows and with those that follow it. Returns the warnings about unsigned events that only both
 * together show. Throws `relay_missing` where the source does not exist or cannot be followed, `receiver_followed` where the relay is followed and
 * no longer has a scheme, `relay_capped` over the limit of followers, and `invalid_definition` where a follower breaks the unsigned-event rule.
 */
export async function checkFollowing(tx: Reader, saved: SavedDefinition): Promise<Warning[]> {
  const { environmentId, before, after } = saved;
  if (isSource(after)) return await checkFollowers(tx, saved);
  if (before !== null && isSource(before))
    await requireUnfollowed(tx, environmentId, after.name, "change its trigger");
  return sourceNameOf(after) === null ? [] : await checkFollower(tx, saved);
}

/** Warns if a receiver becomes a follower, because its own URL then answers no requests. `urlOf` returns the URL of a receiver. */
export function warnEndedUrl(
  before: Definition | null,
  after: Definition,
  urlOf: (name: string) => string,
): Warning[] {
  const source = sourceNameOf(after);
  if (source === null || before === null || !isSource(before)) return [];
  const message = `${after.name} now follows ${source}, so its own URL ${urlOf(after.name)} stops answering. At the sender, register the URL of ${source} instead: ${urlOf(source)}.`;
  return [{ code: "receiver_url_ended", field: "trigger.verify", message }];
}

async function checkFollower(
  tx: Reader,
  { environmentId, before, after }: SavedDefinition,
): Promise<Warning[]> {
  const following = await requireSource(tx, environmentId, after);
  const problems = listBreaks(following);
  if (problems.length > 0)
    throw new Refusal("invalid_definition", problems[0]?.message ?? "", { problems, needsOtherRelay: true });
  const earlier = before === null ? null : await withSourceScheme(tx, environmentId, before);
  const warning = widensUnsigned(earlier, following) ? unsignedWarning(following) : null;
  return warning === null ? [] : [warning];
}

/**
 * Lists where a follower breaks the unsigned-event rule. An opt-in that it does not need is no break: otherwise neither the source could start to
 * sign its events before the follower loses the opt-in, nor the follower lose it before.
 */
export function listBreaks(following: Definition): Problem[] {
  return checkUnsignedRule(following).filter(({ field }) => field !== OPT_IN);
}

/** Returns the follower's definition with the source's scheme. */
async function requireSource(tx: Reader, environmentId: number, after: Definition): Promise<Definition> {
  const name = sourceNameOf(after) ?? "";
  const source = name === after.name ? null : await findRelay(tx, environmentId, name);
  if (source !== null && isSource(source.definition)) {
    const others = (await listFollowers(tx, environmentId, name)).filter((one) => one.name !== after.name);
    if (others.length < MAX_FOLLOWERS) return withScheme(after, source.definition);
    throw new Refusal(
      "relay_capped",
      `\`${FIELD}\`: ${others.length} relays follow ${name}, and the limit is ${MAX_FOLLOWERS}. Delete one of them, or combine relays that run on the same events.`,
    );
  }
  throw new Refusal(
    "relay_missing",
    await explainMissing(tx, environmentId, after, source?.definition ?? null),
  );
}

async function explainMissing(
  tx: Reader,
  environmentId: number,
  after: Definition,
  found: Definition | null,
): Promise<string> {
  const name = sourceNameOf(after) ?? "";
  if (name === after.name)
    return `\`${FIELD}\`: ${name} cannot follow itself. Name another receiver relay, or give this relay its own scheme.`;
  const further = found === null ? null : sourceNameOf(found);
  if (further !== null)
    return `\`${FIELD}\`: ${name} follows ${further} itself, and only a relay with its own scheme can be followed. Write ${further}.`;
  if (found !== null)
    return `\`${FIELD}\`: ${name} starts by a ${found.trigger.kind}, so it receives no requests. Name a receiver relay.`;
  const rows = await listRelayRows(tx, environmentId);
  const near = findNearestName(
    name,
    rows.filter(({ definition }) => isSource(definition)).map((row) => row.name),
  );
  const todo =
    near === null
      ? "Create that receiver first"
      : `Did you mean ${near}? Otherwise create that receiver first`;
  return `\`${FIELD}\`: there is no relay ${name} in this environment. ${todo}.`;
}

/** Checks the followers of a source under its new scheme, because it is also theirs. */
async function checkFollowers(
  tx: Reader,
  { environmentId, before, after }: SavedDefinition,
): Promise<Warning[]> {
  const warnings: Warning[] = [];
  if (before === null) return warnings;
  for (const { name, definition } of await listFollowers(tx, environmentId, after.name)) {
    const [was, is] = [withScheme(definition, before), withScheme(definition, after)];
    const [problem] = listBreaks(is);
    if (problem !== undefined) {
      const message = `The relay ${name} follows ${after.name}, and this scheme would break it: ${problem.message}`;
      throw new Refusal("invalid_definition", message, {
        problems: [{ field: "trigger.verify", message }],
        needsOtherRelay: true,
      });
    }
    const warning = widensUnsigned(was, is) ? unsignedWarning(is) : null;
    if (warning !== null)
      warnings.push({
        ...warning,
        field: "trigger.verify",
        message: `The relay ${name} follows ${after.name}: ${warning.message}`,
      });
  }
  return warnings;
}

/** Throws `receiver_followed` with the followers' names. `what` is what the caller tried. */
export async function requireUnfollowed(
  tx: Reader,
  environmentId: number,
  name: string,
  what: "delete it" | "change its trigger",
): Promise<void> {
  const followers = (await listFollowers(tx, environmentId, name))
    .map((one) => one.name)
    .filter((one) => one !== name);
  if (followers.length === 0) return;
  throw new Refusal(
    "receiver_followed",
    `${followers.join(", ")} ${followers.length === 1 ? "follows" : "follow"} ${name}, so you cannot ${what}. First delete ${followers.length === 1 ? "that relay" : "those relays"}, or change trigger.verify there.`,
    { details: { followers }, needsOtherRelay: true },
  );
}
