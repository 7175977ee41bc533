/** Shows every value that commands and the service use, and its source (`relay config`). It shows no secret. */
import { existsSync } from "node:fs";
import { DEFAULT_LIMITS, type RaisableLimits } from "../../../base/limit.ts";
import { LIMIT_WORDS } from "../../../base/limit-text.ts";
import { masterKeyFile } from "../../../platform/secret/master-key.ts";
import { hintOf, profilePath } from "../api/profile.ts";
import { ANYWHERE, findTargetProfile } from "../api/target.ts";
import type { Command, Input, Option } from "../command.ts";
import { JSON_OUTPUT, readAllowPrivate, readRunningLimits, readRunningUrl } from "../data-directory.ts";
import type { Io } from "../io.ts";
import {
  ALLOW_PRIVATE,
  DATABASE,
  MAIL_URL,
  RUN_OPTIONS,
  readDatabase,
  readDataDir,
  readServerMail,
  readServiceDir,
  SERVER_OPTIONS,
  SERVICE_DIR,
} from "../service-option.ts";
import { findPager } from "../terminal/pager.ts";
import { printList } from "../terminal/terminal.ts";
import { OTEL_VARIABLES } from "./otel-variable.ts";
import { formatUnknown, listUnknownVariables } from "./unknown-variable.ts";

/** The options that can have a variable, each once. */
const OPTIONS: readonly Option[] = [
  ...new Map(
    [...ANYWHERE, SERVICE_DIR, ...RUN_OPTIONS, ...SERVER_OPTIONS].map((option) => [option.name, option]),
  ).values(),
];
const MASK = "••••";

interface Value {
  name: string;
  value: string;
  /** The source: a flag, a variable, `profile <name>`, a file, or `default`. */
  from: string;
}

export const showConfig: Command = {
  words: ["config"],
  summary: "show every value in force and its source",
  details:
    "The order is: a flag, its RELAY_ variable, the profile, a file, the default. Add the flags of another command to see their effect. Secrets are masked. If a server runs here, its limits and allowed private addresses are shown.",
  options: [JSON_OUTPUT, ...OPTIONS],
  examples: ["relay config", "relay config --json", "relay config --data-dir /var/lib/relay"],
  async run(input, io) {
    const items = [
      ...readOptions(input, io),
      ...readSecrets(input, io),
      ...readCaps(input, io),
      ...readTerminal(io),
      ...readOtel(io),
      ...readUnknown(io),
    ];
    await printList(input, io, items, {
      columns: [
        { heading: "NAME", value: ({ name }) => name },
        { heading: "VALUE", value: ({ value }) => value, raw: true },
        {
          heading: "FROM",
          value: ({ from }) => from,
          tone: ({ from }) => (from === "default" ? "quiet" : null),
        },
      ],
      none: "",
    });
  },
};

function readOptions(input: Input, io: Io): Value[] {
  const meant = findTargetProfile(input, io);
  const dataDir = readDataDir(input, io);
  const running = readRunningUrl(dataDir);
  const allowed = readAllowPrivate(input, io).join(", ");
  const known: Readonly<Record<string, Omit<Value, "name"> | null>> = {
    url: meant && { value: meant.profile.url, from: meant.from },
    app: meant && { value: meant.profile.app, from: meant.from },
    environment: meant && { value: meant.profile.environment, from: meant.from },
    profile: meant && { value: meant.profile.name, from: meant.from },
    "base-url": running === null ? null : { value: running, from: `${dataDir}/running.json` },
    [ALLOW_PRIVATE.name]: allowed === "" ? null : { value: allowed, from: `${dataDir}/running.json` },
    "data-dir": { value: dataDir, from: "default" },
    "service-dir": { value: readServiceDir(input, io), from: "default" },
  };
  return OPTIONS.map((option) => {
    const { name, env, otherwise = "none" } = option;
    const text = input.text(name);
    const from = input.given(name) ? `--${name}` : (env ?? "");
    // The table shows the absolute path of a folder.
    const value = name.endsWith("-dir") ? (known[name]?.value ?? text) : text;
    if (name === DATABASE.name && text !== null) return { name, value: String(readDatabase(input)), from };
    if (name === MAIL_URL.name && text !== null) return { name, value: String(readServerMail(input)), from };
    if (text !== null) return { name, value: value ?? text, from };
    return { name, ...(known[name] ?? { value: otherwise, from: "default" }) };
  });
}

function readSecrets(input: Input, io: Io): Value[] {
  const meant = findTargetProfile(input, io);
  const file = masterKeyFile(readDataDir(input, io));
  const { RELAY_KEY: key, RELAY_SECRET: secret, RELAY_MASTER_KEY: masterKey } = io.env;
  return [
    key
      ? { name: "key", value: hintOf(key), from: "RELAY_KEY" }
      : meant === null
        ? { name: "key", value: "none", from: "default" }
        : { name: "key", value: hintOf(meant.profile.key), from: meant.from },
    { name: "secret", value: secret ? MASK : "none", from: secret ? "RELAY_SECRET" : "default" },
    masterKey
      ? { name: "master-key", value: MASK, from: "RELAY_MASTER_KEY" }
      : existsSync(file)
        ? { name: "master-key", value: MASK, from: file }
        : { name: "master-key", value: "none yet", from: "default" },
    {
      name: "profiles",
      value: profilePath(io) ?? "none",
      from: io.env.XDG_CONFIG_HOME ? "XDG_CONFIG_HOME" : "default",
    },
  ];
}

/** Reads the limits of the server that runs here, otherwise the limits with this command's variables. */
function readCaps(input: Input, io: Io): Value[] {
  const dataDir = readDataDir(input, io);
  const running = readRunningLimits(dataDir);
  return (Object.keys(DEFAULT_LIMITS) as (keyof RaisableLimits)[]).map((name) => {
    const { variable } = LIMIT_WORDS[name];
    const [usual, given] = [String(DEFAULT_LIMITS[name]), io.env[variable]];
    const shown = `limits.${name}`;
    if (running?.[name] !== undefined)
      return { name: shown, value: String(running[name]), from: `${dataDir}/running.json` };
    return given
      ? { name: shown, value: given, from: variable }
      : { name: shown, value: usual, from: "default" };
  });
}

/** Lists the RELAY_… variables that nothing reads, without their values, which may be secret. */
function readUnknown({ env }: Io): Value[] {
  return listUnknownVariables(env).map((variable) => ({
    name: variable.name,
    value: formatUnknown(variable),
    from: variable.name,
  }));
}

/** Lists the variables of OpenTelemetry. They have no flags. */
function readOtel({ env }: Io): Value[] {
  return OTEL_VARIABLES.map((variable) => {
    const { name, otherwise } = variable;
    const given = env[name];
    if (!given) return { name, value: otherwise, from: "default" };
    return { name, value: "secret" in variable ? MASK : given, from: name };
  });
}

function readTerminal({ env, screen }: Io): Value[] {
  const by = ["NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TERM"].find((name) =>
    name === "TERM" ? env.TERM === "dumb" : Boolean(env[name]),
  );
  return [
    { name: "colour", value: screen.colour ? "on" : "off", from: by ?? "default" },
    {
      name: "pager",
      value: findPager(env)?.join(" ") ?? "none",
      from: env.PAGER === undefined ? "default" : "PAGER",
    },
  ];
}
