/** What release 0.14.0 changes. */
import type { Release } from "./release.ts";

export const RELEASE_0_14: Release = {
  version: "0.14.0",
  changes: [
    {
      subject: "A schedule that is given another trigger",
      was: "What the one before was due, because the service had been down, was dropped without a word.",
      now: "The newest such tick runs, or ends failed with trigger_changed where the relay is no schedule any more, and older ones are dead with their alert, whether the edit came by dashboard, API, command, sync or file.",
    },
    {
      subject: "Ticks missed in a long stop",
      was: "A pause, a hold or a start recorded them in one transaction, thousands of rows while other writes waited.",
      now: "200 at a time. A kill in between loses and doubles none.",
    },
    {
      subject: "What the client library tells an app's visitors",
      was: "Refusals named commands and settings that only an owner has.",
      now: "They say what happened and what the visitor can do, and the owner's part is in the log. Whoever matched messages sees others; codes and statuses are as they were.",
    },
    {
      subject: "Text from outside in the dashboard",
      was: "Marks piled over other lines covered what stood above them, and a key's or a browser's name could turn what its button is called.",
      now: "They stand as their escapes, in tooltips, labels and titles of dialogs too.",
    },
    {
      subject: "A page whose session has ended",
      was: "What it showed stood blurred behind the card that asks to sign in, readable for who knew what to look for, and what its owner was writing was shown to another who signed in there.",
      now: "It is hidden wholly, dialogs too, and comes back as it was. What somebody was writing is kept for them alone; drafts kept before the update are not found any more.",
    },
    {
      subject: "A browser whose clock is far off",
      was: "The last hour was empty on a machine hours ahead, and a bulk replay of it took hours on one behind.",
      now: "The dashboard reckons with the service's time where the two differ by more than half a minute.",
    },
    {
      subject: "Lists that a limit cut",
      was: "In a pipe and with --json nothing said so, and relay events show gave a pipe 400 characters of the payload.",
      now: "Standard error says that there are more and the --limit that shows them, and a pipe gets the payload whole.",
    },
    {
      subject: "Commands beside a server",
      was: "They did not know the private addresses it may reach or the secret that a sync left for it, relay admin create made a second data directory without a word, relay config showed none of what it may reach, and a server's certificate that is not believed was told as no answer.",
      now: "They know what it knows, say where a data directory is made and make none in a project's folder, name the certificate and NODE_EXTRA_CA_CERTS, and say that a new secret is found within a second.",
    },
    {
      subject: "Replaying from the command line",
      was: "An event that waits for its retry was refused with the word wait, and relay replays start without a terminal did not say what it lacks.",
      now: "The first names the command that tries it now, the second --yes.",
    },
    {
      subject: "What one person got",
      was: "Their story showed an event as done though an action of it was skipped, and only the API listed their mail.",
      now: "The story says which action was skipped and why, and relay emails list takes --person.",
    },
    {
      subject: "The connector",
      was: "It read a person by id alone, and a long list was cut to a text that is no list.",
      now: "read_person takes an address or a token too, as its lists do. A list that is too long is cut behind its first items, and says so.",
    },
    {
      subject: "Relay doctor",
      was: "It said nothing of alert mails that reach no owner, nor of who stands twice by the two spellings of a domain.",
      now: "It tells both, and finding people by a part of a domain in punycode finds who was given so.",
    },
    {
      subject: "Changes of production",
      was: "One that waits for approval stood on Home alone, and that a field goes whose values records hold was in the differences alone.",
      now: "What waits counts on Attention, in the navigation, in the tab's title and in relay status (approval_waiting). A plan, the approval and --json warn of such a field with how many records (field_holds_values).",
    },
    {
      subject: "Signatures that count once",
      was: "Nothing told that very many are remembered.",
      now: "From about a hundred thousand on a relay's page, relay relays show and the API (remembered) tell how many. Where an update node by node began before 0.13.0, have no relay's secret minted in its middle.",
    },
    {
      subject: "Sentences",
      was: "A token in the place of a user in a web address was repeated where the address was refused, and a command in a sentence could break in two lines.",
      now: "It is masked, and a command stays on one line where it has room.",
    },
    {
      subject: "The page about selling",
      was: "Its checkout fulfilled what was not paid yet, and its refund took the product for a part's refund.",
      now: "It waits for the money, and a part leaves the product, as the templates do.",
    },
  ],
  codesAdded: [],
  codesRemoved: [],
};
