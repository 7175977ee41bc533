/** Shapes that the routes of relays share, and the context their changes are made in. */
import { Type } from "typebox";
import { oneOf, time, timeOrNull } from "../ground/schema.ts";
import type { RelayContext } from "../relay/relay-context.ts";
import type { HttpDeps } from "./deps.ts";
import type { EnvironmentCall } from "./route.ts";

const item = {
  id: Type.String(),
  name: Type.String(),
  state: oneOf(["active", "paused"]),
  trigger: oneOf(["receiver", "schedule", "data_change"]),
  triggerInWords: Type.String(),
  actions: Type.Integer(),
  version: Type.Integer(),
  origin: Type.Object({ kind: oneOf(["file", "dashboard"]), at: time }),
  receiverUrl: Type.Optional(Type.String()),
  lastEventAt: timeOrNull,
  last24h: Type.Object({
    done: Type.Integer(),
    failed: Type.Integer(),
    dead: Type.Integer(),
    waiting: Type.Integer(),
    approximate: Type.Optional(Type.Literal(true)),
  }),
};

export const relayItem = Type.Object(item);

export const relay = Type.Object({
  ...item,
  definition: Type.Unknown(),
  createdAt: time,
  updatedAt: time,
  secret: Type.Object({
    kind: oneOf(["minted", "pasted", "public_key", "processor", "none"]),
    fingerprint: Type.Optional(Type.String()),
    setAt: timeOrNull,
    previousUntil: Type.Optional(time),
  }),
  signingSecret: Type.Optional(Type.Object({ setAt: time })),
  problems: Type.Array(Type.Object({ code: Type.String(), message: Type.String() })),
});

/** What a save answers; a secret that it made stands in it and in no later answer. */
export const savedRelay = Type.Object({
  relay,
  receiverUrl: Type.Optional(Type.String()),
  receiverSecret: Type.Optional(Type.String()),
  signingSecret: Type.Optional(Type.String()),
  warnings: Type.Array(Type.String()),
});

export const definition = Type.Unknown({ description: "a relay definition, a JSON object" });

export function relayContext({
  deps,
  environment,
  actor,
  nowMs,
}: EnvironmentCall & { deps: HttpDeps; nowMs: number }): RelayContext {
  const { config, sealer } = deps;
  return { environment, actor, nowMs, limits: config.limits, sealer, baseUrl: deps.baseUrl() };
}
