/** What release 0.1.0 changed. It is never edited. */
import type { Release } from "./release.ts";

export const RELEASE_0_1: Release = {
  version: "0.1.0",
  changes: [
    {
      subject: "Weekly schedules",
      was: "A schedule's longest period was 1d.",
      now: 'every: "1w" runs once a week; `on` names the weekday and `at` the UTC time of day.',
    },
    {
      subject: "Whose secret a receiver uses",
      was: "The service minted every receiver secret.",
      now: "The service mints the receiver secret, or you paste the sender's own.",
    },
    {
      subject: "Signature recipes",
      was: "The scheme hmac_sha256_header checked one header in one fixed way.",
      now: "The scheme signature describes how the sender signs; a definition under the old name is refused at save, and a stored one answers 401 scheme_renamed until it is saved with the new name.",
    },
    {
      subject: "Public keys",
      was: null,
      now: "Recipes with ed25519 or ecdsa-p256-sha256 check the sender's public key, pasted as hex, base64 or PEM.",
    },
    {
      subject: "Unsigned events",
      was: "A relay whose sender does not sign the event could run every action.",
      now: "Such a relay may only run write_record and call_url, unless trigger.trustUnsignedEvents is true.",
    },
    {
      subject: "Credits once per ref",
      was: "grant_credits applied once per event.",
      now: "With ref it applies once per person and ref, forever.",
    },
    {
      subject: "Trigger kind of a synced relay",
      was: "A relay's trigger kind could change anywhere.",
      now: "Once a relay is synced, its trigger kind is fixed; rename the relay, or prune it in development.",
    },
    {
      subject: "Signing secrets",
      was: "Every relay had a signing secret.",
      now: "A relay without a call_url action has none, and asking for one is refused.",
    },
    {
      subject: "Rotation with an overlap",
      was: "A rotated receiver secret stopped verifying at once.",
      now: "It still does unless overlapSeconds is given: then the old and the new secret verify until the overlap ends.",
    },
    {
      subject: "Recent calls",
      was: null,
      now: "Refused, ignored and duplicate receiver calls are listed with their cause, so that 'the provider says it sent it' can be answered.",
    },
    {
      subject: "Relays that go silent or refuse every call",
      was: null,
      now: "Each raises an alert, relay_silent or relay_refusing, and relay_recovered when it is over; alerts are mailed to the owners, one mail for a burst.",
    },
    {
      subject: "Backups and a look over",
      was: null,
      now: "relay backup copies a running server, relay restore puts a copy back, --backup-every makes them on a schedule, and relay doctor says what is wrong with a data directory.",
    },
    {
      subject: "Metrics",
      was: null,
      now: "GET /metrics answers Prometheus text, open on loopback and with a secret key elsewhere.",
    },
  ],
  codesAdded: [
    "scheme_renamed",
    "too_many_signatures",
    "provider_secret_required",
    "unsigned_event",
    "trigger_kind_fixed",
    "no_call_url",
  ],
  codesRemoved: [],
};
