/** What release 0.7.0 changes. */
import type { Release } from "./release.ts";

export const RELEASE_0_7: Release = {
  version: "0.7.0",
  changes: [
    {
      subject: "Known senders",
      was: "A relay's recipe was written from the provider's pages.",
      now: "relay presets lists 68 providers whose webhooks are known, each with its recipe, where its console shows the secret and takes the URL, an example event, its types and pitfalls; relay init --from stripe begins with one. The dashboard's New relay offers the same, searched by name, and says where the secret is beside the field it is pasted into and on the relay's Secrets tab. relay send and the Test tab use the sender's own example. GET /api/senders, GET /api/senders/{name}, GET {E}/relays/{name}/sender.",
    },
    {
      subject: "Senders that no recipe can say",
      was: null,
      now: "Schemes of their own without further fields: telnyx, hubspot (v3), adyen, zendesk, box, twitch. With adyen a relay that acts on people may read only the eight values that Adyen signs; anything else is a problem at save that names the field.",
    },
    {
      subject: "Handshakes",
      was: "A sender that asks the URL before it sends could not be registered.",
      now: "verify.handshake answers what meta, slack, zoom, discord, dropbox and twitch ask, and HEAD and GET probes, each with the check that its sender defines. None makes an event. A relay's page shows Meta's verify token; relay send <name> --handshake tries it; the calls list shows answered ones. New refusal handshake_refused.",
    },
    {
      subject: "Secret keys",
      was: "They began sk_live_ and sk_dev_.",
      now: "New ones begin relay_live_ and relay_dev_, so that scanners of secrets do not take them for another company's. Keys that begin sk_ stay valid.",
    },
    {
      subject: "An app is deleted",
      was: "No route and no command deleted one.",
      now: "Settings, General, Delete this app, and relay apps delete: an app goes with all that it holds. What that is is counted first, its id is typed once more, and a production that holds events is deleted in the dashboard alone. GET /api/apps/{appId}/contents, DELETE /api/apps/{appId}. relay apps create in a project's folder says that local development has one app.",
    },
    {
      subject: "Lists in a terminal",
      was: "Plain columns of whole times and ids, however wide the terminal.",
      now: "Colours, as wide as the terminal, 2 min ago, the last eight signs of an id, how many there are (20 of 6,063) and a pager; --whole shows times and ids whole, --no-pager writes straight. A pipe gets exactly what it got. NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE and TERM=dumb are heeded.",
    },
    {
      subject: "Ids and times on the command line",
      was: "Whole ids and ISO times.",
      now: "Every command that takes an id takes its ending, and lists what has it where several do. --since 24h (90m, 7d, 2w or a time) on events, calls, problems, alerts, people, mail, audit, replays and versions; --limit up to 10,000. A mistyped relay, profile, state, outcome or kind is answered with the one that was meant.",
    },
    {
      subject: "relay completion, relay config, relay ready",
      was: null,
      now: "Completion of commands, options, states and names for bash, zsh, fish and PowerShell; every value in force and where it comes from, secrets masked; whether the server is ready, by the exit code. relay --help lists the commands in four groups.",
    },
    {
      subject: "A start that fails",
      was: "A data directory that could not be made blamed the port.",
      now: "relay serve says of each thing that stands against a start which it is and what to do. database_refused (before: store_unavailable) where relay.db is damaged or no database; file_unusable (before: address_taken) where the data directory may not be used.",
    },
    {
      subject: "Documentation",
      was: "Pages for error codes alone.",
      now: "/docs, in the executable: a first hour, the definition with every rule and what is said to a mistake, actions, templates, people and selling, a page for each sender, every error, every limit, every route with a line for curl, every command, operations, the security model, and what to do when the provider says it sent it, when a customer did not get access, and when a secret is changed. Made from the code that runs; every example is run by a test. GET /docs/search, relay docs [words], Ctrl K; links lead there from the editor, Secrets, Calls and a person's page. GET /docs/definition.schema.json and /docs/catalog.schema.json.",
    },
    {
      subject: "Packaging",
      was: null,
      now: "packaging/ has a hardened systemd unit, a Dockerfile and a compose file with Caddy; /docs/install-server, /docs/docker, /docs/trusted-proxy, /docs/upgrade and /docs/off-site-backups show and explain them.",
    },
    {
      subject: "An event whose relay only writes data",
      was: "It ran in a transaction of its own after its call was answered.",
      now: "It runs in the transaction that stores it, where nothing of its relay waits before it: it is done when its call is answered.",
    },
    {
      subject: "A definition in the editor",
      was: "It was called valid where it could not be checked.",
      now: "The editor says Not checked while the service cannot be asked.",
    },
  ],
  codesAdded: ["handshake_refused"],
  codesRemoved: [],
};
