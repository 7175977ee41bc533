/** Describes each limit that can be raised: its environment variable, what it counts, and what happens above it. */
import type { RaisableLimits } from "./limit.ts";

interface LimitWords {
  variable: string;
  /** The thing that the limit counts, and its scope. */
  counts: string;
  /** The effect above the limit. */
  hit: string;
}

export const LIMIT_WORDS: Readonly<Record<keyof RaisableLimits, LimitWords>> = {
  relaysPerEnvironment: {
    variable: "RELAY_LIMIT_RELAYS",
    counts: "Relays of an environment.",
    hit: "Relay rejects one more with `relay_capped`.",
  },
  verifiedEventsPerMinute: {
    variable: "RELAY_LIMIT_VERIFIED_EVENTS_PER_MINUTE",
    counts: "Verified requests of an app that become an event, in a minute.",
    hit: "The sender gets 429 `receiver_capped` and sends again later. The alert `relay_capped` reports it.",
  },
  eventlessCallsPerMinute: {
    variable: "RELAY_LIMIT_EVENTLESS_CALLS_PER_MINUTE",
    counts:
      "Verified requests of a relay that become no event, in a minute: duplicates, ignored requests and requests that are not JSON.",
    hit: "The sender gets 429 `receiver_capped` and sends again later.",
  },
  unverifiedCallsPerMinute: {
    variable: "RELAY_LIMIT_UNVERIFIED_CALLS_PER_MINUTE",
    counts: "Requests from one address that did not verify, in a minute.",
    hit: "That address gets 429 `source_capped`. Relay still accepts verified requests from other addresses.",
  },
  invitesPerDay: {
    variable: "RELAY_LIMIT_INVITES_PER_DAY",
    counts: "People of an environment that an event or an invitation creates by their address, in a day.",
    hit: "Relay retries the event, and the alert `invite_capped` reports it. Relay rejects an invitation.",
  },
  signupsPerDay: {
    variable: "RELAY_LIMIT_SIGNUPS_PER_DAY",
    counts: "People of an environment who sign up with a code, in a day.",
    hit: "Relay rejects new people with `signup_capped`. People with an account can still sign in.",
  },
  codesPerHour: {
    variable: "RELAY_LIMIT_CODES_PER_HOUR",
    counts: "Sign-in codes of an environment, in an hour.",
    hit: "Relay rejects more codes, except from browsers that signed in before. The alert `codes_capped` reports it. One network gets at most half of the codes.",
  },
  strangerCodesPerHour: {
    variable: "RELAY_LIMIT_STRANGER_CODES_PER_HOUR",
    counts: "Of these codes, the ones for addresses that no person here has.",
    hit: "New people must wait. The alert `codes_capped` reports it. One network gets at most half of the codes.",
  },
  emailsPerHour: {
    variable: "RELAY_LIMIT_EMAILS_PER_HOUR",
    counts: "Mails that the relays of an app send, in an hour.",
    hit: "The action fails, and Relay retries it later.",
  },
  eventEmailsPerPersonPerDay: {
    variable: "RELAY_LIMIT_EVENT_EMAILS_PER_PERSON_PER_DAY",
    counts: "Mails of kind event to one person, in a day.",
    hit: "The action fails, and Relay retries it later.",
  },
  syncChangesPerMinute: {
    variable: "RELAY_LIMIT_SYNC_CHANGES_PER_MINUTE",
    counts:
      "Changes that syncs make in development, in a minute. The first sync into an empty environment does not count.",
    hit: "Relay rejects the sync and says from when it works again.",
  },
  clientWritesPerPersonPerMinute: {
    variable: "RELAY_LIMIT_CLIENT_WRITES_PER_PERSON_PER_MINUTE",
    counts: "Records that one person writes, changes or deletes in your app, in a minute.",
    hit: "Relay rejects the write with 429 `writes_capped`.",
  },
  clientWritesPerAddressPerMinute: {
    variable: "RELAY_LIMIT_CLIENT_WRITES_PER_ADDRESS_PER_MINUTE",
    counts: "The same from one network address, of IPv6 from one /64.",
    hit: "Relay rejects the write with 429 `writes_capped`.",
  },
  clientWritesPerAppPerMinute: {
    variable: "RELAY_LIMIT_CLIENT_WRITES_PER_APP_PER_MINUTE",
    counts: "The same of all people of an environment.",
    hit: "Relay rejects the write with 429 `writes_capped`, and the alert of that name reports it.",
  },
  clientEventsPerPersonPerMinute: {
    variable: "RELAY_LIMIT_CLIENT_EVENTS_PER_PERSON_PER_MINUTE",
    counts: "Events that one person's writes create, where relays watch the collection, in a minute.",
    hit: "Relay rejects the write with 429 `writes_capped`.",
  },
  clientEventsPerAppPerMinute: {
    variable: "RELAY_LIMIT_CLIENT_EVENTS_PER_APP_PER_MINUTE",
    counts: "The same of all people of an environment.",
    hit: "Relay rejects the write with 429 `writes_capped`, and the alert of that name reports it.",
  },
  storedPerPersonMb: {
    variable: "RELAY_LIMIT_STORED_PER_PERSON_MB",
    counts: "Size of one person's records that people write, in MiB.",
    hit: "Relay rejects the write with `storage_capped`.",
  },
  storedPerEnvironmentMb: {
    variable: "RELAY_LIMIT_STORED_PER_ENVIRONMENT_MB",
    counts: "Size of all records and files of an environment, in MiB.",
    hit: "Relay rejects writes of people and of your server with `storage_capped`. Relays can still write.",
  },
};
