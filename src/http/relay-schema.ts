/** Shapes that the routes of relays share, and the context their changes are made in. */
import { t } from "elysia";
import type { RelayContext } from "../relay/relay-context.ts";
import type { Visit } from "./admission.ts";
import type { HttpRooms } from "./rooms.ts";
import { oneOf, time, timeOrNull } from "./schema.ts";

const item = {
  id: t.String(),
  name: t.String(),
  state: oneOf(["active", "paused"]),
  trigger: oneOf(["receiver", "schedule", "data_change"]),
  triggerInWords: t.String(),
  actions: t.Integer(),
  version: t.Integer(),
  origin: t.Object({ kind: oneOf(["file", "dashboard"]), at: time }),
  receiverUrl: t.Optional(t.String()),
  lastEventAt: timeOrNull,
  last24h: t.Object({
    done: t.Integer(),
    failed: t.Integer(),
    dead: t.Integer(),
    waiting: t.Integer(),
    approximate: t.Optional(t.Literal(true)),
  }),
};

export const relayItem = t.Object(item);

export const relay = t.Object({
  ...item,
  definition: t.Unknown(),
  createdAt: time,
  updatedAt: time,
  secret: t.Object({
    kind: oneOf(["minted", "pasted", "public_key", "processor", "none"]),
    fingerprint: t.Optional(t.String()),
    setAt: timeOrNull,
    previousUntil: t.Optional(time),
  }),
  signingSecret: t.Optional(t.Object({ setAt: time })),
  problems: t.Array(t.Object({ code: t.String(), message: t.String() })),
});

/** What a save answers; a secret that it made stands in it and in no later answer. */
export const savedRelay = t.Object({
  relay,
  receiverUrl: t.Optional(t.String()),
  receiverSecret: t.Optional(t.String()),
  signingSecret: t.Optional(t.String()),
  warnings: t.Array(t.String()),
});

export const definition = t.Unknown({ description: "a relay definition, a JSON object" });

export function relayContext(rooms: HttpRooms, visit: Visit, nowMs: number): RelayContext {
  const { config, sealer } = rooms;
  const { environment, actor } = visit;
  return { environment, actor, nowMs, limits: config.limits, sealer, baseUrl: rooms.baseUrl() };
}
