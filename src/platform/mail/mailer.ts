/**
 * The interface to send mail, and the text of a mail. A server sends over SMTP; local development keeps mail in its mailbox. Errors have a
 * class and a sentence of Relay; the words of a mail server go only to the server's log. Subject and text come from rendered templates, which
 * may hold anything that a provider sent, so the HTML part escapes all of it.
 */

import type { MailFailureCode } from "../../base/code/mail-code.ts";
import { MAX_EMAIL_TEXT_CHARS, MAX_SUBJECT_CHARS } from "../../base/limit.ts";
import { cutToLine, formatCount } from "../../base/text.ts";

export interface OutgoingMail {
  environmentId: number;
  /** The row's id, and the local part of the Message-ID. */
  emailId: string;
  from: string;
  to: string;
  subject: string;
  text: string;
  /** The person whose event mail this is; the mail then has a one-click URL to stop such mail. */
  stopFor?: string;
}

export type MailOutcome =
  | { kind: "sent" }
  /** The mail is stored in the local mailbox and not sent. */
  | { kind: "mailbox" }
  /** The mail certainly was not sent. `retry`: the server may accept it later (4xx, no connection). */
  | { kind: "failed"; reason: MailFailureCode; message: string; retry: boolean }
  /** The connection ended after the text was sent and before the server answered, so the mail may have been accepted. */
  | { kind: "unknown"; reason: MailFailureCode; message: string };

export interface Mailer {
  /**
   * Sends one mail, whose row was written as intended, within a minute or `withinMs`. Marks the row durably before the text is sent. Never
   * throws.
   */
  send(mail: OutgoingMail, options?: { withinMs?: number }): Promise<MailOutcome>;
}

/** A mailer that can be stopped: unsent mails end at once, mails in transmission get some seconds. */
export interface StoppableMailer extends Mailer {
  /** Loads what the first mail needs, if any mail can be sent. */
  warmUp(): Promise<void>;
  stop(): void;
}

export const mailboxMailer: StoppableMailer = {
  send: () => Promise.resolve({ kind: "mailbox" }),
  warmUp: () => Promise.resolve(),
  stop: () => undefined,
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: all control characters but newline and tab.
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
const LINK = /https?:\/\/[^\s<>"'\x60\\]+/gi;
/** Punctuation that ends a sentence rather than a URL. */
const AFTER_LINK = ".,;:!?)]}*_";
const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Makes a subject: one line of at most 300 characters. A newline becomes a space. */
export function makeSubject(rendered: string): string {
  return cutToLine(rendered, MAX_SUBJECT_CHARS);
}

/** Makes a text: at most 10,000 characters of plain text with `\n` newlines, without other control characters except tabs. */
export function makeText(rendered: string): string {
  const text = cleanText(rendered);
  if (text.length <= MAX_EMAIL_TEXT_CHARS) return text;
  return Array.from(text).slice(0, MAX_EMAIL_TEXT_CHARS).join("");
}

/** Lists one sentence for subject and text each that was cut to its limit. */
export function listTruncations(rendered: { subject: string; text: string }): string[] {
  const cuts: string[] = [];
  if (cutToLine(rendered.subject, rendered.subject.length) !== makeSubject(rendered.subject))
    cuts.push(`The mail's subject was cut to its limit of ${MAX_SUBJECT_CHARS} characters.`);
  if (cleanText(rendered.text) !== makeText(rendered.text))
    cuts.push(`The mail's text was cut to its limit of ${formatCount(MAX_EMAIL_TEXT_CHARS)} characters.`);
  return cuts;
}

/**
 * Makes the HTML part: the escaped text with its line breaks. URLs that begin with http:// or https:// become links that show exactly their
 * URL. The page loads no resource, so it does not report that it was read.
 */
export function makeHtml(text: string): string {
  const paragraphs = text.trim().split(/\n{2,}/);
  const body = paragraphs.map((one) => `<p>${linkLines(one).replaceAll("\n", "<br>\n")}</p>`).join("\n");
  return `<!doctype html>\n<html><head><meta charset="utf-8"></head><body>\n${body}\n</body></html>\n`;
}

/** Escapes a text for HTML, also for quoted attributes. */
export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (char) => ESCAPES[char] ?? char);
}

function cleanText(rendered: string): string {
  return rendered.toWellFormed().replaceAll(/\r\n?/g, "\n").replaceAll(CONTROL, "");
}

function linkLines(text: string): string {
  let html = "";
  let from = 0;
  for (const found of text.matchAll(LINK)) {
    const address = cutAfterLink(found[0]);
    if (!isPlainLink(address)) continue;
    const end = found.index + address.length;
    const shown = escapeHtml(address);
    html += `${escapeHtml(text.slice(from, found.index))}<a href="${shown}">${shown}</a>`;
    from = end;
  }
  return html + escapeHtml(text.slice(from));
}

/** A loop, because a regular expression would take quadratic time in a text of dots. */
function cutAfterLink(found: string): string {
  let end = found.length;
  while (end > 0 && AFTER_LINK.includes(found.charAt(end - 1))) end -= 1;
  return found.slice(0, end);
}

/** Rejects a URL with a user name (`https://bank.example@evil.example`), which looks like a link to another host. */
function isPlainLink(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const url = new URL(address);
  return url.username === "" && url.password === "" && url.hostname !== "";
}
