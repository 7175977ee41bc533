/** HubSpot, by its pages on the webhooks API and on validating requests. */
import type { Sender } from "./sender.ts";

export const hubspot: Sender = {
  name: "hubspot",
  title: "HubSpot",
  summary: "Tells of contacts, companies, deals and tickets that were made, changed and deleted.",
  verify: { scheme: "hubspot" },
  map: {
    event_id: "0.eventId",
    event_type: "0.subscriptionType",
    object: "0.objectId",
    property: "0.propertyName",
    value: "0.propertyValue",
  },
  when: {},
  personEmail: null,
  secret: { from: "sender", where: "The developer account, the app’s Auth: Client secret." },
  register:
    "The developer account, the app’s Webhooks: Target URL, exactly the receiver URL, and the subscriptions.",
  example: {
    json: [
      {
        eventId: 100,
        subscriptionId: 12345,
        portalId: 62515,
        appId: 1160452,
        occurredAt: 1768478400000,
        subscriptionType: "contact.propertyChange",
        attemptNumber: 0,
        objectId: 123,
        changeSource: "CRM",
        propertyName: "lifecyclestage",
        propertyValue: "customer",
      },
    ],
  },
  eventTypes: [
    { type: "contact.creation", meaning: "A contact is new." },
    {
      type: "contact.propertyChange",
      meaning: "A property of a contact changed; `propertyName` says which.",
    },
    { type: "deal.creation", meaning: "A deal is new." },
    { type: "deal.propertyChange", meaning: "A property of a deal changed, such as dealstage." },
  ],
  pitfalls: [
    "Events come in lists of up to a hundred, and a call is one event here: the map reads the first of the list. Let call_url hand the whole list to a server of yours, or set the app’s limit of concurrent events low.",
    "A `when` on the first one’s type ignores the rest of the list with it: leave it out.",
    "`eventId` is not promised to be unique: with many portals remove event_id, and repeats are told by their body.",
    "The URL is signed: paste the receiver URL exactly, with nothing after it.",
  ],
  docs: "https://developers.hubspot.com/docs/apps/legacy-apps/authentication/validating-requests",
};
