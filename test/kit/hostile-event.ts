/** An event of a relay whose warnings and results quote a hostile payload. */
import { sendSigned } from "./browser-sender.ts";
import { HOSTILE } from "./hostile-payload.ts";
import type { RunningService } from "./running-service.ts";

const DEEP = 60;

/** Creates the relay in the local environment, sends the event and lets it run. Returns the event's id. */
export async function sendHostileEvent(running: RunningService): Promise<string> {
  const made = await running.api(
    "POST",
    "/relays",
    {
      definition: {
        name: "hostile",
        trigger: {
          kind: "receiver",
          verify: { scheme: "hooks" },
          map: { event_id: "id", person_email: "email", html: "body.html", bidi: "body.bidi" },
        },
        actions: [{ type: "grant_credits", amount: 1, reason: "{{mapped.html}}{{mapped.bidi}}" }],
      },
    },
    "local",
  );
  const deep = `${"[".repeat(DEEP)}1${"]".repeat(DEEP)}`;
  const body = `{"id":9007199254740993,"email":"ada@example.com","big":123456789012345678901234567890,"negative":-9223372036854775808,"body":${JSON.stringify(HOSTILE)},"deep":${deep}}`;
  const sent = await sendSigned(running, "hostile", made.body.receiverSecret, "msg", body);
  await running.drain();
  return sent.body.eventId;
}

/** Returns the event as the API shows it, without the payload, which plain JSON cannot hold. */
export async function readHostileEvent(running: RunningService, id: string): Promise<object> {
  const { event } = (await running.api("GET", `/events/${id}`, undefined, "local")).body;
  return { ...event, payload: null };
}
