/** The refusals of the command line, which no HTTP response carries. They are a part of the registry of refusal codes. */
import type { RefusalEntry } from "./code-entry.ts";

export const COMMAND_REFUSALS = {
  usage: {
    status: 400,
    what: "The command line is not valid.",
    todo: "Correct it as the message says. `relay <command> --help` shows the arguments and options of a command.",
  },
  directory_taken: {
    status: 409,
    what: "Another server uses the data directory.",
    todo: "Stop that server first, or name another directory with `--data-dir`.",
  },
  database_refused: {
    status: 409,
    what: "Relay cannot use this database.",
    why: "The message says what is wrong with it.",
    todo: "Check the data directory with `relay doctor`, or replace the database with a backup (`relay restore`).",
  },
  newer_schema: {
    status: 409,
    what: "A newer version of Relay wrote the database.",
    todo: "Use that version, or restore a backup of this version.",
  },
  backup_refused: {
    status: 409,
    what: "Relay cannot make or restore this backup, and changed nothing.",
    todo: "Fix what the message names.",
  },
  store_unavailable: {
    status: 503,
    what: "Relay cannot use the database now.",
    todo: "Check the disk and the rights of the data directory, then retry. `relay doctor` checks both.",
  },
  file_unusable: {
    status: 400,
    what: "Relay cannot read or write a file or folder.",
    todo: "Check that the path is right, and that this user may use it.",
  },
  address_taken: {
    status: 409,
    what: "The server cannot listen on this address or port.",
    why: "Another program listens there, or the machine does not have the address.",
    todo: "Stop the other program, or choose another address with `--port` and `--host`.",
  },
  edited_in_dashboard: {
    status: 409,
    what: "The sync would replace edits that were made in the dashboard since the last sync.",
    why: "The command cannot ask you, because it does not run in a terminal.",
    todo: "Run `relay pull`, which writes the edits to the files. Or run `relay sync` with `--yes`, which replaces the edits and deletes nothing.",
  },
  newer_on_server: {
    status: 409,
    what: "The sync would replace a newer version on the server that the folder has not seen.",
    why: "A teammate or CI synced the item or deleted it after this folder last synced or pulled.",
    todo: "Run `relay pull`, which writes the newer version to the files. With `--yes`, `relay sync` replaces the newer version with the file.",
  },
  not_confirmed: {
    status: 409,
    what: "The command needs your confirmation, and changed nothing.",
    why: "You answered no, or the command cannot ask because it does not run in a terminal.",
    todo: "Read the plan with `--dry-run`, then run the command with `--yes`.",
  },
  feed_unusable: {
    status: 503,
    what: "The release feed could not be read.",
    why: "The host of the releases does not answer, or the address has no `latest.json` of a release.",
    todo: "Check the network and the address that `--from` or `RELAY_DOWNLOAD_URL` names, then repeat the command.",
  },
  service_not_running: {
    status: 503,
    what: "No running service answered the command.",
    todo: "Start one with `relay dev` or `relay serve`, or name its address with `--url`.",
  },
} as const satisfies Record<string, RefusalEntry>;
