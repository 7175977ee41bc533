/**
 * The door through which e-mail leaves: SMTP on a server, nothing at all in local development, where mail stays in the mailbox. What can go
 * wrong has a class and a sentence of ours; what a mail server says in its own words goes to the server's log alone. Subject and text come
 * from rendered templates, which may hold anything a provider sent: one line and plain text, and an HTML part in which nothing of it is markup.
 */
import { MAX_EMAIL_TEXT_CHARS, MAX_SUBJECT_CHARS } from "../../base/limit.ts";
import type { MailTrouble } from "../../base/problem-code.ts";
import { cutToLine } from "../../base/text.ts";

export interface OutgoingMail {
  environmentId: number;
  /** The row's id, also the Message-ID's local part. */
  emailId: string;
  from: string;
  to: string;
  subject: string;
  text: string;
  /** The person whose event mail this is one of: it says how to stop them. */
  stopFor?: string;
}

export type MailOutcome =
  | { kind: "sent" }
  /** Kept in the local mailbox, sent nowhere. */
  | { kind: "mailbox" }
  /** It certainly did not leave. `retry`: the server may take it later (4xx, no connection); else it never will. */
  | { kind: "failed"; reason: MailTrouble; message: string; retry: boolean }
  /** The connection ended after the text was handed over and before the server said anything: it may have left. */
  | { kind: "unknown"; reason: MailTrouble; message: string };

export interface Mailer {
  /**
   * Hands one mail over, its row written as intended before; within a minute, or `withinMs` where somebody waits for the answer. Marks the
   * row durably before the text leaves. Never throws.
   */
  send(mail: OutgoingMail, options?: { withinMs?: number }): Promise<MailOutcome>;
}

/** A mailer that the end of the process can hurry: what did not leave ends at once, what may have is given some seconds. */
export interface StoppableMailer extends Mailer {
  /** Loads what the first mail would wait for, where any leaves. */
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
const LINK = /https?:\/\/[^\s<>"'`\\]+/gi;
/** What ends a sentence rather than an address. */
const AFTER_LINK = ".,;:!?)]}*_";
const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** One line of at most 300 characters: a newline becomes a space. */
export function makeSubject(rendered: string): string {
  return cutToLine(rendered, MAX_SUBJECT_CHARS);
}

/** At most 10,000 characters of plain text; newlines as `\n`, other control characters but tabs gone. */
export function makeText(rendered: string): string {
  const text = cleanText(rendered);
  if (text.length <= MAX_EMAIL_TEXT_CHARS) return text;
  return Array.from(text).slice(0, MAX_EMAIL_TEXT_CHARS).join("");
}

/** One sentence for each of the two that its limit cut; none when both are whole. */
export function listTruncations(rendered: { subject: string; text: string }): string[] {
  const cuts: string[] = [];
  if (cutToLine(rendered.subject, rendered.subject.length) !== makeSubject(rendered.subject))
    cuts.push(`The mail's subject was cut to its limit of ${MAX_SUBJECT_CHARS} characters.`);
  if (cleanText(rendered.text) !== makeText(rendered.text))
    cuts.push(
      `The mail's text was cut to its limit of ${MAX_EMAIL_TEXT_CHARS.toLocaleString("en")} characters.`,
    );
  return cuts;
}

/**
 * The text as a page for mail readers: escaped, its lines kept, addresses that begin with http:// or https:// made to be clicked under
 * exactly the words that stand there. It loads nothing and tells nobody that it was read.
 */
export function makeHtml(text: string): string {
  const paragraphs = text.trim().split(/\n{2,}/);
  const body = paragraphs.map((one) => `<p>${linkLines(one).replaceAll("\n", "<br>\n")}</p>`).join("\n");
  return `<!doctype html>\n<html><head><meta charset="utf-8"></head><body>\n${body}\n</body></html>\n`;
}

/** The text as it may stand in HTML, also inside an attribute in quotes. */
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

/** By hand: an expression that looks for the end from every place takes its square in a text of dots. */
function cutAfterLink(found: string): string {
  let end = found.length;
  while (end > 0 && AFTER_LINK.includes(found.charAt(end - 1))) end -= 1;
  return found.slice(0, end);
}

/** A user name before the host (`https://bank.example@evil.example`) makes a link look like another's. */
function isPlainLink(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const url = new URL(address);
  return url.username === "" && url.password === "" && url.hostname !== "";
}
