/**
 * The registry of codes that an owner sees without a refused request. They are problems and alerts, and the reasons why a request created no
 * event, an event waits, or a mail was not sent. `relay help` and the pages under /docs/errors describe each one. A problem's own sentence names
 * the affected object and what to do about it.
 */

export const TROUBLES = {
  relay_failed: {
    when: "An event died: its last attempt failed, or a schedule's tick was missed while the service was down.",
    todo: "See it with relay events show, mend the cause and replay it with relay events replay; the alert resolves by itself then.",
  },
  relay_refusing: {
    when: "A receiver refused every call for a quarter of an hour, five at least.",
    todo: "Read the causes with relay requests list, then store the sender's present secret with relay relays set-secret or correct the recipe. It is over with the first call that verifies.",
  },
  relay_silent: {
    when: "A receiver that used to receive events received none for far longer than it ever waited between two.",
    todo: "Ask the sender whether it still sends, and to which URL. It is over with the next event; where none is to come, pause the relay (relay relays pause) or delete it (relay relays delete).",
  },
  relay_ignoring: {
    when: "A receiver ignored every verified call by its when: for a day, or hundreds in an hour.",
    todo: "Compare its when with what the sender sends (relay requests list), and correct it or take it out. Where the sender does not send that kind yet, resolve the alert: the count begins anew.",
  },
  relay_nobody: {
    when: "Every event of a relay found nobody, so no action ran.",
    todo: "Compare the map's person key with what the events carry, or add the person (relay people invite), then replay the events (relay events replay). It is over with the first event that finds its person.",
  },
  sale_nobody: {
    when: "An event that was to give somebody a product or a plan, or to take it back, found nobody, so that what was paid or paid back changed nothing.",
    todo: "Read with relay events show which key of the map was tried. Add the person (relay people invite), file the token for them (relay people add-token) or correct the map, then replay the event: it is over when none that found nobody is left; where 250,000 failed events or more are kept that is not looked for, so resolve the alert. Where such events are none of yours, leave them out by the relay's when, and resolve the alert.",
  },
  sale_suspended: {
    when: "A payment was recorded for somebody who is suspended, so that they may not use what was paid for.",
    todo: "Make them active again (relay people activate), or pay it back where it was paid and resolve the alert. It is over once they are active.",
  },
  relay_failing: {
    when: "Every attempt of a relay's events failed for half an hour, or failed with what waiting cannot mend.",
    todo: "Read why with relay events list and relay events show, mend the cause, and replay the events that died. It is over with the first that succeeds.",
  },
  relay_capped: {
    when: "Good events of a relay were refused, because its app received more in a minute than the server takes.",
    todo: "Raise RELAY_LIMIT_VERIFIED_EVENTS_PER_MINUTE and start the server again, or have the sender send less. It is over after an hour without one.",
  },
  relay_uncalled: {
    when: "A receiver was made a day ago and nobody has called it.",
    todo: "Give its URL, which relay relays show tells, to the sender. It is over with the first call, right or wrong.",
  },
  relay_recovered: {
    when: "What an earlier alert told of is over.",
    todo: "Nothing.",
  },
  relay_misfit: {
    when: "A change of the catalog left a relay that names what is not there any more, or writes a record that its collection refuses.",
    todo: "Change the relay or the catalog, whichever is wrong; relay validate finds the same in files.",
  },
  relay_unsigned_event: {
    when: "A relay acts on events whose sender does not sign the event itself, so every event is refused.",
    todo: "Remove those actions and person_email from the map, or set trigger.trustUnsignedEvents if you accept that.",
  },
  relay_key_as_secret: {
    when: "The relay's recipe checks a shared secret but a key is stored, so every event is refused.",
    todo: "Store the sender's secret with relay relays set-secret, or change the recipe's algorithm to the key's.",
  },
  definition_broken: {
    when: "A relay's file has a mistake, so that it is not applied: what was good before stays in force.",
    todo: "Correct the file; relay validate tells each mistake with its line.",
  },
  catalog_broken: {
    when: "The file catalog.json has a mistake, or what it says cannot be applied.",
    todo: "Correct the file; relay validate tells each mistake with its line.",
  },
  file_behind: {
    when: "Local development saved a relay or the catalog and could not write it to its file yet.",
    todo: "Make the folder writable, or put it back; the file is written as soon as it can be, and what was saved is in force meanwhile.",
  },
  folder_away: {
    when: "The folder of the definition files is gone, so local development leaves its relays in force and deletes nothing.",
    todo: "Put the folder back, or make it again without the files of relays that are to go.",
  },
  proxy_unnamed: {
    when: "Calls come through a proxy that the server was not told of, so everyone behind it counts as one caller and shares its caps.",
    todo: "Start the server with --trusted-proxy and the proxy's address (RELAY_TRUSTED_PROXY), if the proxy is yours.",
  },
  events_expiring: {
    when: "Events have waited for 27 days behind a pause or a hold, and are dropped after 30.",
    todo: "Resume the relay (relay relays resume) or release the hold (relay settings set held off), or let them go.",
  },
  events_dropped: {
    when: "Events that waited for more than 30 days behind a pause or a hold were dropped and do not run.",
    todo: "Resume the relay or release the hold to run what still waits; have the sender send again what is still wanted.",
  },
  environment_held: {
    when: "The environment is on hold: what arrives is recorded and waits, and nothing runs.",
    todo: "Release the hold with relay settings set held off as soon as it may run again; what waited then runs by itself.",
  },
  approval_waiting: {
    when: "A change of production was asked for, and no owner has approved or refused it yet; ten minutes after it was asked for it is over.",
    todo: "Open it in the dashboard, read what it would change, and approve or refuse it there.",
  },
  backup_missing: {
    when: "The server has no backup in its data directory, or the newest is far older than the server was to make them.",
    todo: "Make one with relay backup, and have the server make them by itself with relay serve --backup-every 1d.",
  },
  codes_capped: {
    when: "The sign-in codes or sign-ups that an environment has for an hour or a day are used up; those who signed in lately are refused nothing.",
    todo: "Raise the RELAY_LIMIT_… variable that the alert names if these are your visitors, and start the server again; or let only invited people sign in (relay settings set signin.invitedOnly on).",
  },
  codes_unmailed: {
    when: "Sign-in codes cannot be mailed: the environment has no verified sender domain or no mail server, its mail is switched off, or the mail server takes none.",
    todo: "Mend what the problem names, then send a test mail with relay emails test: it is over with that, or with the first code that leaves.",
  },
  writes_capped: {
    when: "What people of the app write was refused: too much of it in a minute, or more than the environment holds.",
    todo: "Suspend whoever floods (relay people suspend), or delete what is no longer needed (relay records delete, relay files delete); or raise the RELAY_LIMIT_… variable that the alert names, and start the server again.",
  },
  mail_unknown: {
    when: "The connection ended after a mail was handed over and before the mail server said anything, so it may have left, and it is never sent twice.",
    todo: "Ask the person or the mail server; relay emails list --state unknown shows which mails they are.",
  },
  alerts_unmailed: {
    when: "A mail server is set, and the owners are not mailed what they are alerted of: the last alert mail was refused for good, or none could leave for an hour.",
    todo: "Mend what the problem names (the owner's address, the mail server, the sender domain), then send a test mail with relay emails test: it is over with the first mail to an owner that leaves. Where no alert is to be mailed, switch that off with relay settings set alerts.mail off.",
  },
  when: {
    when: "A call verified and the relay's when asks for another one, so no event was made.",
    todo: "Nothing where the relay waits for another kind of call; else correct its when.",
  },
  ignored: {
    when: "A call verified and the relay's when asks for another one, so no event was made.",
    todo: "Nothing where the relay waits for another kind of call; else correct its when.",
  },
  duplicate: {
    when: "A call carried an event that had arrived before, so nothing was done again.",
    todo: "Nothing: senders send twice. Where the bodies differ, look whether event_id in the relay's map is really the event's own id.",
  },
  handshake: {
    when: "A sender's question to a receiver URL, as when it is registered there, was answered as the relay's verify.handshake says.",
    todo: "Nothing: it makes no event. Where you registered no sender, look at the relay's calls, and remove handshake from its definition when nobody asks any more.",
  },
  waiting: {
    when: "An event was stored and does not run yet, because its relay is paused or its environment is on hold.",
    todo: "Resume the relay with relay relays resume, or release the hold with relay settings set held off; it then runs by itself.",
  },
} as const satisfies Record<string, { when: string; todo: string }>;

export type TroubleCode = keyof typeof TROUBLES;

/** The kinds of reasons why a mail was not sent, each with its sentence. */
export const MAIL_TROUBLES = {
  no_server: "No SMTP server is set in this environment: set one with relay settings set mail.smtp.",
  name_not_found:
    "The mail server's name was not found: check the host (relay settings get mail.smtp) and its DNS records.",
  address_refused:
    "The mail server's address is not a public one, so it is not connected to: name a public server, or ask the operator to allow this one (--allow-private, RELAY_ALLOW_PRIVATE).",
  connection_refused:
    "The mail server refused the connection: check host and port (relay settings get mail.smtp), and that the server runs.",
  not_connected:
    "The mail server cannot be reached, or no name server answered for its name: check host and port (relay settings get mail.smtp), that the server runs, and this machine's network and name servers.",
  timed_out: "The mail server did not answer in time.",
  tls_failed:
    "No trusted encrypted connection to the mail server: check the security (relay settings get mail.smtp), and the server's certificate and its name; where an authority of your own signed it, start the service with NODE_EXTRA_CA_CERTS=/path/to/authority.pem.",
  auth_refused:
    "The mail server refused the sign-in: set username and password anew with relay settings set mail.smtp.",
  sender_refused: "The mail server refused the sender's address.",
  recipient_refused: "The mail server refused the recipient's address.",
  text_refused: "The mail server refused the mail itself.",
  server_trouble:
    "The mail server turned the connection away, or answered something that is no part of sending a mail.",
  connection_lost: "The mail server closed the connection before it had taken the mail.",
  stopped: "The service was stopped before the mail server had taken the mail.",
  not_composed: "The mail could not be made or handed over here: the server's log says why.",
} as const satisfies Record<string, string>;

export type MailTrouble = keyof typeof MAIL_TROUBLES;
