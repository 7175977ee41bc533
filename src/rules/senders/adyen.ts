/** Adyen, by its pages on webhooks and on verifying HMAC signatures. */
import type { Sender } from "./sender.ts";

export const adyen: Sender = {
  name: "adyen",
  title: "Adyen",
  summary: "Tells of payments: authorised, captured, refunded, charged back (standard webhook).",
  verify: { scheme: "adyen" },
  map: {
    event_type: "notificationItems.0.NotificationRequestItem.eventCode",
    success: "notificationItems.0.NotificationRequestItem.success",
    payment: "notificationItems.0.NotificationRequestItem.pspReference",
    reference: "notificationItems.0.NotificationRequestItem.merchantReference",
    amount: "notificationItems.0.NotificationRequestItem.amount.value",
  },
  when: { event_type: "AUTHORISATION", success: "true" },
  personEmail: null,
  secret: {
    from: "sender",
    where:
      "Developers, Webhooks, the webhook’s Security: HMAC key, which is hex; generate it, and save the configuration.",
  },
  register: "Developers, Webhooks, Create new webhook, Standard webhook: URL, method JSON.",
  example: {
    json: {
      live: "false",
      notificationItems: [
        {
          NotificationRequestItem: {
            additionalData: { hmacSignature: "" },
            amount: { currency: "EUR", value: 4200 },
            eventCode: "AUTHORISATION",
            eventDate: "2026-01-15T12:00:00+01:00",
            merchantAccountCode: "ExampleShop",
            merchantReference: "order-1042",
            operations: ["CANCEL", "CAPTURE", "REFUND"],
            paymentMethod: "visa",
            pspReference: "NC6HT9CRT65ZGN82",
            reason: "033899:1111:03/2030",
            success: "true",
          },
        },
      ],
    },
  },
  eventTypes: [
    { type: "AUTHORISATION", meaning: "A payment was authorised, or refused: `success` says which." },
    { type: "CAPTURE", meaning: "A payment was captured." },
    { type: "REFUND", meaning: "A payment was paid back." },
    { type: "CANCELLATION", meaning: "A payment was called off." },
    { type: "CHARGEBACK", meaning: "The shopper’s bank took the money back." },
  ],
  pitfalls: [
    "Adyen signs eight values of the item and nothing else of the body: what acts on people may read those alone.",
    "`success` may be false: a `when` without it fulfils what was refused.",
    "Who pays is not signed: put a person’s id into the merchant reference.",
    "A new HMAC key signs at once, while what was sent before is signed by the old one: keep the old one here as long.",
  ],
  docs: "https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures",
};
