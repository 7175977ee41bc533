/** Attio, by its guide to webhooks. */
import type { Sender } from "./sender.ts";

export const attio: Sender = {
  name: "attio",
  title: "Attio",
  summary: "Tells of records, list entries, notes and tasks of a workspace.",
  verify: { scheme: "signature", header: "Attio-Signature", signedPayload: "{body}", encoding: "hex" },
  map: {
    event_type: "events.0.event_type",
    record: "events.0.id.record_id",
    object: "events.0.id.object_id",
    actor: "events.0.actor.id",
  },
  when: { event_type: "record.created" },
  personEmail: null,
  secret: {
    from: "sender",
    where: "It is shown once, when the webhook was made (the field secret of the API’s answer).",
  },
  register: "Workspace settings, Developers, the app’s Webhooks; or POST https://api.attio.com/v2/webhooks.",
  example: {
    json: {
      webhook_id: "23e42eaf-323a-41da-b5bb-fd67eebda553",
      events: [
        {
          event_type: "record.created",
          id: {
            workspace_id: "14beef7a-99f7-4534-a87e-70b564330a4c",
            object_id: "97052eb9-e65e-443f-a297-f2d9a4a7f795",
            record_id: "bf071e1f-6035-429d-b874-d83ea64ea13b",
          },
          actor: { type: "workspace-member", id: "50cf242c-7fa3-4cad-87d0-75b1af71c57b" },
        },
      ],
    },
  },
  eventTypes: [
    { type: "record.created", meaning: "A record, such as a person or a company, is new." },
    { type: "record.updated", meaning: "A record was changed." },
    { type: "list-entry.created", meaning: "A record was put on a list." },
    { type: "note.created", meaning: "A note was written." },
  ],
  pitfalls: [
    "The event is in a list, which holds one today and may hold more later: the map reads the first.",
    "It holds ids alone: what the record says is fetched by them.",
  ],
  docs: "https://docs.attio.com/rest-api/guides/webhooks",
};
