/** Shows, sets and verifies the domain that sends an environment's mail, with its DNS record (`relay domain …`). */

import { type Json, writeJson } from "../../../base/json.ts";
import { plain } from "../../../base/text.ts";
import type { viewSenderDomain } from "../../../platform/mail/sender-domain.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import type { Command, Input } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { requireSame, requireYes } from "../terminal/confirm.ts";
import { printSheet } from "../terminal/terminal.ts";

const OPTIONS = [JSON_OUTPUT, ...ANYWHERE];
const PATH = "/sender-domain";
type DomainView = ReturnType<typeof viewSenderDomain>;

export const domainShow: Command = {
  words: ["domain", "show"],
  summary: "show the sender domain and its DNS record",
  details: "Mail leaves only from a verified domain.",
  options: OPTIONS,
  examples: ["relay domain show"],
  async run(input, io) {
    const domain = await withApi(
      "read",
      input,
      io,
      async (api) => (await api.request<{ senderDomain: DomainView | null }>("GET", PATH)).senderDomain,
    );
    if (domain !== null) return await say(input, io, domain);
    if (input.on("json")) io.print(writeJson({ senderDomain: null }, 2));
    io.inform("There is no sender domain: relay domain set <domain> sets one.");
  },
};

export const domainSet: Command = {
  words: ["domain", "set"],
  summary: "set the sender domain of mail",
  details:
    "A new domain must be verified before mail leaves. The words before the @ stay unless you give others.",
  arguments: [{ name: "domain", help: "such as example.com" }],
  options: [
    { name: "event-word", value: "<word>", help: "the word before the @ of event mail" },
    { name: "account-word", value: "<word>", help: "the word before the @ of account mail" },
    ...OPTIONS,
  ],
  examples: ["relay domain set example.com", "relay domain set example.com --event-word hello"],
  async run(input, io) {
    const [eventWord, accountWord] = [input.text("event-word"), input.text("account-word")];
    const sent = {
      domain: input.first(),
      ...(eventWord === null ? {} : { eventWord }),
      ...(accountWord === null ? {} : { accountWord }),
    };
    const domain = await withApi(
      "write",
      input,
      io,
      async (api) => (await api.request<{ senderDomain: DomainView }>("PUT", PATH, sent)).senderDomain,
    );
    await say(input, io, domain);
    if (!domain.verified) io.inform("Create this DNS record, then run relay domain verify.");
  },
};

export const domainVerify: Command = {
  words: ["domain", "verify"],
  summary: "check the DNS record of the sender domain now",
  options: OPTIONS,
  examples: ["relay domain verify"],
  async run(input, io) {
    const { senderDomain, message } = await withApi("write", input, io, (api) =>
      api.request<{ senderDomain: DomainView; message: string }>("POST", `${PATH}/verify`),
    );
    await say(input, io, senderDomain);
    io.inform(plain(message));
    return senderDomain.verified ? 0 : 1;
  },
};

export const domainRemove: Command = {
  words: ["domain", "remove"],
  summary: "remove the sender domain, and stop all mail",
  details:
    "Mail of relays then fails, and alerts appear only in the dashboard, until a domain is set and verified again. A domain that is set again needs a new DNS record. To stop mail for a while, run relay settings set mail.sends off instead.",
  options: [
    {
      name: "confirm",
      value: "<domain>",
      help: "the domain again; confirms the removal without a question",
    },
    ...OPTIONS,
  ],
  examples: ["relay domain remove --confirm example.com"],
  async run(input, io) {
    const removed = await withApi<string | null>("write", input, io, async (api) => {
      const { senderDomain } = await api.request<{ senderDomain: DomainView | null }>("GET", PATH);
      if (senderDomain === null) return null;
      await requireMeant(input, io, senderDomain.domain);
      await api.command("DELETE", PATH);
      return senderDomain.domain;
    });
    if (input.on("json")) io.print(writeJson({ removed }, 2));
    io.inform(
      removed === null
        ? "There is no sender domain: nothing changed."
        : `${removed} is removed. No mail leaves until relay domain set names a domain and it is verified.`,
    );
  },
};

async function requireMeant(input: Input, io: Io, domain: string): Promise<void> {
  requireSame(input, "sender domain", domain);
  if (input.given("confirm")) return;
  io.inform(
    `Without ${domain} no mail leaves: mail of relays fails, and alerts appear only in the dashboard.`,
  );
  const line = `relay domain remove --confirm ${domain}`;
  await requireYes(io, { question: `Remove ${domain}?`, undone: "Nothing was removed", line });
}

async function say(input: Input, io: Io, view: DomainView): Promise<void> {
  if (input.on("json")) return io.print(writeJson({ senderDomain: view } as Json, 2));
  const { domain, verified, record } = view;
  await printSheet(input, io, [
    `${domain}  ${verified ? "verified" : "not verified"}`,
    `  ${record.type}  ${record.name}  ${record.value}`,
  ]);
}
