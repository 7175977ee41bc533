/** Webflow, by its pages on webhooks and request signatures. */
import type { Sender } from "./sender.ts";

export const webflow: Sender = {
  name: "webflow",
  title: "Webflow",
  summary: "Tells of form submissions, published sites, orders and items of a collection.",
  verify: {
    scheme: "signature",
    header: "x-webflow-signature",
    timestampHeader: "x-webflow-timestamp",
    signedPayload: "{timestamp}:{body}",
    encoding: "hex",
  },
  map: {
    event_id: "payload.id",
    event_type: "triggerType",
    form: "payload.name",
    site: "payload.siteId",
    email: "payload.data.Email",
  },
  when: { event_type: "form_submission" },
  personEmail: null,
  secret: {
    from: "sender",
    where:
      "The field secretKey of the API’s answer when the webhook was made with a site token; for an app’s webhook, the app’s client secret.",
  },
  register: "Its API alone: POST https://api.webflow.com/v2/sites/<site>/webhooks with triggerType and url.",
  example: {
    json: {
      triggerType: "form_submission",
      payload: {
        name: "Contact Us",
        siteId: "65427cf400e02b306eaa049c",
        data: { "First name": "Ada", Email: "ada@example.com" },
        submittedAt: "2026-01-15T12:00:00.000Z",
        id: "6321ca84df3949bfc6752327",
        formId: "65429eadebe8a9f3a30f62d0",
        formElementId: "4e038d2c-6a1e-4953-7be9-a59a2b453177",
      },
    },
  },
  eventTypes: [
    {
      type: "form_submission",
      meaning: "Somebody sent a form; its fields are in `payload.data`, by their names.",
    },
    { type: "site_publish", meaning: "The site was published." },
    { type: "ecomm_new_order", meaning: "An order was placed." },
    { type: "collection_item_created", meaning: "An item of a collection is new." },
  ],
  pitfalls: [
    "A webhook that is made in the site’s settings, and not by the API, is not signed, and is refused.",
    "Fields of a form keep the names they have on the page: `payload.data.Email` is there where the field is called so.",
  ],
  docs: "https://developers.webflow.com/data/docs/working-with-webhooks",
};
