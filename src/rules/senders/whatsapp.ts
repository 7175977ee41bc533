/** WhatsApp Cloud API, by Meta’s pages on webhooks. */
import type { Sender } from "./sender.ts";

export const whatsapp: Sender = {
  name: "whatsapp",
  title: "WhatsApp",
  summary: "Tells a business number of messages and of how its own were delivered (Meta’s Cloud API).",
  verify: {
    scheme: "signature",
    header: "X-Hub-Signature-256",
    signatureKey: "sha256",
    signedPayload: "{body}",
    encoding: "hex",
    handshake: "meta",
  },
  map: {
    event_id: "entry.0.changes.0.value.messages.0.id",
    event_type: "entry.0.changes.0.value.messages.0.type",
    from: "entry.0.changes.0.value.messages.0.from",
    name: "entry.0.changes.0.value.contacts.0.profile.name",
    text: "entry.0.changes.0.value.messages.0.text.body",
  },
  when: { event_type: "text" },
  personEmail: null,
  secret: { from: "sender", where: "At developers.facebook.com, the app’s Settings, Basic: App secret." },
  register:
    "At developers.facebook.com, the app’s WhatsApp, Configuration: Callback URL and the verify token that the relay’s page shows; then subscribe to messages.",
  example: {
    json: {
      object: "whatsapp_business_account",
      entry: [
        {
          id: "102290129340398",
          changes: [
            {
              value: {
                messaging_product: "whatsapp",
                metadata: { display_phone_number: "15550783881", phone_number_id: "106540352242922" },
                contacts: [{ profile: { name: "Ada Lovelace" }, wa_id: "14158675309" }],
                messages: [
                  {
                    from: "14158675309",
                    id: "wamid.HBgLMTQxNTg2NzUzMDkVAgASGBQzQTRBNjU5OUFFRTAzODEwMTQ0RgA=",
                    timestamp: "1768478400",
                    type: "text",
                    text: { body: "Hello" },
                  },
                ],
              },
              field: "messages",
            },
          ],
        },
      ],
    },
  },
  eventTypes: [
    { type: "text", meaning: "Somebody wrote." },
    { type: "image", meaning: "Somebody sent a picture." },
    { type: "button", meaning: "Somebody pressed a button of a template." },
    { type: "interactive", meaning: "Somebody chose from a list or pressed a reply button." },
  ],
  pitfalls: [
    "How a message was delivered comes as `statuses` in the place of `messages`: it has another map, so make another relay for it.",
    "A call may hold several changes, and is one event here: the map reads the first.",
    "An app has one callback URL for all its numbers.",
  ],
  docs: "https://developers.facebook.com/docs/graph-api/webhooks/getting-started",
};
