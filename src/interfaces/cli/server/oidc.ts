/** Shows, sets, tests and removes the OpenID provider that Settings › Members also shows, and switches passwords on or off (`relay oidc …`). */
import { writeJson } from "../../../base/json.ts";
import { COMMAND_LINE, formatActor } from "../../../platform/account/api-key.ts";
import { OidcClient } from "../../../platform/oidc/oidc-client.ts";
import {
  changeProvider,
  findProvider,
  findSigninWays,
  type ProviderInput,
  type ProviderView,
  removeProvider,
  setPasswordSignin,
  viewProvider,
} from "../../../platform/oidc/provider.ts";
import type { Store } from "../../../store/port.ts";
import { type Command, CommandFailure, type Input, type Option, UsageError } from "../command.ts";
import {
  JSON_OUTPUT,
  openSealerHere,
  readAllowPrivate,
  readRunningUrl,
  withStore,
} from "../data-directory.ts";
import type { Io } from "../io.ts";
import { ALLOW_PRIVATE, BASE_URL, DATA, DEFAULT_PORT, readBaseUrl, readDataDir } from "../service-option.ts";
import { count } from "../sync/plan-lines.ts";
import { printSheet } from "../terminal/terminal.ts";
import { formatRole, readRole } from "./members.ts";

const SECRET = "RELAY_OIDC_CLIENT_SECRET";
const ALLOWED_HOSTS: Option = {
  name: ALLOW_PRIVATE.name,
  value: "<hosts>",
  env: "RELAY_ALLOW_PRIVATE",
  help: "private hosts to allow",
};
const SETTINGS = ["client-id", "name", "domain", "role", "groups-claim", "trust-email"] as const;

export const oidcProvider: Command = {
  words: ["oidc", "provider"],
  summary: "show, set, test or remove the OpenID provider of members",
  details: `The client secret comes from ${SECRET}. In a terminal, Relay asks for it. An option that you leave out keeps its value. A role is written as group=role, group=role:app or group=role:app/environment. The group * is everyone of an allowed domain.`,
  arguments: [{ name: "issuer", help: "the issuer URL, such as https://id.example.com", optional: true }],
  options: [
    { name: "client-id", value: "<id>", help: "the client ID that the provider shows" },
    { name: "name", value: "<text>", help: "the name on the button of the sign-in page" },
    { name: "role", value: "<group=role>", list: true, help: "a role of a group; give it again for more" },
    { name: "domain", value: "<domain>", list: true, help: "a domain of allowed addresses" },
    { name: "groups-claim", value: "<claim>", help: "the claim with the groups, at first groups" },
    { name: "trust-email", value: "<on|off>", help: "count every address of the provider as verified" },
    { name: "test", help: "ask the provider for its addresses" },
    { name: "remove", help: "remove the provider; members stay" },
    ALLOWED_HOSTS,
    BASE_URL,
    JSON_OUTPUT,
    ...DATA,
  ],
  examples: [
    "relay oidc provider https://id.example.com --client-id relay-dashboard --role admins=owner --role support=support:shop/production",
    "relay oidc provider --test",
  ],
  async run(input, io) {
    const sets = input.positionals.length > 0 || SETTINGS.some((name) => input.given(name));
    if (input.on("remove") && (sets || input.on("test")))
      throw new UsageError(
        "--remove changes nothing else: run another command for the test or the settings.",
      );
    await withStore(input, io, async (store) => {
      if (input.on("remove")) return await remove(store, input, io);
      if (sets) await set(store, input, io);
      if (input.on("test")) await test(store, input, io);
      await show(store, input, io);
    });
  },
};

export const oidcPasswords: Command = {
  words: ["oidc", "passwords"],
  summary: "switch sign-in with passwords on or off",
  details:
    "Off needs an owner who signed in at the provider before. It also ends every session that did not begin there. Use on if the provider is not available.",
  arguments: [{ name: "state", help: "on or off", of: ["on", "off"] }],
  options: DATA,
  examples: ["relay oidc passwords on"],
  async run(input, io) {
    const state = input.first();
    if (state !== "on" && state !== "off")
      throw new UsageError(`${state} is no state: write relay oidc passwords on, or off.`);
    const { passwords, ended } = await withStore(input, io, (store) =>
      store.write("dashboard", async (tx) => {
        const before = await findSigninWays(tx);
        // Without a provider, passwords always sign in.
        if (before.provider === null && state === "on") return { ...before, ended: 0 };
        const ended = await setPasswordSignin(tx, change(io), state === "on");
        return { ...(await findSigninWays(tx)), ended };
      }),
    );
    io.inform(
      passwords
        ? "Members can sign in with their passwords."
        : `Members sign in only at the OpenID provider. ${count(ended, "other session")} ended. To allow passwords again, run relay oidc passwords on.`,
    );
  },
};

function change(io: Io) {
  return { nowMs: io.clock.now(), by: formatActor(COMMAND_LINE) };
}

async function show(store: Store, input: Input, io: Io): Promise<void> {
  const provider = await store.read(viewProvider);
  const redirectUrl = `${findOrigin(input, io)}/signin/oidc`;
  if (input.on("json")) return io.print(writeJson({ provider, redirectUrl }, 2));
  if (provider === null)
    return io.inform("No OpenID provider is set: relay oidc provider <issuer> --client-id <id> sets one.");
  const { name, issuer, clientId, hasSecret, domains, groupsClaim, trustsEmail, passwords } = provider;
  await printSheet(input, io, [
    `${name}  at ${issuer}`,
    `  client ID ${clientId}, ${hasSecret ? "with a client secret" : "without a client secret"}`,
    `  redirect address ${redirectUrl}`,
    `  allowed domains: ${domains.join(", ") || "all"}${trustsEmail ? ", every address counts as verified" : ""}`,
    `  groups from the claim ${groupsClaim}: ${provider.roles.map(formatGroupRole).join(", ") || "none"}`,
    `  passwords: ${passwords ? "on" : "off"}`,
  ]);
}

function formatGroupRole({ group, ...role }: ProviderView["roles"][number]): string {
  return `${group}=${formatRole(role)}`;
}

function findOrigin(input: Input, io: Io): string {
  return readBaseUrl(input) ?? readRunningUrl(readDataDir(input, io)) ?? `http://127.0.0.1:${DEFAULT_PORT}`;
}

async function set(store: Store, input: Input, io: Io): Promise<void> {
  const before = await store.read(viewProvider);
  const given = await readProvider(input, io, before);
  const sealer = await openSealerHere(store, input, io);
  await store.write("dashboard", (tx) => changeProvider(tx, { ...change(io), sealer }, given));
}

/** Returns the provider to store. It asks for the secret only if the client is new. */
async function readProvider(input: Input, io: Io, before: ProviderView | null): Promise<ProviderInput> {
  const issuer = input.positionals[0] ?? before?.issuer;
  const clientId = input.text("client-id") ?? before?.clientId;
  if (issuer === undefined)
    throw new UsageError("No provider is set: name its issuer URL, such as https://id.example.com.");
  if (clientId === undefined)
    throw new UsageError("--client-id is missing: the provider shows the client ID.");
  const isKnown = before?.issuer === issuer && before.clientId === clientId;
  const clientSecret =
    io.env[SECRET] || (isKnown ? null : await io.askSecret("Client secret, empty for a client without one"));
  const roles = input.list("role");
  return {
    name: input.text("name") ?? before?.name ?? "",
    issuer,
    clientId,
    ...(clientSecret === null ? {} : { clientSecret }),
    groupsClaim: input.text("groups-claim") ?? before?.groupsClaim ?? "",
    domains: input.given("domain") ? [...input.list("domain")] : (before?.domains ?? []),
    trustsEmail: readTrust(input) ?? before?.trustsEmail ?? false,
    roles: roles.length > 0 ? roles.map(readGroupRole) : keepRoles(before),
  };
}

function readTrust(input: Input): boolean | null {
  const text = input.text("trust-email");
  if (text === null || text === "on" || text === "off") return text === null ? null : text === "on";
  throw new UsageError(`--trust-email ${text} is no state: write on or off.`);
}

/** Reads `admins=support:shop/production`. A group can contain `=`. */
function readGroupRole(text: string): ProviderInput["roles"][number] {
  const at = text.lastIndexOf("=");
  if (at < 1)
    throw new UsageError(
      `--role ${text} names no group: write group=role, group=role:app or group=role:app/environment.`,
    );
  return {
    group: text.slice(0, at),
    ...(readRole(text.slice(at + 1), false) as Omit<ProviderInput["roles"][number], "group">),
  };
}

function keepRoles(before: ProviderView | null): ProviderInput["roles"] {
  return (before?.roles ?? []).map(({ app, environment, ...rest }) => ({
    ...rest,
    ...(app === "*" ? {} : { app }),
    ...(environment === "*" ? {} : { environment }),
  }));
}

async function test(store: Store, input: Input, io: Io): Promise<void> {
  const provider = await store.read(findProvider);
  if (provider === null)
    throw new CommandFailure(
      "oidc_not_set",
      "No OpenID provider is set: relay oidc provider <issuer> sets one.",
    );
  const { clock } = io;
  const allowPrivate = readAllowPrivate(input, io);
  const client = new OidcClient({ clock, allowPrivate, baseUrl: () => findOrigin(input, io) });
  const { hasSignOut } = await client.discover(provider);
  io.inform(
    `The provider answers.${hasSignOut ? " A sign-out of Relay also ends the session there." : " It has no address for a sign-out."}`,
  );
}

async function remove(store: Store, input: Input, io: Io): Promise<void> {
  const provider = await store.read(viewProvider);
  await store.write("dashboard", (tx) => removeProvider(tx, change(io)));
  if (input.on("json")) io.print(writeJson({ removed: provider?.issuer ?? null }, 2));
  io.inform(
    provider === null
      ? "No OpenID provider is set: nothing changed."
      : `${provider.name} is removed. Members stay, and sign in with their passwords.`,
  );
}
