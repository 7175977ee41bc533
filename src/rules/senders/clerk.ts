/** Clerk, by its pages on webhooks, and Svix. */
import type { Sender } from "./sender.ts";

export const clerk: Sender = {
  name: "clerk",
  title: "Clerk",
  summary: "Tells of users, sessions and organisations.",
  verify: { scheme: "hooks" },
  map: {
    event_type: "type",
    user: "data.id",
    email: "data.email_addresses.0.email_address",
    instance: "instance_id",
  },
  when: { event_type: "user.created" },
  personEmail: "data.email_addresses.0.email_address",
  secret: {
    from: "sender",
    where: "Configure, Webhooks, the endpoint’s page: Signing Secret, which starts with whsec_.",
  },
  register: "Configure, Webhooks, Add Endpoint: Endpoint URL and the events.",
  example: {
    json: {
      data: {
        id: "user_29w83sxmDNGwOuEthce5gg56FcC",
        object: "user",
        first_name: "Ada",
        last_name: "Lovelace",
        primary_email_address_id: "idn_29w83yL7CwVlJXylYLxcslromF1",
        email_addresses: [
          {
            id: "idn_29w83yL7CwVlJXylYLxcslromF1",
            object: "email_address",
            email_address: "ada@example.com",
            verification: { status: "verified", strategy: "ticket" },
          },
        ],
        created_at: 1768478399000,
        updated_at: 1768478400000,
      },
      instance_id: "ins_123",
      object: "event",
      timestamp: 1768478400000,
      type: "user.created",
    },
  },
  eventTypes: [
    { type: "user.created", meaning: "Somebody signed up." },
    { type: "user.updated", meaning: "A user was changed." },
    { type: "user.deleted", meaning: "A user was deleted; only the id is left." },
    { type: "session.created", meaning: "Somebody signed in." },
    { type: "organizationMembership.created", meaning: "Somebody joined an organisation." },
  ],
  pitfalls: [
    "The message’s id is in the header svix-id, which is what repeats are told by: the map needs no event_id.",
    "A user may have several addresses: the first of the list is not always the primary one.",
  ],
  docs: "https://clerk.com/docs/webhooks/overview",
};
