/** Sends a manual test event, only in local development and in development. */
import { sendTestEvent, testEventInput, testEventView } from "../../insight/simulate/test-event.ts";
import { environmentRoute } from "../http/route.ts";

export const testEventRoutes = [
  environmentRoute({
    method: "POST",
    path: "/relays/:name/test-event",
    needs: "edit_definitions",
    keepsDefinitions: true,
    summary:
      "Sends a signed request to a receiver, one tick to a schedule, or writes a record. The event has all its effects. Production accepts no test events.",
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
