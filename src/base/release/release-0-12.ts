/** What release 0.12.0 changes. */
import type { Release } from "./release.ts";

export const RELEASE_0_12: Release = {
  version: "0.12.0",
  changes: [
    {
      subject: "An event that waits for its retry",
      was: "Once its cause was mended it waited all the same, for up to 16 hours, and could not be replayed meanwhile.",
      now: "It can be tried now: Try now on its page, relay events retry, POST …/events/{id}/retry or the connector's retry_event; all that wait at a relay by Try now on its page, relay relays retry or POST …/relays/{name}/retry. The attempt counts as any other.",
    },
    {
      subject: "Signatures that count once",
      was: "Storing the same secret again, ending an overlap, pasting the earlier secret back or making the relay again let those accepted so far be forgotten a day later, and a captured call was accepted a second time.",
      now: "A signature is remembered for as long as its secret verifies, and a timestamp's for the longest window that a save may set. A call that comes again no longer costs a turn of the writer.",
    },
    {
      subject: "A cancellation that is told again under its ref",
      was: "revoke_plan under a ref that no payment here had ended whatever plan was active, also one that was paid for since.",
      now: "A ref stands for one subscription for good.",
    },
    {
      subject: "A refused start under npm",
      was: "It printed why, and stood there for good.",
      now: "npm start that is refused, beside a running service for example, ends.",
    },
    {
      subject: "A save's warnings",
      was: null,
      now: "ref_of_nothing: a refund without a ref can never find its payment. Two refunds of different products under one ref are warned of. trustUnsignedEvents is warned of again where a save makes a timestamp's window longer, turns a token that counts once into a shared one, or reads more of what a sender does not sign. Validating tells relay_missing, as a save refuses it.",
    },
    {
      subject: "Suspended people",
      was: "It named nobody.",
      now: "An event that ended dead because its person is suspended is among that person's events and in their story, and a bulk replay by person finds it.",
    },
    {
      subject: "Finding events",
      was: "q found a text only as the sender's JSON spells it, and mapped=paid:true nothing.",
      now: "Slashes, letters and quotes that a sender escaped are found, and true and false as they are written. Beside ten million events a filter that finds none answers at once: a page ends after a few milliseconds of looking, with a next where there may be more.",
    },
    {
      subject: "Schedules",
      was: "It counted as a new one, and what was due while nothing ran was dropped.",
      now: "A save with the trigger's fields in another order, or with the same times in other words (1d, and 1d at 00:00), is no new trigger.",
    },
    {
      subject: "Record changes",
      was: "It stopped the capture of all record changes.",
      now: "A record that another program wrote as null matches no where, one that is nested too deeply fires nothing, which is logged, and all others go on.",
    },
    {
      subject: "Standing problems",
      was: "A count and a span were read hours later as of now. events_expiring was cleared by a resume though a hold stayed, or by a release though the relay was paused, and its owner was mailed anew an hour later.",
      now: "A count says when it was so. events_expiring stands while either keeps events waiting.",
    },
    {
      subject: "The dashboard: from what is wrong to where it is put right",
      was: null,
      now: "Events, a relay's health, Home and the hold's banner lead there. A new relay whose calls are all refused does not show its secret as settled. A replay's plan says when the cause still stands. A relay that watches a collection says that what relays write starts none. History names the key that saved (actorName in the API's versions). A page that waits for the service says so, and pages print without navigation.",
    },
    {
      subject: "The dashboard: smaller things",
      was: "The list of relays showed no names there, and the audit four letters of what was done; and it was two needs.",
      now: "On screens of 761 to 1000 pixels names keep their room. Mail without a sender domain is one need on Home. Home's figures say that they are of what arrived, a tick's time is the reader's, a record shows for whom it is by address, making what an event died of leads back to the event, and a tab that asks to sign in goes on where somebody did in another.",
    },
    {
      subject: "Erasing a person",
      was: "They stayed.",
      now: "The subjects of their mails go from the audit of their runs too. Erasures that ended before the update are not swept again.",
    },
    {
      subject: "A node that brings its PostgreSQL to a new schema",
      was: "Nobody answered on its port, and a server that died without a word in the middle kept the start waiting for ever.",
      now: "The node answers 503 with the step it is at, ends in seconds when it is told to, gives a silent server up and goes on when that is back. Another database's master key is refused before anything is changed.",
    },
    {
      subject: "A start that meets a lock in PostgreSQL",
      was: "It ended after 45 seconds.",
      now: "The start waits and says so in its log. Any start that takes more than five seconds answers 503 on its port, and one that is told to stop ends within six.",
    },
    {
      subject: "Speed on PostgreSQL",
      was: "Each group of writes waited for two more round trips under the writers' lock. Server and node kept a prepared statement for every mix of values that rows of a group had or lacked.",
      now: "A quarter to a third more events a second in most measured cases. Many rows are one short statement, and half of the calls are read while the other half is written. A deleted app's events are swept without walking through what is swept already.",
    },
    {
      subject: "Smaller things",
      was: null,
      now: "relay list events and relay events --json list name the command that was meant. relay import-missed without a line says that there is no such relay. Replaying an event that arrived unsigned advises the opt-in only where a save would take it. Where no record can match where, explain and test events say that no example can be made. The pages say within what time a stop is over, and that docker run needs --stop-timeout 30. Storing an event of a paused or held relay costs some percent less. The update makes two indexes of events anew, some twenty seconds for ten million on SQLite.",
    },
  ],
  codesAdded: ["not_waiting"],
  codesRemoved: [],
};
