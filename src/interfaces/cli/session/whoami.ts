/** Lists this user's profiles and asks each server whether its key works (`relay whoami`). It also shows the target of a command without flags. */

import { plain } from "../../../base/text.ts";
import { hintOf, type Profile, readProfiles, requireProfile } from "../api/profile.ts";
import { askKey, readServerUrl } from "../api/remote.ts";
import { ANYWHERE, formatTarget, remoteOfProfile } from "../api/target.ts";
import type { Command } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { describeError } from "../refusal-text.ts";
import { printList } from "../terminal/terminal.ts";

export const whoami: Command = {
  words: ["whoami"],
  summary: "list your profiles, and check each key",
  details:
    "The command asks each server. The exit code is 0 if every key works. It is 1 if a key expired or was revoked, or if a server does not answer.",
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay whoami"],
  async run(input, io) {
    const held = readProfiles(io);
    const named = input.given("profile") ? input.text("profile") : null;
    const profiles = named === null ? held.profiles : [requireProfile(io, named)];
    const items = await Promise.all(
      profiles.map(async (profile) => ({
        profile: profile.name,
        default: profile.name === held.default,
        server: profile.url,
        app: profile.app,
        environment: profile.environment,
        ...(await checkProfile(profile)),
      })),
    );
    const [url, key] = [io.env.RELAY_URL, io.env.RELAY_KEY];
    if (named === null && url && key) items.push({ ...(await checkVariables(url, key)) });
    await printList(input, io, items, {
      columns: [
        {
          heading: "PROFILE",
          value: (one) => `${one.profile}${one.default ? " (default)" : ""}`,
        },
        { heading: "SERVER", value: (one) => one.server },
        { heading: "APP", value: (one) => one.app },
        { heading: "ENVIRONMENT", value: (one) => one.environment },
        { heading: "KEY", value: (one) => one.key },
        { heading: "OWNER", value: (one) => one.owner ?? "", raw: true },
        { heading: "ENDS", value: (one) => one.endsAt ?? "" },
        {
          heading: "STATE",
          value: (one) => one.state,
          tone: (one) => (one.works ? "good" : "bad"),
          wrap: true,
        },
      ],
      none: "There is no profile yet: relay login --url https://relay.example.com creates one.",
    });
    if (named === null) io.inform(`In this folder, commands act on ${plain(formatTarget(input, io))}.`);
    return items.every(({ works }) => works) ? 0 : 1;
  },
};

interface Look {
  /** The hint of the key, as in the dashboard. */
  key: string;
  owner: string | null;
  endsAt: string | null;
  works: boolean;
  state: string;
}

async function checkProfile(profile: Profile): Promise<Look> {
  const { key, owner, endsAt, name } = profile;
  const shown = { key: hintOf(key), owner, endsAt };
  try {
    const { owner, expiresAt } = await askKey({ ...remoteOfProfile(profile), profile: null });
    return { ...shown, owner, endsAt: expiresAt, works: true, state: "works" };
  } catch (error) {
    return { ...shown, works: false, state: formatStale(error, `relay login --profile ${name}`) };
  }
}

async function checkVariables(url: string, key: string) {
  const place = { profile: "RELAY_URL, RELAY_KEY", default: false, server: url, key: hintOf(key) };
  try {
    const remote = { url: readServerUrl(url, "RELAY_URL"), key, profile: null };
    const { app, environment, owner, expiresAt } = await askKey(remote);
    return { ...place, app, environment, owner, endsAt: expiresAt, works: true, state: "works" };
  } catch (error) {
    const state = formatStale(error, "set RELAY_KEY to another key");
    return { ...place, app: "", environment: "", owner: null, endsAt: null, works: false, state };
  }
}

/** Formats the server's sentence about a rejected key, and adds what to do if the sentence does not say it. */
function formatStale(error: unknown, todo: string): string {
  const { code, message } = describeError(error);
  if (code !== "unauthenticated") return message;
  return message.includes("relay login") ? message : `${message.replace(/\.$/, "")}: ${todo}.`;
}
