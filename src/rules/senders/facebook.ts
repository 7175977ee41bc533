/** Facebook pages, by Meta’s pages on webhooks for pages and lead ads. */
import type { Sender } from "./sender.ts";

export const facebook: Sender = {
  name: "facebook",
  title: "Facebook",
  summary: "Tells of a page’s leads, posts and comments (Meta’s Graph API).",
  verify: {
    scheme: "signature",
    header: "X-Hub-Signature-256",
    signatureKey: "sha256",
    signedPayload: "{body}",
    encoding: "hex",
    handshake: "meta",
  },
  map: {
    event_type: "entry.0.changes.0.field",
    page: "entry.0.id",
    lead: "entry.0.changes.0.value.leadgen_id",
    form: "entry.0.changes.0.value.form_id",
  },
  when: { event_type: "leadgen" },
  personEmail: null,
  secret: { from: "sender", where: "At developers.facebook.com, the app’s Settings, Basic: App secret." },
  register:
    "At developers.facebook.com, the app’s Webhooks, Page: Callback URL and the verify token that the relay’s page shows; then subscribe to leadgen, and the page to the app.",
  example: {
    json: {
      object: "page",
      entry: [
        {
          id: "153125381133",
          time: 1768478400,
          changes: [
            {
              field: "leadgen",
              value: {
                ad_id: "444444444",
                form_id: "444444444444",
                leadgen_id: "444444444445",
                created_time: 1768478400,
                page_id: "153125381133",
                adgroup_id: "44444444446",
              },
            },
          ],
        },
      ],
    },
  },
  eventTypes: [
    { type: "leadgen", meaning: "Somebody filled in a lead ad’s form." },
    { type: "feed", meaning: "Something was posted, commented on or liked." },
    { type: "mention", meaning: "Somebody named the page." },
  ],
  pitfalls: [
    "A lead holds ids alone: what was filled in is fetched by `leadgen_id`, which call_url’s server may do.",
    "A call may hold several entries, and is one event here: the map reads the first.",
    "Instagram’s webhooks are signed and asked the same way, with fields of their own.",
  ],
  docs: "https://developers.facebook.com/docs/graph-api/webhooks/getting-started",
};
