/** Lists the refusal codes that only the command line uses. They are part of the registry in refusal-code.ts, but no HTTP response carries them. */

export interface RefusalEntry {
  status: number;
  /** One sentence that says when the refusal happens. */
  when: string;
  /** One sentence that says what to do about it. */
  todo: string;
}

export const COMMAND_REFUSALS = {
  usage: {
    status: 400,
    when: "The command line itself is wrongly written.",
    todo: "Write it as the message says; relay <command> --help shows what a command takes.",
  },
  directory_taken: {
    status: 409,
    when: "Another server uses the data directory.",
    todo: "Stop that one first, or name another directory with --data-dir.",
  },
  database_refused: {
    status: 409,
    when: "The database of the data directory is not one that may be used.",
    todo: "The message says what is wrong with it; relay doctor looks the directory over, relay restore puts a backup in its place.",
  },
  newer_schema: {
    status: 409,
    when: "The database was written by a newer version of this program.",
    todo: "Use that version, or restore a backup that this one made.",
  },
  backup_refused: {
    status: 409,
    when: "The backup cannot be made or put back as asked; nothing was changed.",
    todo: "The message names what stands against it.",
  },
  store_unavailable: {
    status: 503,
    when: "The database cannot be used now.",
    todo: "Check the disk and the data directory's rights, then try again; relay doctor looks it over.",
  },
  file_unusable: {
    status: 400,
    when: "A file or folder cannot be read or written.",
    todo: "Check that the path is right, and that this user may use it.",
  },
  address_taken: {
    status: 409,
    when: "The address or port cannot be listened on.",
    todo: "Stop what listens there, or choose another with --port and --host.",
  },
  edited_in_dashboard: {
    status: 409,
    when: "A sync would replace what somebody made or edited in the dashboard since the last one, and nobody is there to be asked.",
    todo: "Bring the edits into the files, or run relay sync with --yes, which replaces them and deletes nothing.",
  },
  not_confirmed: {
    status: 409,
    when: "The command shows a plan and asks before it carries that out, and nobody is there to be asked.",
    todo: "Read the plan with --dry-run, then run the command with --yes.",
  },
  service_not_running: {
    status: 503,
    when: "No running service answered the command.",
    todo: "Start one with relay dev or relay serve, or name its address with --url.",
  },
} as const satisfies Record<string, RefusalEntry>;
