/** What release 0.6.0 changed. It is never edited. */
import type { Release } from "./release.ts";

export const RELEASE_0_6: Release = {
  version: "0.6.0",
  changes: [
    {
      subject: "The dashboard's rooms",
      was: "Relays, events, calls, records, mail, attention and keys.",
      now: "Twelve rooms in three groups: Home; Relays, Events, Calls; People, Records, Selling, Mail; Attention, Audit, Settings. Each screen has an address that holds its filter, tab and panel. Pages load when they are opened. The Keys page is Settings, tab Keys; the address …/keys is gone.",
    },
    {
      subject: "Live, and where it is not",
      was: "Pages asked again every few seconds.",
      now: "One server-sent stream tells what changed ({E}/stream: kinds of things alone, at most twice a second), the clock is its fallback, and the page says since when what it shows is of before while the service cannot be reached. A hidden tab asks for nothing. New refusal streams_capped.",
    },
    {
      subject: "Finding anything",
      was: null,
      now: "Ctrl K (⌘K) finds rooms, relays, collections, acts, an event's or record's id, a person's address; GET {E}/find?q=. Times in the machine's zone or in UTC. The tab's title and icon count what needs somebody.",
    },
    {
      subject: "People",
      was: null,
      now: "Find a customer by address, id or store token, and see what they have now and from which relay and event, what did not come through and why, and everything that happened in one story. Access, credits, plans, mail, tokens and erasure by hand. GET {E}/persons/{id}/story; GET {E}/persons?find=&access=; GET {E}/persons/{id} tells access, credits, subscription and mail stop. relay people show and list say the same.",
    },
    {
      subject: "Events",
      was: "A list with state, relay and time.",
      now: "Bars over time by how events stand, to choose a time from; person:, relay:, state:, mapped.name: in the search; a panel beside the list with j and k; x selects, r replays after the plan. One event says whether its cause still stands, its attempts with the waits between them, its payload as a tree or raw, with find, copy of a path and copy as curl. GET {E}/events/histogram, GET {E}/events/{id}/cause, mapped=, a token as person=; relay events list --mapped. A person= who is nobody is 400.",
    },
    {
      subject: "How a relay is",
      was: "Active or paused.",
      now: "One word with its reason and the way out (OK, Failing, Refusing, Silent, No calls yet, …), the same on its page, in the list, on Home, in the API (health) and in relay relays list and show. Its page has the tabs Overview, Definition, Test, History and Secrets.",
    },
    {
      subject: "Why nothing happened",
      was: null,
      now: "A relay's last 24 hours as a funnel: calls, verified, when, not a duplicate, person, each action, and what stopped at each with a link to exactly those. GET {E}/relays/{name}/funnel, relay relays funnel.",
    },
    {
      subject: "Trying a relay",
      was: "relay explain.",
      now: "The Test tab explains an example, a pasted call (curl, headers and body) or an event that arrived, step by step and with no effect; in development it sends one for real: a test call, one tick, a test record. POST {E}/relays/{name}/test-event takes a record.",
    },
    {
      subject: "Writing definitions",
      was: "A text field.",
      now: "An editor that offers fields, values and your own collections, products and plans, says each field's rule, marks what is wrong at its line while you type, and keeps a draft. When two people save a relay both sides stand beside each other. GET /docs/definition is the JSON Schema.",
    },
    {
      subject: "A relay's versions",
      was: null,
      now: "Every version with who saved it and what it changed, and an earlier one saved again after it was checked: History, GET {E}/relays/{name}/versions, POST …/restore, relay relays history, relay relays restore --to.",
    },
    {
      subject: "Secrets that overlap",
      was: "A rotation overlapped by --overlap alone.",
      now: "The dashboard asks how long the old one goes on verifying (24 hours in production), says which of them the sender's last call used, and ends the old one by hand: DELETE {E}/relays/{name}/previous-secret, relay relays end-overlap.",
    },
    {
      subject: "Selling and mail in the dashboard",
      was: "By API and command.",
      now: "Products, plans and access slugs with the relays that name them (GET {E}/catalog-uses), receipts, subscriptions; the sender domain with its DNS record, the mail server, a test mail with its outcome, and why no mail leaves.",
    },
    {
      subject: "Collections and records in the dashboard",
      was: "Shown alone.",
      now: "Collections are made, changed and deleted; records are written, changed and deleted with exact numbers; what somebody else changed meanwhile is shown beside yours. A record says which event wrote it (eventId); its PUT takes the updatedAt that was read.",
    },
    {
      subject: "Settings, owners, sessions",
      was: "Keys alone.",
      now: "Rename the app, hold, the processor's secret, limits with what hitting each looks like, how the server was started, backups with one to make now. You see where you are signed in and end it there or everywhere; owners are invited and removed. /api/sessions, /api/owners, /api/server, /api/backups, PATCH /api/apps/{app}; relay admin list, sign-out, remove.",
    },
    {
      subject: "Audit",
      was: "By API.",
      now: "Who changed what, opened to what it was before and after, filtered in the address; relay audit list.",
    },
    {
      subject: "What needs somebody",
      was: "A dead event's cause in words.",
      now: "What an action names and is not there is made from where its dead events are told; a relay that refuses is told since its first refusal, and is not told as silent too. Alerts say who resolved them. needs[].alert of a problem is the alert that told of it; dead.cause and an event's cause have missing.",
    },
    {
      subject: "A flood of refused calls",
      was: "A refused call cost more than an accepted one.",
      now: "It costs half of what it did, and an accepted call beside it no longer waits. The first call out after a start leaves sooner.",
    },
    {
      subject: "From an empty server to a paid relay",
      was: "Commands and curl on the way.",
      now: "The browser alone: a template of a paid checkout, what a relay still needs on its page with the way to each (GET {E}/relays/{name} has missing), mail, the processor's secret, promote and approval, and what comes next after every step. GET {E}/overview has start.key.",
    },
    {
      subject: "How long an action took",
      was: null,
      now: "An event tells how long each action took and when one called out, as a bar in its attempt, in relay events show and in the API (results[].beganAt, tookMs); of a called URL the request as it left and the headers that came back, without what may let somebody in (results[].request, results[].answer.headers). The path of every value of a payload can be copied.",
    },
    {
      subject: "Names beside ids",
      was: "Ids alone.",
      now: "GET …/purchases and …/subscriptions tell personEmail, GET …/audit actorName and targetName: null once what they named is gone.",
    },
    {
      subject: "What ended changes nothing",
      was: "A call was let in before its body came.",
      now: "A key, session or owner that ended while a body was on its way changes nothing with it. A plan approved by an owner who was removed since is void. A new password ends one-time links and sign-ins that were waiting, and is audited (owner.password_changed).",
    },
    {
      subject: "Home's figures",
      was: "The last 24 hours alone.",
      now: "Ranges of 1 h, 24 h, 7 d and 30 d in the address, the share of refused calls, how long called URLs took (p95), the next ticks. GET {E}/calls/counts, GET {E}/url-times; code= of GET {E}/calls, --code of relay calls list and tail. Older hours of a day of more than 120,000 events are told as about so many.",
    },
    {
      subject: "The audit of the whole server",
      was: null,
      now: "Owners see who changed owners, sessions, apps, logins and backups: GET /api/audit, relay admin audit.",
    },
    {
      subject: "Finding a record by a text",
      was: null,
      now: "q= of GET {E}/collections/{name}/records.",
    },
  ],
  codesAdded: ["streams_capped"],
  codesRemoved: [],
};
