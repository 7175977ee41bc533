/**
 * Signs this user in to a server through its dashboard (`relay login`), as RFC 8628 describes, and out again (`relay logout`). The command
 * shows an address and a code. An owner types the code there and chooses the environment. A profile stores the resulting key.
 */
import { sleep } from "../../../base/clock.ts";
import { writeJson } from "../../../base/json.ts";
import { MAX_LOGIN_KEY_DAYS } from "../../../base/limit.ts";
import { Refusal } from "../../../base/refusal.ts";
import { plain } from "../../../base/text.ts";
import {
  checkProfileName,
  hintOf,
  PROFILE,
  type Profile,
  readProfiles,
  removeProfile,
  requireProfile,
  requireProfileFile,
  saveProfile,
} from "../api/profile.ts";
import { rejectMisread } from "../api/read-answer.ts";
import { askServer, readServerUrl } from "../api/remote.ts";
import { formatRemote, remoteOfProfile, SERVER_URL } from "../api/target.ts";
import { type Command, CommandFailure, type Input, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { describeError } from "../refusal-text.ts";

const SLOWER_SECONDS = 5;

interface Begun {
  deviceCode: string;
  userCode: string;
  verificationUri: string;
  expiresAt: string;
  interval: number;
}

interface Fetched {
  token: string;
  app: string;
  environment: string;
  owner: string;
  expiresAt: string;
}

export const login: Command = {
  words: ["login"],
  summary: "sign in to a server",
  details:
    "The command shows an address and a code. Open the address, type the code, and choose the app and environment. The command stores the key in a profile. The key is yours, and it expires. The dashboard's Settings list it under Keys, where you can revoke it.\nA command chooses its target in this order: flags, RELAY_URL with RELAY_KEY, RELAY_PROFILE, the data directory here, the default profile. To change production, you must name the target.",
  options: [
    { ...SERVER_URL, otherwise: "the address of the profile", help: "the server's address" },
    {
      name: "profile",
      value: "<name>",
      env: "RELAY_PROFILE",
      otherwise: "<app>-<environment>",
      help: "the name of the profile; an existing one gets a new key",
    },
    { name: "days", value: "<number>", otherwise: "90", help: "the days until the key expires" },
    { name: "default", help: "make it the default profile" },
    JSON_OUTPUT,
  ],
  examples: [
    "relay login --url https://relay.example.com",
    "relay login --url https://relay.example.com --profile shop-production --days 7",
    "relay login --profile shop-production",
  ],
  async run(input, io) {
    const wanted = input.text("profile");
    if (wanted !== null) checkProfileName(wanted);
    const url = readServerUrl(findUrl(wanted, input, io));
    const days = input.number("days", { from: 1, to: MAX_LOGIN_KEY_DAYS }) ?? undefined;
    const path = requireProfileFile(io);
    const { name: machine, account } = io.machine;
    const bare = { url, key: null, profile: null };
    const asked = { machine: machine.slice(0, 200), account: account.slice(0, 200), days };
    const begun = requireTexts(
      await askServer<Begun>(bare, "POST", "/api/login", asked),
      ["deviceCode", "userCode", "verificationUri", "expiresAt"],
      url,
    );
    if (!URL.canParse(begun.verificationUri) || Number.isNaN(Date.parse(begun.expiresAt)))
      throw rejectMisread(url, "begins no login");
    io.inform(
      [
        `Open ${plain(begun.verificationUri)} in a browser, sign in, and type this code:`,
        "",
        `    ${plain(begun.userCode)}`,
        "",
        `The page must show the machine ${plain(machine)}${account === "" ? "" : ` and the user ${plain(account)}`}. If it shows another one, deny the sign-in. The code works for ten minutes.`,
      ].join("\n"),
    );
    const fetched = await fetchKey(bare, begun, io);
    const profile: Profile = {
      name: wanted ?? chooseName(url, fetched, io),
      url,
      app: fetched.app,
      environment: fetched.environment,
      key: fetched.token,
      owner: fetched.owner,
      endsAt: fetched.expiresAt,
    };
    const before = readProfiles(io).profiles.find(({ name }) => name === profile.name);
    try {
      saveProfile(io, profile, input.on("default"));
    } catch (error) {
      await revoke(profile).catch(() => undefined);
      throw error;
    }
    // Revokes the replaced key, because it would stay valid although no profile has it.
    if (before !== undefined) await revoke(before).catch(() => undefined);
    const isDefault = readProfiles(io).default === profile.name;
    const { key: _, ...shown } = profile;
    if (input.on("json")) io.print(writeJson({ ...shown, default: isDefault }, 2));
    io.inform(
      `${plain(profile.owner)} is signed in to ${formatRemote(remoteOfProfile(profile))} until ${plain(profile.endsAt)}; the key is in ${path}.`,
    );
    io.inform(
      profile.environment === "production"
        ? `This is PRODUCTION: commands that change something need --profile ${profile.name}. relay whoami shows your profiles.`
        : `Use it with --profile ${profile.name}${isDefault ? ". It is the default profile, so commands use it if there is no data directory" : ""}. relay whoami shows your profiles.`,
    );
  },
};

/** Checks that these fields of an answer are texts, because a profile consists of them. */
function requireTexts<Answer extends object>(
  answer: Answer,
  names: readonly (keyof Answer & string)[],
  url: string,
): Answer {
  for (const name of names)
    if (typeof answer[name] !== "string") throw rejectMisread(url, `has no text in ${name}`);
  return answer;
}

function findUrl(wanted: string | null, input: Input, io: Io): string {
  const known = wanted === null ? undefined : readProfiles(io).profiles.find(({ name }) => name === wanted);
  const url = input.given("url") ? input.text("url") : (known?.url ?? input.text("url"));
  if (url !== null) return url;
  throw new UsageError(
    wanted === null
      ? "The command names no server: write relay login --url https://relay.example.com."
      : `There is no profile ${wanted} yet: write relay login --profile ${wanted} --url https://relay.example.com.`,
  );
}

/** Polls until an owner allows the sign-in, as RFC 8628 requires: at the interval, and five seconds slower after each `slow_down`. */
async function fetchKey(
  bare: { url: string; key: null; profile: null },
  { deviceCode, expiresAt, interval }: Begun,
  io: Io,
): Promise<Fetched> {
  const endsMs = Date.parse(expiresAt);
  let seconds = Number.isFinite(interval) && interval >= 1 ? Math.min(interval, 60) : SLOWER_SECONDS;
  let isAway = false;
  for (;;) {
    await sleep(io.clock, seconds * 1000);
    try {
      const fetched = await askServer<Fetched>(bare, "POST", "/api/login/token", { deviceCode });
      return requireTexts(fetched, ["token", "app", "environment", "owner", "expiresAt"], bare.url);
    } catch (error) {
      const { code, message } = describeError(error);
      if (code === "slow_down") seconds += SLOWER_SECONDS;
      else if (code === "service_not_running" && io.clock.now() < endsMs) {
        if (!isAway) io.inform(`${message} The command asks again until the code expires.`);
        isAway = true;
      } else if (code !== "authorization_pending") throw error;
    }
  }
}

/** Chooses the profile's name. A profile of the same environment is replaced, and one of another server keeps its name. */
function chooseName(url: string, { app, environment }: Fetched, io: Io): string {
  const { profiles } = readProfiles(io);
  const same = (one: Profile) => one.url === url && one.app === app && one.environment === environment;
  const known = profiles.find(same);
  if (known !== undefined) return known.name;
  const name = `${app}-${environment}`.slice(0, 60);
  if (!profiles.some((one) => one.name === name)) return name;
  const host = `${name}-${new URL(url).host.replace(/[^A-Za-z0-9.-]/g, "-")}`.slice(0, 63);
  if (!profiles.some((one) => one.name === host)) return host;
  return `${host.slice(0, 55)}-${profiles.length}`;
}

async function revoke(profile: Profile): Promise<void> {
  await askServer({ ...remoteOfProfile(profile), profile: null }, "DELETE", "/api/key");
}

export const logout: Command = {
  words: ["logout"],
  summary: "sign out of a server",
  details:
    "The command revokes the profile's key and removes the profile. If the server does not answer, the command still removes the profile and ends with exit code 1. The key then works until it expires or you revoke it in the dashboard's Settings, under Keys.\nNo other profile becomes the default.",
  options: [
    { ...PROFILE, otherwise: "the default profile" },
    { name: "all", help: "sign out of every profile" },
  ],
  examples: ["relay logout", "relay logout --profile shop-production"],
  async run(input, io) {
    let code = 0;
    const hadDefault = readProfiles(io).default !== null;
    for (const profile of chooseProfiles(input, io)) {
      const where = formatRemote({ ...profile, profile: profile.name });
      try {
        await revoke(profile);
        io.inform(`Signed out of ${where}: its key is revoked.`);
      } catch (error) {
        const isGone = error instanceof Refusal && error.code === "unauthenticated";
        if (!isGone) code = 1;
        io.inform(
          isGone
            ? `Signed out of ${where}: its key was no longer valid.`
            : `The profile ${profile.name} is removed, but its key could not be revoked (${describeError(error).message}) Revoke ${hintOf(profile.key)} in Settings, under Keys, of ${profile.app}/${profile.environment}.`,
        );
      }
      removeProfile(io, profile.name);
    }
    const left = readProfiles(io);
    if (hadDefault && left.default === null && left.profiles.length > 0)
      io.inform(`There is no default profile now: name one with --profile (${formatNames(left.profiles)}).`);
    return code;
  },
};

function chooseProfiles(input: Input, io: Io): Profile[] {
  const { profiles, default: first } = readProfiles(io);
  if (input.on("all")) return profiles;
  const name = input.text("profile") ?? first;
  if (name !== null) return [requireProfile(io, name)];
  if (profiles.length === 0)
    throw new CommandFailure(
      "not_found",
      "There is no profile to sign out of: relay login signs in to a server.",
    );
  throw new UsageError(
    `There is no default profile: name one with --profile (${formatNames(profiles)}), or write --all.`,
  );
}

function formatNames(profiles: readonly Profile[]): string {
  return profiles.map(({ name }) => name).join(", ");
}
