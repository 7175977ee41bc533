/** A provider in the browser tests: signs with Standard Webhooks and sends to the receiver's real URL. */
import { Webhook } from "standardwebhooks";
import { systemClock } from "../../src/base/clock.ts";
import type { Answer, RunningService } from "./running-service.ts";

/** Sends the body, signed with the relay's secret. `id` is the delivery's `webhook-id`. */
export async function sendSigned(running: RunningService, relay: string, secret: string, id: string, body: string): Promise<Answer> {
  const now = new Date(systemClock.now());
  return await running.hook(relay, {
    headers: {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": String(Math.floor(now.getTime() / 1000)),
      "webhook-signature": new Webhook(secret).sign(id, now, body),
    },
    body,
  });
}
