/**
 * Mail settings of an environment: its SMTP server and the owner's switch, stored as the section `mail` of the settings. The password is
 * sealed, bound to the environment, and never shown. This file never connects.
 */
import { isIP } from "node:net";
import { type Static, Type } from "typebox";
import { toIsoOrNull } from "../../base/clock.ts";
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import { MAX_EMAIL_CHARS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, oneOf, orNull, textOrNull, timeOrNull } from "../../base/schema.ts";
import { breaksOneLine, countChars, PLAIN_ADDRESS } from "../../base/text.ts";
import { type Environment, readSettingsSection } from "../account/environment.ts";
import { type AllowList, evaluateAddress, parseAllowList } from "../outbound/address.ts";
import type { Sealer } from "../secret/seal.ts";
import { isVisible } from "../template/template.ts";

export const MAIL_SECTION = "mail";

/** `tls`: from the first byte. `starttls`: before the first command (required, never optional). `none`: unencrypted. */
const security = oneOf(["tls", "starttls", "none"]);
export type MailSecurity = Static<typeof security>;

export const mailSettingsView = Type.Object({
  /** False if email_person sends no mail. */
  sends: Type.Boolean(),
  /** The display name of the sender; null: only the address. */
  fromName: textOrNull,
  /** The Reply-To address; null: the sender. */
  replyTo: textOrNull,
  smtp: orNull(
    Type.Object({
      host: Type.String(),
      port: Type.Integer(),
      security,
      username: textOrNull,
      passwordSetAt: timeOrNull,
    }),
  ),
});
type MailSettingsView = Static<typeof mailSettingsView>;

/** The server as stored. It is a type rather than an interface, so that JSON can be cast to it. */
export type SmtpSettings = Omit<NonNullable<MailSettingsView["smtp"]>, "passwordSetAt"> & {
  /** The sealed password, in base64; see `unsealSmtpPassword`. */
  password: string | null;
  passwordSetAt: number | null;
};
type MailSettings = Omit<MailSettingsView, "smtp"> & { smtp: SmtpSettings | null };

/**
 * A change: absent fields stay, and null or "" removes one. `smtp: null` removes the server. An absent password stays only for the same host
 * and username.
 */
export const mailSettingsInput = fields({
  sends: Type.Optional(Type.Boolean()),
  fromName: Type.Optional(orNull(Type.String({ description: "a name, or null" }))),
  replyTo: Type.Optional(orNull(Type.String({ description: "an email address, or null" }))),
  smtp: Type.Optional(
    orNull(
      fields({
        host: Type.String(),
        port: Type.Optional(Type.Integer()),
        security: Type.Optional(security),
        username: Type.Optional(textOrNull),
        password: Type.Optional(textOrNull),
      }),
    ),
  ),
});
export type MailSettingsInput = Static<typeof mailSettingsInput>;

const DEFAULT_PORT: Readonly<Record<MailSecurity, number>> = { tls: 465, starttls: 587, none: 25 };
const HOST = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$|^[0-9a-f:.]*:[0-9a-f:.]*$/i;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/i;
const MAX_CREDENTIAL_CHARS = 1_000;
const MAX_FROM_NAME_CHARS = 100;
const NO_PRIVATE_HOSTS = parseAllowList([]);

/** Reads the environment's mail settings. Default: sending enabled, no server. */
export function readMailSettings(environment: Pick<Environment, "settings">): MailSettings {
  const section = readSettingsSection(environment, MAIL_SECTION);
  const { sends, fromName, replyTo } = section;
  return {
    sends: sends !== false,
    fromName: typeof fromName === "string" ? fromName : null,
    replyTo: typeof replyTo === "string" ? replyTo : null,
    smtp: readSmtp(section.smtp),
  };
}

/** Formats the settings for the API: without the password, but with the time it was set. */
export function viewMailSettings({ smtp, ...rest }: MailSettings): MailSettingsView {
  if (smtp === null) return { ...rest, smtp };
  const { host, port, security, username, passwordSetAt } = smtp;
  return { ...rest, smtp: { host, port, security, username, passwordSetAt: toIsoOrNull(passwordSetAt) } };
}

/** Applies a change and returns the section to save. `allow`: private mail servers that the operator allows. Throws `invalid_input`. */
export function changeMailSettings(
  environment: Environment,
  input: MailSettingsInput,
  sealer: Sealer | null,
  nowMs: number,
  allow: AllowList = NO_PRIVATE_HOSTS,
): JsonObject {
  const current = readMailSettings(environment);
  const smtp =
    input.smtp === undefined
      ? current.smtp
      : changeSmtp(environment.id, current.smtp, input.smtp, sealer, nowMs);
  if (input.smtp !== undefined && smtp !== null) requirePublicAddress(smtp.host, allow);
  return {
    sends: input.sends ?? current.sends,
    fromName: input.fromName === undefined ? current.fromName : readFromName(input.fromName),
    replyTo: input.replyTo === undefined ? current.replyTo : readReplyTo(input.replyTo),
    smtp: smtp === null ? null : { ...smtp },
  };
}

/** Opens the SMTP password for one transmission; null: there is none. Throws if it was sealed under another key. */
export function unsealSmtpPassword(sealer: Sealer, environmentId: number, smtp: SmtpSettings): string | null {
  if (smtp.password === null) return null;
  return sealer.unseal(Buffer.from(smtp.password, "base64"), passwordContext(environmentId));
}

function changeSmtp(
  environmentId: number,
  current: SmtpSettings | null,
  input: NonNullable<MailSettingsInput["smtp"]> | null,
  sealer: Sealer | null,
  nowMs: number,
): SmtpSettings | null {
  if (input === null) return null;
  const security = input.security ?? "starttls";
  const host = readHost(input.host);
  const port = readPort(input.port ?? DEFAULT_PORT[security]);
  const username = readCredential("username", input.username);
  const password = readCredential("password", input.password);
  const hasSamePassword =
    input.password === undefined && current?.host === host && current.username === username;
  const smtp: SmtpSettings = { host, port, security, username, password: null, passwordSetAt: null };
  if (password !== null) {
    if (sealer === null) throw new Error("A mail server's password needs the master key.");
    smtp.password = Buffer.from(sealer.seal(password, passwordContext(environmentId))).toString("base64");
    smtp.passwordSetAt = nowMs;
  } else if (hasSamePassword) {
    smtp.password = current.password;
    smtp.passwordSetAt = current.passwordSetAt;
  }
  requireCompleteCredentials(smtp);
  return smtp;
}

function requireCompleteCredentials(smtp: SmtpSettings): void {
  if ((smtp.username === null) !== (smtp.password === null)) {
    throw new Refusal(
      "invalid_input",
      "`smtp.username` and `smtp.password` go together: give both, or neither (a new host or username needs the password again).",
    );
  }
  if (smtp.security === "none" && smtp.username !== null && !LOOPBACK.test(smtp.host)) {
    throw new Refusal(
      "invalid_input",
      '`smtp.security` "none" would send the password in clear: choose "starttls" or "tls", or a server on this machine.',
    );
  }
}

function readFromName(text: string | null): string | null {
  const name = text?.trim() ?? "";
  if (name === "") return null;
  const broken = breaksOneLine(name);
  if (broken === null && countChars(name) <= MAX_FROM_NAME_CHARS && isVisible(name)) return name;
  const why = broken ?? `is longer than ${MAX_FROM_NAME_CHARS} characters, or shows nothing`;
  throw new Refusal("invalid_input", `\`fromName\` ${why}: write a name such as Ada's Shop.`);
}

function readReplyTo(text: string | null): string | null {
  const address = text?.trim() ?? "";
  if (address === "") return null;
  if (address.length <= MAX_EMAIL_CHARS && PLAIN_ADDRESS.test(address)) return address;
  throw new Refusal(
    "invalid_input",
    "`replyTo` is not an email address: write one such as help@example.com, without a name.",
  );
}

function readHost(host: string): string {
  const trimmed = host.trim().toLowerCase();
  if (HOST.test(trimmed)) return trimmed;
  throw new Refusal("invalid_input", "`smtp.host` is not a host: write a name such as smtp.example.com.");
}

/** Throws `invalid_input` for a private IP address. A host name is checked at each connection, by its addresses. */
function requirePublicAddress(host: string, allow: AllowList): void {
  if (isIP(host) === 0) return;
  const verdict = evaluateAddress(host, host, allow);
  if (verdict.allowed) return;
  throw new Refusal(
    "invalid_input",
    `\`smtp.host\` is ${verdict.kind}, and mail goes only to public servers: set a public server, or ask the operator to allow this one (--allow-private, RELAY_ALLOW_PRIVATE).`,
  );
}

function readPort(port: number): number {
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return port;
  throw new Refusal("invalid_input", "`smtp.port` is not a port: write an integer from 1 to 65535.");
}

function readCredential(name: string, text: string | null | undefined): string | null {
  if (text === undefined || text === null || text === "") return null;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: exactly these would end a line of the protocol.
  if (text.length <= MAX_CREDENTIAL_CHARS && !/[\u0000-\u001f\u007f]/.test(text)) return text;
  throw new Refusal(
    "invalid_input",
    `\`smtp.${name}\` is too long or contains control characters: paste the value that the mail provider shows.`,
  );
}

function passwordContext(environmentId: number): string {
  return `smtp:${environmentId}`;
}

function readSmtp(section: Json | undefined): SmtpSettings | null {
  return isJsonObject(section) ? (section as SmtpSettings) : null;
}
