/** What release 0.13.0 changes. */
import type { Release } from "./release.ts";

export const RELEASE_0_13: Release = {
  version: "0.13.0",
  changes: [
    {
      subject: "Erasing a person whose address has a hyphen",
      was: "The person was made nobody, and what was stored of them stayed, as it did for everybody erased after them.",
      now: "What is stored of such a person is written over, and erasures that stood still go on with the update.",
    },
    {
      subject: "Commands where the environment names a proxy",
      was: "With HTTP_PROXY or ALL_PROXY set, a command sent its key in clear to the proxy even for a server on the same machine, and relay ready took the proxy's word for the server's.",
      now: "A server on this machine is asked directly.",
    },
    {
      subject: "Senders that sign timestamp and body with nothing between",
      was: "A captured call with its time in milliseconds counted once more with its time in seconds and three digits before the body, and signed JSON could be read as a form.",
      now: "A body whose first digits could be the timestamp's own is refused (401 bad_signature).",
    },
    {
      subject: "Mail to domains beyond ASCII",
      was: "An address such as ada@bücher.example was said to the mail server as it stands, and a server without SMTPUTF8 refused it for good, so that no mail and no sign-in code reached it.",
      now: "The domain goes in its ASCII spelling, which every server takes.",
    },
    {
      subject: "One domain in two spellings",
      was: "An address with its domain in punycode and one with it in letters were two people.",
      now: "Both are one person. Who existed twice stays twice, the one in letters is found, and an erasure finds both.",
    },
    {
      subject: "Schedules that are paused or held",
      was: "What was due before it, because the service had been down, was dropped without a word, and the relay's page said that no tick was due.",
      now: "The newest such tick waits, older ones are dead with their alert, and the page says that ticks of a pause are not recorded.",
    },
    {
      subject: "Signatures that count once",
      was: "Storing another secret or deleting a relay wrote every remembered signature in one statement while others' writes waited, and a secret pasted back after two others let them be forgotten a day later.",
      now: "A secret that goes is one row, whatever the number of its signatures, and each is remembered for as long as its own secret verifies. Those remembered before the update belong to their secret too where that was stored eight days before; others stay until a secret is minted or the relay is deleted.",
    },
    {
      subject: "Why a mail did not arrive",
      was: "It was told as a failure of encryption.",
      now: "A mail server that turns the connection away (554, 421) is told as that, with the reply's numbers.",
    },
    {
      subject: "Alert mails that reach no owner",
      was: "Only the page of mails showed them as not sent.",
      now: "They are a problem, alerts_unmailed, on Home, Attention, relay problems list and in relay_problems, which may rise where owners' mail was refused all along.",
    },
    {
      subject: "A change of production that waits for approval",
      was: "Only the list of relays showed it.",
      now: "Home shows it, one click away.",
    },
    {
      subject: "Lists of what is somebody's",
      was: "Mails, purchases, subscriptions and records asked for by a person's address were an empty list. A list of people by find or email let the other filters go unheard.",
      now: "An address, id or token finds them, and a name of nobody is refused. find and email stand alone; others beside them are refused with invalid_input. A cursor that the list of who takes no mail never gave is refused.",
    },
    {
      subject: "A record that another program wrote as no JSON object",
      was: "Its collection's list answered 500, and it could be neither shown, changed nor deleted.",
      now: "It is shown as empty with odd, which says what to do, and a relay that watches its collection fires as it is written anew or deleted.",
    },
    {
      subject: "revoke_plan that finds nothing to end",
      was: "Nothing told so.",
      now: "Its result says that a payment which comes later starts the plan all the same.",
    },
    {
      subject: "Erasing a person: their books",
      was: "They stayed.",
      now: "The reasons of their credits and grants, what the app gave with a receipt and the processor's customer id go too.",
    },
    {
      subject: "Trying now while the relay is paused",
      was: "A pause half way answered 409 though some were done.",
      now: "It answers 202 with tried, and stopped says why the rest was left.",
    },
    {
      subject: "A run's line",
      was: "It said 1 action.",
      now: "It always says <n> actions, also 1 actions, so that one pattern reads every line: a script that looked for 1 action has to be changed.",
    },
    {
      subject: "The command line",
      was: "A web address was repeated with its password where it was refused. What an approval's server named was opened whatever it was. relay ready looked at the usual port alone.",
      now: "The password is masked. Only web addresses are opened. relay ready finds the service of the data directory by itself and takes --data-dir. relay relays pause and resume and relay settings set held say when a running service finds the change. Refusals name what is not there and where to look, and where a refused key came from.",
    },
    {
      subject: "A new relay in the dashboard",
      was: "The button that creates it moved while the editor arrived, so that a click could be lost.",
      now: "Nothing that is seen moves, and Create relay stands at the window's lower edge.",
    },
    {
      subject: "Smaller refusals",
      was: "A record's field called such a number an object, and under a Host that no URL can hold the connector answered 500.",
      now: "A number beyond a double is refused as one, and the connector answers under any Host. A refused approval names what production refuses.",
    },
    {
      subject: "Speed on SQLite",
      was: "Each relay had a last page of its own in an index of events. On machines of 16 GB and more the process grew to three times of what it held.",
      now: "With fifty relays an event that only touches the database takes 8 % less CPU and writes 40 % fewer bytes. A server under load beside millions of stored events stays below 200 MiB: above 160 it collects its garbage by its work. Writing a run of dedupe keys costs a sixth: every 230,000 events a second was slowed by 0.3 s of work. The first start makes one index anew: about two seconds a million events, after its copy into backups/.",
    },
    {
      subject: "Speed on PostgreSQL",
      was: "Each group of writes woke every node, for lists and streams that are drawn twice a second.",
      now: "One node with 64 callers records a seventh and finishes a quarter more events, three nodes record a third and finish a sixth more: nodes tell each other at most some twenty times a second of what is only looked at, and a group takes three to five statements fewer. A page open on another node shows what a slow commit wrote once it is there.",
    },
  ],
  codesAdded: [],
  codesRemoved: [],
};
