/** Finds RELAY_… variables that nothing reads, such as a misspelled one. Their values may be secret, so nothing shows them. */
import { LIMIT_WORDS } from "../../../base/limit-text.ts";
import { findNearestName } from "../../../base/text.ts";
import type { Option } from "../command.ts";
import type { Io } from "../io.ts";
import { RUN_OPTIONS, SERVER_OPTIONS, SERVICE_DIR } from "../service-option.ts";

const PREFIX = "RELAY_";
/** The variables of other commands, which the server does not load, and those that no option has. `packaging/` uses the last three. */
const OTHERS = [
  "RELAY_ADMIN_EMAIL",
  "RELAY_APP",
  "RELAY_BACKUP_PASSPHRASE",
  "RELAY_DEBUG",
  "RELAY_DOWNLOAD_URL",
  "RELAY_ENVIRONMENT",
  "RELAY_KEY",
  "RELAY_MASTER_KEY",
  "RELAY_MCP_READ_ONLY",
  "RELAY_MOVE_TO",
  "RELAY_OIDC_CLIENT_SECRET",
  "RELAY_PARENT_PID",
  "RELAY_PROFILE",
  "RELAY_PROGRAM",
  "RELAY_SECRET",
  "RELAY_URL",
  "RELAY_DATABASE_PASSWORD",
  "RELAY_DOMAIN",
  "RELAY_UPSTREAM",
];
/** Kubernetes sets these for a service with the name `relay`. */
const OF_KUBERNETES = /^RELAY_(?:SERVICE_(?:HOST|PORT)|PORT_\d)/;

interface UnknownVariable {
  name: string;
  /** The known variable with the nearest name, or null. */
  nearest: string | null;
}

/** Lists the set RELAY_… variables that no command reads. */
export function listUnknownVariables(env: Io["env"]): UnknownVariable[] {
  const known = listKnown();
  const endings = known.map((name) => name.slice(PREFIX.length));
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !known.includes(name) && !OF_KUBERNETES.test(name))
    .map((name) => {
      const ending = findNearestName(name.slice(PREFIX.length), endings);
      return { name, nearest: ending === null ? null : `${PREFIX}${ending}` };
    });
}

/** Formats what is wrong with the variable, after its name. */
export function formatUnknown({ nearest }: UnknownVariable): string {
  return nearest === null ? "unknown, not used" : `unknown, not used: did you mean ${nearest}?`;
}

function listKnown(): string[] {
  const options: readonly Option[] = [...RUN_OPTIONS, ...SERVER_OPTIONS, SERVICE_DIR];
  const limits = Object.values(LIMIT_WORDS).map(({ variable }) => variable);
  return [...options.flatMap(({ env }) => env ?? []), ...limits, ...OTHERS];
}
