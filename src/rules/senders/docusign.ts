/** DocuSign, by its pages on Connect and on HMAC. */
import type { Sender } from "./sender.ts";

export const docusign: Sender = {
  name: "docusign",
  title: "DocuSign",
  summary: "Tells of envelopes that were sent, signed, completed, declined and voided.",
  verify: {
    scheme: "signature",
    header: "X-DocuSign-Signature-1",
    signedPayload: "{body}",
    encoding: "base64",
  },
  map: {
    event_id: "data.envelopeId",
    event_type: "event",
    account: "data.accountId",
    time: "generatedDateTime",
  },
  when: { event_type: "envelope-completed" },
  personEmail: null,
  secret: {
    from: "sender",
    where: "Admin, Integrations, Connect, Connect Keys: Add Secret Key; it is shown once.",
  },
  register:
    "Admin, Integrations, Connect, Add Configuration, Custom: URL to publish, data format REST v2.1 with JSON, and Include HMAC Signature.",
  example: {
    json: {
      event: "envelope-completed",
      apiVersion: "v2.1",
      uri: "/restapi/v2.1/accounts/8675309a-1234-4a1b-9c1d-3e5f7a9b1c2d/envelopes/3f9a2c1e-6b4d-4e2f-8a1c-9d3b5f7e2a6c",
      retryCount: 0,
      configurationId: 271828,
      generatedDateTime: "2026-01-15T12:00:00.4471203Z",
      data: {
        accountId: "8675309a-1234-4a1b-9c1d-3e5f7a9b1c2d",
        userId: "1e6b9c3f-8d2a-4c7e-9b1d-6a3f8c2e5d9b",
        envelopeId: "3f9a2c1e-6b4d-4e2f-8a1c-9d3b5f7e2a6c",
      },
    },
  },
  eventTypes: [
    { type: "envelope-completed", meaning: "Everybody has signed." },
    { type: "envelope-sent", meaning: "The envelope went to its recipients." },
    { type: "envelope-declined", meaning: "A recipient refused to sign." },
    { type: "envelope-voided", meaning: "The sender called it off." },
    { type: "recipient-completed", meaning: "One recipient has signed." },
  ],
  pitfalls: [
    "The event_id is the envelope, which is told of once a type: make a relay a type. A repeat’s body differs, as `retryCount` is in it.",
    "With several keys there is a header a key, -1, -2 and so on: this recipe reads the first.",
    "The older XML format is not read; and with the documents in the body an event is soon beyond 256 KB: leave Include Documents off.",
  ],
  docs: "https://developers.docusign.com/platform/webhooks/connect/hmac/",
};
