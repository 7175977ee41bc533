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
    hit: "Saving one more answers `relay_capped`.",
  },
  verifiedEventsPerMinute: {
    variable: "RELAY_LIMIT_VERIFIED_EVENTS_PER_MINUTE",
    counts: "Verified calls of an app that become an event, in a minute.",
    hit: "The sender is answered 429 `receiver_capped` and sends again later; an alert `relay_capped` says so.",
  },
  eventlessCallsPerMinute: {
    variable: "RELAY_LIMIT_EVENTLESS_CALLS_PER_MINUTE",
    counts:
      "Verified calls of a relay that become no event, in a minute: duplicates, ignored ones, what is not JSON.",
    hit: "The sender is answered 429 `receiver_capped` and sends again later.",
  },
  unverifiedCallsPerMinute: {
    variable: "RELAY_LIMIT_UNVERIFIED_CALLS_PER_MINUTE",
    counts: "Calls from one address that did not verify, in a minute.",
    hit: "That address is answered 429 `source_capped`; calls that verify from elsewhere go on.",
  },
  invitesPerDay: {
    variable: "RELAY_LIMIT_INVITES_PER_DAY",
    counts: "People of an environment whom an event or an invitation makes by their address, in a day.",
    hit: "The event waits and is tried again, and an alert `invite_capped` says so; an invitation is refused.",
  },
  signupsPerDay: {
    variable: "RELAY_LIMIT_SIGNUPS_PER_DAY",
    counts: "People of an environment who sign up with a code, in a day.",
    hit: "Newcomers are refused with `signup_capped`; whoever has an account signs in as ever.",
  },
  codesPerHour: {
    variable: "RELAY_LIMIT_CODES_PER_HOUR",
    counts: "Sign-in codes of an environment, in an hour.",
    hit: "Further codes are refused; people go on where they signed in before. An alert `codes_capped` says so. One network gets half of them at most.",
  },
  strangerCodesPerHour: {
    variable: "RELAY_LIMIT_STRANGER_CODES_PER_HOUR",
    counts: "Of these codes, those for addresses that nobody here has.",
    hit: "Newcomers wait; an alert `codes_capped` says so. One network gets half of them at most.",
  },
  emailsPerHour: {
    variable: "RELAY_LIMIT_EMAILS_PER_HOUR",
    counts: "Mails that the relays of an app send, in an hour.",
    hit: "The action fails and is tried again later.",
  },
  eventEmailsPerPersonPerDay: {
    variable: "RELAY_LIMIT_EVENT_EMAILS_PER_PERSON_PER_DAY",
    counts: "Mails of kind event to one person, in a day.",
    hit: "The action fails and is tried again later.",
  },
  syncChangesPerMinute: {
    variable: "RELAY_LIMIT_SYNC_CHANGES_PER_MINUTE",
    counts: "Changes that syncs make in development, in a minute.",
    hit: "The sync is refused with the time from which it works again.",
  },
  clientWritesPerPersonPerMinute: {
    variable: "RELAY_LIMIT_CLIENT_WRITES_PER_PERSON_PER_MINUTE",
    counts: "Records that one person writes, changes or deletes in your app, in a minute.",
    hit: "The write is refused with 429 `writes_capped`.",
  },
  clientWritesPerAddressPerMinute: {
    variable: "RELAY_LIMIT_CLIENT_WRITES_PER_ADDRESS_PER_MINUTE",
    counts: "The same from one network address, of IPv6 from one /64.",
    hit: "The write is refused with 429 `writes_capped`.",
  },
  clientWritesPerAppPerMinute: {
    variable: "RELAY_LIMIT_CLIENT_WRITES_PER_APP_PER_MINUTE",
    counts: "The same of all people of an environment.",
    hit: "The write is refused with 429 `writes_capped`, and an alert of that name says so.",
  },
  clientEventsPerPersonPerMinute: {
    variable: "RELAY_LIMIT_CLIENT_EVENTS_PER_PERSON_PER_MINUTE",
    counts: "Events that one person's writes make, where relays watch the collection, in a minute.",
    hit: "The write is refused with 429 `writes_capped`.",
  },
  clientEventsPerAppPerMinute: {
    variable: "RELAY_LIMIT_CLIENT_EVENTS_PER_APP_PER_MINUTE",
    counts: "The same of all people of an environment.",
    hit: "The write is refused with 429 `writes_capped`, and an alert of that name says so.",
  },
  storedPerPersonMb: {
    variable: "RELAY_LIMIT_STORED_PER_PERSON_MB",
    counts: "What one person's records take when people write them, in MiB.",
    hit: "The write is refused with `storage_capped`.",
  },
  storedPerEnvironmentMb: {
    variable: "RELAY_LIMIT_STORED_PER_ENVIRONMENT_MB",
    counts: "What all records and files of an environment take, in MiB.",
    hit: "Writes of people and of your server are refused with `storage_capped`; relays go on writing.",
  },
};
