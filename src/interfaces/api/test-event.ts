/** Sends a manual test event, only in local development and in development. */
import { sendTestEvent, testEventInput, testEventView } from "../../insight/simulate/test-event.ts";
import { environmentRoute } from "../http/route.ts";

export const testEventRoutes = [
  environmentRoute({
    method: "POST",
    path: "/relays/:name/test-event",
    summary:
      "Sends a receiver a call signed with its own secret, a schedule one tick, or writes a record; it runs with every effect, and production takes none.",
    body: testEventInput,
    answer: testEventView,
    handle: ({ deps, origin, params, body, change }) =>
      sendTestEvent(
        { store: deps.store, sealer: deps.sealer, relays: deps.relays, origin },
        params.name,
        body,
        change,
      ),
  }),
];
