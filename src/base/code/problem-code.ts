/**
 * The registry of problems and alerts. A problem exists as long as its condition does; an alert is a message to the owner. The message of each
 * names the affected object.
 */
import type { CodeEntry } from "./code-entry.ts";

const BOTH = ["problem", "alert"] as const;

interface ProblemEntry extends CodeEntry {
  kinds: NonNullable<CodeEntry["kinds"]>;
}

export const PROBLEMS = {
  relay_failed: {
    kinds: ["alert"],
    what: "An event of the relay is dead.",
    why: "Its last attempt failed, its failure is permanent, or the service was down at a time of the schedule.",
    todo: "Read why (`relay events show`), fix the cause and replay the event (`relay events replay`).",
    next: "The alert resolves when no event of the relay is dead any more.",
  },
  relay_refusing: {
    kinds: BOTH,
    what: "The receiver rejected every request for 15 minutes, and at least five.",
    why: "In most cases the provider has a new secret, or the recipe does not match how it signs.",
    todo: "Read the causes (`relay requests list`). Store the sender's current secret (`relay relays set-secret`) or correct the recipe.",
    next: "The alert resolves when the next request verifies.",
  },
  never_verified: {
    kinds: BOTH,
    what: "The receiver rejected a request, and no request has verified yet.",
    why: "In most cases the stored secret is not the sender's, or the recipe does not match how it signs.",
    todo: "Read the cause (`relay requests list`). Store the sender's secret (`relay relays set-secret`) or correct the recipe.",
    next: "The alert resolves when the first request verifies.",
  },
  secret_missing: {
    kinds: BOTH,
    what: "The receiver stores no secret or public key, so it rejects every request.",
    why: "The sender makes the secret itself, so Relay cannot generate it.",
    todo: "Copy the secret at the sender and store it (`relay relays set-secret`).",
    next: "The alert resolves when the secret is stored.",
  },
  relay_silent: {
    kinds: BOTH,
    what: "The receiver has received no event for much longer than ever before.",
    todo: "Ask the sender whether it still sends, and to which URL. If no event is to come, pause the relay (`relay relays pause`) or delete it (`relay relays delete`).",
    next: "The alert resolves when the next event arrives.",
  },
  relay_ignoring: {
    kinds: BOTH,
    what: "The `when` of the receiver ignored every verified request, for a day or hundreds in an hour.",
    todo: "Compare `when` with what the sender sends (`relay requests list`), and correct or remove it. If the sender does not send this kind of event yet, resolve the alert: the count then starts again.",
    next: "The alert resolves when a request matches `when`.",
  },
  relay_nobody: {
    kinds: BOTH,
    what: "No event of the relay found its person, so no action ran.",
    why: "In most cases the map's person key names the wrong field, or the people do not exist yet.",
    todo: "Compare the map's person key with the values in the events. Correct the map or add the person (`relay people invite`). Then replay the events (`relay events replay`).",
    next: "The alert resolves when an event finds its person.",
  },
  sale_nobody: {
    kinds: ["alert"],
    what: "A payment or refund found no person, so it changed nothing.",
    todo: "Read which key of the map Relay tried (`relay events show`). Add the person (`relay people invite`), file the token (`relay people add-token`) or correct the map. Then replay the event. If such events are not yours, exclude them with the relay's `when` and resolve the alert.",
    next: "The alert resolves when no such event of the relay is left. Above 250,000 failed events Relay cannot check this, and you must resolve the alert.",
  },
  sale_suspended: {
    kinds: ["alert"],
    what: "Relay recorded a payment of a suspended person, who cannot use what they paid for.",
    todo: "Activate the person (`relay people activate`), or refund the payment where it was paid and resolve the alert.",
    next: "The alert resolves when the person is active.",
  },
  relay_failing: {
    kinds: BOTH,
    what: "Every attempt of the relay's events has failed for half an hour, or failed in a way that a retry cannot fix.",
    todo: "Read why (`relay events list`, `relay events show`), fix the cause, and replay the dead events.",
    next: "The alert resolves when an event of the relay succeeds.",
  },
  relay_capped: {
    kinds: BOTH,
    what: "Relay rejected verified events of the relay, because its app received more in a minute than the limit.",
    todo: "Raise RELAY_LIMIT_VERIFIED_EVENTS_PER_MINUTE and restart the server, or have the sender send less.",
    next: "The alert resolves after an hour without such a rejection.",
  },
  relay_uncalled: {
    kinds: BOTH,
    what: "The receiver was created a day ago and has received no request.",
    todo: "Enter its URL (`relay relays show`) at the sender.",
    next: "The alert resolves when the first request arrives, valid or not.",
  },
  relay_recovered: {
    kinds: ["alert"],
    what: "The condition of an earlier alert ended.",
    todo: "Do nothing.",
  },
  relay_misfit: {
    kinds: ["problem"],
    what: "The relay no longer fits the catalog.",
    why: "After a change of the catalog, the relay names something that does not exist, or writes a record that its collection rejects.",
    todo: "Change the relay or the catalog. `relay validate` finds the same in files.",
    next: "The problem resolves when they fit.",
  },
  relay_unsigned_event: {
    kinds: ["problem"],
    what: "The receiver rejects every event, because it acts on people and its sender signs no event.",
    todo: "Remove those actions and `person_email` from the map, or set `trigger.trustUnsignedEvents` if you accept the risk.",
    next: "The problem resolves when you save a valid definition.",
  },
  relay_key_as_secret: {
    kinds: ["problem"],
    what: "The receiver rejects every event, because its recipe needs a shared secret and a key is stored.",
    todo: "Store the sender's secret (`relay relays set-secret`), or change the recipe's algorithm to that of the key.",
    next: "The problem resolves when the secret fits the recipe.",
  },
  definition_broken: {
    kinds: ["problem"],
    what: "The file of a relay has an error, so local development does not apply it.",
    todo: "Correct the file. `relay validate` shows each error with its line.",
    next: "The last valid definition stays in effect. The problem resolves when the file is valid.",
  },
  catalog_broken: {
    kinds: ["problem"],
    what: "The file `catalog.json` has an error, or local development cannot apply it.",
    todo: "Correct the file. `relay validate` shows each error with its line.",
    next: "The problem resolves when the file is valid.",
  },
  file_behind: {
    kinds: ["problem"],
    what: "Local development saved a relay or the catalog, but could not write it to its file yet.",
    todo: "Make the folder writable, or put it back.",
    next: "The saved change is in effect. Relay writes the file as soon as it can, and the problem resolves.",
  },
  folder_away: {
    kinds: ["problem"],
    what: "The folder of the definition files does not exist any more.",
    todo: "Put the folder back, or create it without the files of the relays that you want to delete.",
    next: "The relays stay in effect, and Relay deletes nothing. The problem resolves when the folder exists.",
  },
  proxy_unnamed: {
    kinds: ["problem"],
    what: "Requests arrive through a proxy that the server does not know, so all its clients share the limits of one address.",
    todo: "If the proxy is yours, start the server with `--trusted-proxy` and the proxy's address (RELAY_TRUSTED_PROXY).",
    next: "The problem resolves when the server starts with a named proxy.",
  },
  events_expiring: {
    kinds: BOTH,
    what: "Events have waited for 27 days behind a paused relay or a hold. Relay drops them after 30 days.",
    todo: "Resume the relay (`relay relays resume`) or release the hold (`relay settings set held off`), if you want these events to run.",
    next: "The alert resolves when no event has waited that long.",
  },
  events_dropped: {
    kinds: ["alert"],
    what: "Relay dropped events that had waited for more than 30 days behind a paused relay or a hold.",
    todo: "Resume the relay or release the hold, so that the other events run. Have the sender send again what you still want. Then resolve the alert.",
  },
  requests_rejected: {
    kinds: ["problem"],
    what: "The receiver rejected requests because of its secret or recipe, and not all of their events have arrived since then.",
    todo: "List the missing events (`relay relays rejected`) and import them (`relay import-missed`). If nothing more is to come, close the list.",
    next: "The item closes when each event has arrived or was imported.",
  },
  environment_held: {
    kinds: ["problem"],
    what: "The environment is on hold: Relay stores what arrives, and runs nothing.",
    todo: "Release the hold as soon as events may run again (`relay settings set held off`).",
    next: "The waiting events then run automatically.",
  },
  approval_waiting: {
    kinds: ["problem"],
    what: "A change of production waits for the approval of an owner.",
    todo: "Open it in the dashboard, read what it changes, and approve or reject it.",
    next: "The request expires ten minutes after it was made.",
  },
  backup_missing: {
    kinds: ["problem"],
    what: "The data directory has no backup, or the newest one is much older than configured.",
    todo: "Make a backup (`relay backup`). To make backups automatically, set their schedule (`relay backups schedule 1d`), or start the server with `relay serve --backup-every 1d`.",
    next: "The problem resolves when a new backup exists.",
  },
  backup_copy_failed: {
    kinds: ["problem"],
    what: "The last copy of a backup to the S3 endpoint failed.",
    why: "The endpoint did not answer, or it refused the keys, the bucket or the object.",
    todo: "Read the reason, fix the endpoint or its settings, and test the connection in Settings › Backups (`relay backups endpoint --test`).",
    next: "Relay retries within 15 minutes. The problem resolves when a copy succeeds.",
  },
  codes_capped: {
    kinds: ["alert"],
    what: "The environment has reached its limit of sign-in codes or sign-ups. People who signed in recently can still sign in.",
    todo: "If these are your visitors, raise the RELAY_LIMIT_… variable that the alert names, and restart the server. Otherwise let only invited people sign in (`relay settings set signin.invitedOnly on`).",
    next: "The alert resolves two hours after the last rejection.",
  },
  codes_unmailed: {
    kinds: BOTH,
    what: "Relay cannot mail sign-in codes.",
    why: "The environment has no verified sender domain or no mail server, its mail is switched off, or the mail server rejects every mail.",
    todo: "Fix what the problem names, then send a test mail (`relay emails test`).",
    next: "The alert resolves when the test mail or a sign-in code is sent.",
  },
  writes_capped: {
    kinds: ["alert"],
    what: "Relay rejected records that people of the app wrote, because a limit is reached.",
    why: "They wrote too much in a minute, or the environment has no space left.",
    todo: "Suspend a person who floods the app (`relay people suspend`), or delete what you no longer need (`relay records delete`, `relay files delete`). Otherwise raise the RELAY_LIMIT_… variable that the alert names, and restart the server.",
    next: "The alert resolves two hours after the last rejection.",
  },
  mail_unknown: {
    kinds: ["alert"],
    what: "Relay does not know whether a mail was sent.",
    why: "The connection ended after Relay handed the mail over and before the mail server answered.",
    todo: "List these mails (`relay emails list --state unknown`). Ask the person or the mail server, and send what did not arrive again by hand (`relay emails resend`).",
    next: "Relay never sends such a mail again by itself. The alert resolves when no mail of the relay has this state.",
  },
  alerts_unmailed: {
    kinds: ["problem"],
    what: "A mail server is set, but the owners get no alert mail.",
    why: "The last alert mail was permanently rejected, or Relay could send none for an hour.",
    todo: "Fix what the problem names, then send a test mail (`relay emails test`). If you want no alert mail, switch it off (`relay settings set alerts.mail off`).",
    next: "The problem resolves when a mail to an owner is sent.",
  },
} as const satisfies Record<string, ProblemEntry>;

export type ProblemCode = keyof typeof PROBLEMS;
