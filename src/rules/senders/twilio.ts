/** Twilio, by its pages on webhook security and on incoming messages, and its own library. */
import type { Sender } from "./sender.ts";

export const twilio: Sender = {
  name: "twilio",
  title: "Twilio",
  summary: "Tells of incoming messages, calls and how messages were delivered.",
  verify: {
    scheme: "signature",
    algorithm: "hmac-sha1",
    header: "X-Twilio-Signature",
    signedPayload: "{url}{params}",
    encoding: "base64",
  },
  map: { event_id: "MessageSid", from: "From", to: "To", text: "Body" },
  when: {},
  personEmail: null,
  secret: {
    from: "sender",
    where:
      "The Console’s first page, Account Info: Auth Token, the primary one, of the account (or subaccount) that owns the number.",
  },
  register: "Phone Numbers, Active numbers, the number, Messaging: A message comes in, Webhook, HTTP POST.",
  example: {
    form: {
      ToCountry: "US",
      SmsMessageSid: "SM5f3c1e0b7a9d4826b1c0e2f4a6d8b0c2",
      NumMedia: "0",
      SmsSid: "SM5f3c1e0b7a9d4826b1c0e2f4a6d8b0c2",
      SmsStatus: "received",
      Body: "Hello, is anybody there?",
      To: "+15005550006",
      NumSegments: "1",
      MessageSid: "SM5f3c1e0b7a9d4826b1c0e2f4a6d8b0c2",
      AccountSid: "AC1d9b4a5c7e3f4061a2b8c9d0e1f2a3b4",
      From: "+14158675309",
      ApiVersion: "2010-04-01",
    },
  },
  eventTypes: [
    { type: "received", meaning: "`SmsStatus` of an incoming message." },
    { type: "delivered", meaning: "`MessageStatus` of a status callback: the message has arrived." },
    { type: "undelivered", meaning: "`MessageStatus` of a status callback: the carrier did not take it." },
    { type: "failed", meaning: "`MessageStatus` of a status callback: it could not be sent." },
  ],
  pitfalls: [
    "The URL is signed: paste the receiver URL exactly, with nothing after it; a query string answers 401.",
    "A status callback tells of the same MessageSid several times: for them map `MessageStatus` and remove event_id, so that each is told by its body.",
    "Twilio reads the answer as TwiML. The receiver’s JSON is none: the Console logs a warning 12300, and the message counts as received.",
    "Events Streams and other calls with a JSON body are signed another way, by a hash in the query, which this recipe does not check.",
    "Each signed call is taken once; a repeat with the same body answers as a duplicate.",
  ],
  docs: "https://www.twilio.com/docs/usage/webhooks/webhooks-security",
};
