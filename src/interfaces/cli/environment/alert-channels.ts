/**
 * Lists, adds, changes, tests and removes the alert channels of an environment (`relay alerts channels`). Secret fields come only from the terminal or
 * standard input, so neither the process list nor the shell history contains them.
 */
import { writeJson } from "../../../base/json.ts";
import type { ChannelKindView, ChannelView } from "../../../platform/channel/channel.ts";
import type { Api } from "../api/api.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import { type Command, type Input, type Option, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { ALLOW_PRIVATE } from "../service-option.ts";
import { requireSame, requireYes } from "../terminal/confirm.ts";
import { printList } from "../terminal/terminal.ts";

const PATH = "/alert-channels";
const CHANNEL = { name: "channel", help: "its name or id, as relay alerts channels shows them" } as const;
const SECRETS =
  "The command asks for the secret fields in a terminal. Elsewhere it reads them from standard input, one a line, in the order of relay alerts channels --kinds.";
const GIVEN: readonly Option[] = [
  { name: "name", value: "<text>", help: "the name of the channel" },
  {
    name: "alert",
    value: "<code>",
    list: true,
    help: "the alerts that go to it; all sends every alert",
  },
  {
    name: "field",
    value: "<name=value>",
    list: true,
    help: "a field that is no secret, such as chatId=-1001",
  },
];

interface Listed {
  channels: ChannelView[];
  kinds: ChannelKindView[];
}

export const alertsChannels: Command = {
  words: ["alerts", "channels"],
  summary: "list the alert channels, or their kinds",
  details: "A channel gets the alerts of its environment in addition to mail. Secret fields are never shown.",
  options: [
    { name: "kinds", help: "list the kinds with the fields that each needs" },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay alerts channels", "relay alerts channels --kinds"],
  async run(input, io) {
    const { channels, kinds } = await withApi("read", input, io, list);
    if (input.on("kinds")) return await printKinds(input, io, kinds);
    await printList(input, io, channels, {
      columns: [
        { heading: "NAME", value: ({ name }) => name },
        { heading: "KIND", value: ({ kind }) => kind },
        { heading: "ALERTS", value: ({ codes }) => codes?.join(", ") ?? "all", wrap: true },
        {
          heading: "FAILS SINCE",
          value: ({ failingAt }) => failingAt ?? "",
          tone: ({ failingAt }) => (failingAt === null ? "quiet" : "bad"),
        },
        { heading: "LAST", value: ({ triedAt }) => triedAt ?? "" },
        { heading: "RESULT", value: ({ result }) => result ?? "", wrap: true },
        { heading: "ID", value: ({ id }) => id },
      ],
      none: "There is no alert channel: add one with relay alerts add-channel <kind>.",
    });
  },
};

async function printKinds(input: Input, io: Io, kinds: readonly ChannelKindView[]): Promise<void> {
  const items = kinds.flatMap(({ kind, fields }) => fields.map((field) => ({ kind, ...field })));
  await printList(input, io, items, {
    columns: [
      { heading: "KIND", value: ({ kind }) => kind },
      { heading: "FIELD", value: ({ name }) => name },
      {
        heading: "GIVE IT",
        value: ({ isSecret, isRequired }) =>
          `${isSecret ? "secret" : "with --field"}${isRequired ? "" : ", optional"}`,
      },
      { heading: "WHERE TO FIND IT", value: ({ help }) => help, wrap: true },
    ],
    none: "There is no kind of alert channel.",
  });
}

export const alertsAddChannel: Command = {
  words: ["alerts", "add-channel"],
  summary: "send alerts to Slack, Discord and others",
  details: SECRETS,
  arguments: [{ name: "kind", help: "slack, discord, telegram, ntfy, pagerduty or webhook" }],
  options: [...GIVEN, ALLOW_PRIVATE, JSON_OUTPUT, ...ANYWHERE],
  examples: [
    "relay alerts add-channel slack --name Ops < webhook-url.txt",
    "relay alerts add-channel telegram --field chatId=-1001234567890 --alert relay_failed < token.txt",
  ],
  async run(input, io) {
    const made = await withApi("write", input, io, async (api) => {
      const { kinds } = await list(api);
      const kind = kinds.find((one) => one.kind === input.first());
      if (kind === undefined)
        throw new UsageError(
          `There is no kind ${input.first()}: write one of ${kinds.map((one) => one.kind).join(", ")}.`,
        );
      const fields = { ...readFields(input), ...(await readSecrets(io, kind)) };
      const body = { kind: kind.kind, ...readGiven(input), fields };
      return await api.request<{ channel: ChannelView; signingSecret: string | null }>("POST", PATH, body);
    });
    const { channel, signingSecret } = made;
    if (input.on("json")) io.print(writeJson({ ...made }, 2));
    else if (signingSecret !== null) io.print(signingSecret);
    if (signingSecret !== null)
      io.inform("This secret signs the requests of the channel. Copy it now: it is shown once.");
    io.inform(`${channel.name} is added. Send a test: relay alerts test-channel ${channel.id}`);
  },
};

export const alertsSetChannel: Command = {
  words: ["alerts", "set-channel"],
  summary: "change an alert channel",
  details: `What you leave out stays. With --secrets the command reads the secret fields again. ${SECRETS}`,
  arguments: [CHANNEL],
  options: [
    ...GIVEN,
    { name: "secrets", help: "also replace the secret fields" },
    ALLOW_PRIVATE,
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: [
    "relay alerts set-channel Ops --alert relay_failed --alert relay_silent",
    "relay alerts set-channel Ops --secrets < webhook-url.txt",
  ],
  async run(input, io) {
    const changed = await withApi("write", input, io, async (api) => {
      const { channels, kinds } = await list(api);
      const { id, kind } = requireNamed(input, channels);
      const found = kinds.find((one) => one.kind === kind);
      const secrets = input.on("secrets") && found !== undefined ? await readSecrets(io, found) : {};
      const fields = { ...readFields(input), ...secrets };
      const body = { ...readGiven(input), ...(Object.keys(fields).length === 0 ? {} : { fields }) };
      if (Object.keys(body).length === 0)
        throw new UsageError("Nothing is to change: give --name, --alert, --field or --secrets.");
      return await api.request<{ channel: ChannelView }>("PUT", `${PATH}/${encodeURIComponent(id)}`, body);
    });
    if (input.on("json")) io.print(writeJson({ ...changed }, 2));
    io.inform(`${changed.channel.name} is changed.`);
  },
};

export const alertsTestChannel: Command = {
  words: ["alerts", "test-channel"],
  summary: "send a test message to an alert channel",
  details:
    "The command prints what the service answered. It exits with 1 if the service did not take the message.",
  arguments: [CHANNEL],
  options: [ALLOW_PRIVATE, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay alerts test-channel Ops"],
  async run(input, io) {
    const tested = await withApi("write", input, io, async (api) => {
      const { id } = requireNamed(input, (await list(api)).channels);
      const path = `${PATH}/${encodeURIComponent(id)}/test`;
      return await api.request<{ ok: boolean; message: string }>("POST", path);
    });
    io.print(input.on("json") ? writeJson(tested, 2) : tested.message);
    return tested.ok ? 0 : 1;
  },
};

export const alertsRemoveChannel: Command = {
  words: ["alerts", "remove-channel"],
  summary: "remove an alert channel and its secrets",
  arguments: [CHANNEL],
  options: [
    {
      name: "confirm",
      value: "<channel>",
      help: "the channel again; confirms the removal without a question",
    },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay alerts remove-channel Ops --confirm Ops"],
  async run(input, io) {
    requireSame(input, "alert channel", input.first());
    const removed = await withApi("write", input, io, async (api) => {
      const { id, name } = requireNamed(input, (await list(api)).channels);
      if (!input.given("confirm"))
        await requireYes(io, {
          question: `Remove the alert channel ${name}?`,
          undone: "Nothing was removed",
          line: `relay alerts remove-channel ${id} --confirm ${id}`,
        });
      await api.command("DELETE", `${PATH}/${encodeURIComponent(id)}`);
      return { id, name };
    });
    if (input.on("json")) io.print(writeJson({ removed: removed.id }, 2));
    io.inform(`${removed.name} is removed. It gets no more alerts.`);
  },
};

function list(api: Api): Promise<Listed> {
  return api.request<Listed>("GET", PATH);
}

function requireNamed(input: Input, channels: readonly ChannelView[]): ChannelView {
  const text = input.first();
  const found = channels.filter(({ id, name }) => id === text || name === text);
  const [one, other] = found;
  if (one !== undefined && other === undefined) return one;
  throw new UsageError(
    other === undefined
      ? `There is no alert channel ${text}: relay alerts channels lists them.`
      : `Several alert channels are called ${text}: name one by its id, as relay alerts channels shows it.`,
  );
}

function readGiven(input: Input): { name?: string; codes?: string[] | null } {
  const name = input.text("name");
  const codes = input.list("alert");
  return {
    ...(name === null ? {} : { name }),
    ...(codes.length === 0 ? {} : { codes: codes.includes("all") ? null : codes }),
  };
}

function readFields(input: Input): Record<string, string> {
  return Object.fromEntries(
    input.list("field").map((text) => {
      const at = text.indexOf("=");
      if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
      throw new UsageError(`--field ${text} has no value: write it as name=value.`);
    }),
  );
}

/** Reads the secret fields. An empty line leaves an optional one out. */
async function readSecrets(io: Io, { fields }: ChannelKindView): Promise<Record<string, string>> {
  const secrets = fields.filter(({ isSecret }) => isSecret);
  const lines = io.interactive ? [] : (await io.readInput()).split(/\r?\n/);
  const found: Record<string, string> = {};
  for (const [index, { name, title, isRequired }] of secrets.entries()) {
    const value = io.interactive ? await io.askSecret(title) : (lines[index] ?? "");
    if (value !== null && value.trim() !== "") found[name] = value.trim();
    else if (isRequired)
      throw new UsageError(
        `${title} is missing: give it on standard input, or run the command in a terminal, which asks.`,
      );
  }
  return found;
}
