/** Parser of a pasted request: a curl command, headers with a body after an empty line, or only the body. It sends nothing. */

export interface PastedCall {
  body: string;
  /** null: the text has no headers, so the service signs the request as the sender would. */
  headers: Record<string, string> | null;
  contentType: string | null;
  /** Query string of the URL with its `?`. */
  search: string;
}

const HEADER = /^([A-Za-z0-9!#$%&'*+.^_`|~-]+):\s?(.*)$/;
const REQUEST_LINE = /^(?:POST|PUT|GET|PATCH)\s+(\S+)(?:\s+HTTP\/[\d.]+)?$/;
const BODY_FLAGS = new Set(["-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--json"]);

export function readPastedCall(text: string): PastedCall {
  const trimmed = text.trim();
  if (/^curl\s/.test(trimmed)) return readCurl(trimmed);
  const lines = trimmed.split(/\r?\n/);
  const first = lines[0] ?? "";
  const request = REQUEST_LINE.exec(first);
  if (request === null && !HEADER.test(first)) return finish([], trimmed, "");
  const headers: [string, string][] = [];
  let at = request === null ? 0 : 1;
  for (; at < lines.length; at++) {
    const found = HEADER.exec(lines[at] ?? "");
    if (found === null) break;
    headers.push([found[1] ?? "", found[2] ?? ""]);
  }
  // A body that looks like a header, such as `note: paid`, has no empty line after it.
  if (request === null && (lines[at] ?? "") !== "") return finish([], trimmed, "");
  return finish(headers, lines.slice(at + 1).join("\n"), searchOf(request?.[1] ?? ""));
}

function readCurl(command: string): PastedCall {
  const words = splitWords(command).slice(1);
  const headers: [string, string][] = [];
  const bodies: string[] = [];
  let url = "";
  for (let at = 0; at < words.length; at++) {
    const [flag = "", inline] = splitFlag(words[at] ?? "");
    const value = (): string => inline ?? words[++at] ?? "";
    if (flag === "-H" || flag === "--header") {
      const found = HEADER.exec(value());
      if (found !== null) headers.push([found[1] ?? "", found[2] ?? ""]);
    } else if (BODY_FLAGS.has(flag)) bodies.push(value());
    else if (flag === "-X" || flag === "--request" || flag === "-u" || flag === "-o") value();
    else if (flag === "--url") url = value();
    else if (!flag.startsWith("-")) url = flag;
  }
  return finish(headers, bodies.join("&"), searchOf(url));
}

/** Splits `--data=x` like `--data x`. */
function splitFlag(word: string): [flag: string, value: string | undefined] {
  const at = word.startsWith("--") ? word.indexOf("=") : -1;
  return at === -1 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)];
}

/** Splits a shell command into words without their quotes. */
function splitWords(line: string): string[] {
  const words: string[] = [];
  let word: string | null = null;
  for (let at = 0; at < line.length; at++) {
    const char = line[at] ?? "";
    if (char === "'" || (char === "$" && line[at + 1] === "'")) {
      const isAnsi = char === "$";
      let end = at + (isAnsi ? 2 : 1);
      let text = "";
      for (; end < line.length && line[end] !== "'"; end++) {
        if (isAnsi && line[end] === "\\") text += readEscape(line[++end] ?? "");
        else text += line[end];
      }
      word = (word ?? "") + text;
      at = end;
    } else if (char === '"') {
      let text = "";
      for (at++; at < line.length && line[at] !== '"'; at++) {
        if (line[at] === "\\" && '"\\$`'.includes(line[at + 1] ?? "-")) at++;
        text += line[at];
      }
      word = (word ?? "") + text;
    } else if (char === "\\" && /\r?\n/.test(line.slice(at + 1, at + 3))) {
      at += line[at + 1] === "\r" ? 2 : 1;
    } else if (/\s/.test(char)) {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? "") + (char === "\\" ? (line[++at] ?? "") : char);
  }
  if (word !== null) words.push(word);
  return words;
}

function readEscape(char: string): string {
  return { n: "\n", r: "\r", t: "\t" }[char] ?? char;
}

function searchOf(url: string): string {
  const at = url.indexOf("?");
  return at === -1 ? "" : url.slice(at).split("#", 1).join("");
}

function finish(all: readonly (readonly [string, string])[], body: string, search: string): PastedCall {
  const headers = Object.fromEntries(all.map(([name, value]) => [name.toLowerCase(), value.trim()]));
  const { "content-type": contentType = null } = headers;
  // A content type does not show that the headers came from a sender.
  const others = Object.keys(headers).filter((name) => name !== "content-type");
  return { body, headers: others.length === 0 ? null : headers, contentType, search };
}
