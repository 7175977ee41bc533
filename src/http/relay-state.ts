/** Pausing and resuming a relay. */
import { Type } from "typebox";
import { pauseRelay, resumeRelay } from "../relay/relay-state.ts";
import { relay, relayContext } from "./relay-schema.ts";
import { environmentRoute } from "./route.ts";

export const relayStateRoutes = [
  environmentRoute({
    method: "POST",
    path: "/relays/:name/pause",
    summary: "Pauses a relay: what arrives is recorded and waits, ticks are not recorded.",
    answer: Type.Object({ relay }),
    async handle(call) {
      const { deps, origin, params } = call;
      const context = relayContext(call);
      const view = await deps.store.write(origin, (tx) => pauseRelay(tx, context, params.name));
      return { relay: view };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/relays/:name/resume",
    summary: "Resumes a relay: what waited runs in order.",
    answer: Type.Object({ relay }),
    async handle(call) {
      const { deps, origin, params } = call;
      const context = relayContext(call);
      const view = await deps.store.write(origin, (tx) => resumeRelay(tx, context, params.name));
      return { relay: view };
    },
  }),
];
