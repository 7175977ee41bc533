/** Reads the documentation's examples for tests that run them: fenced blocks by their tags, and shell lines without a shell. */

export interface Block {
  page: string;
  /** The words after the opening fence, such as `json relay` or `sh curl 201`. */
  tag: string;
  language: string;
  kind: string;
  more: string;
  text: string;
}

/** Lists every fenced block of a Markdown page. */
export function listBlocks(page: string, markdown: string): Block[] {
  return [...markdown.matchAll(/^```([^\n]*)\n([\s\S]*?)^```$/gm)].map(([, tag = "", text = ""]) => {
    const [language = "", kind = "", ...more] = tag.split(" ");
    return { page, tag, language, kind, more: more.join(" "), text: text.trimEnd() };
  });
}

/** One command: its words, its input file and its piped input. */
interface ShellCommand {
  words: string[];
  /** The file after `<`. */
  inputFile?: string;
  /** The text that `echo text |` pipes in. */
  input?: string;
}

/**
 * Parses the commands of a block as a shell does: quotes, variables, continued lines, `|` and `<`. Throws for an unknown variable and for a pipe from
 * anything but echo.
 */
export function readShell(text: string, variables: Readonly<Record<string, string>>): ShellCommand[] {
  const commands: ShellCommand[] = [];
  let words: string[] = [];
  let word: string | null = null;
  let isFile = false;
  let piped: string | undefined;
  let file: string | undefined;
  const endWord = (): void => {
    if (word === null) return;
    if (isFile) file = word;
    else words.push(word);
    isFile = false;
    word = null;
  };
  const endCommand = (): void => {
    endWord();
    if (words.length > 0) {
      commands.push({ words, ...(file === undefined ? {} : { inputFile: file }), ...(piped === undefined ? {} : { input: piped }) });
    }
    words = [];
    file = undefined;
    piped = undefined;
  };
  const expand = (name: string): string => {
    const value = variables[name];
    if (value === undefined) throw new Error(`$${name} is no placeholder that the tests know.`);
    return value;
  };
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    const name = char === "$" ? /^\$([A-Z_]+)/.exec(text.slice(at))?.[1] : undefined;
    if (char === "'") {
      const end = text.indexOf("'", at + 1);
      word = (word ?? "") + text.slice(at + 1, end);
      at = end;
    } else if (char === '"') {
      const end = text.indexOf('"', at + 1);
      word = (word ?? "") + text.slice(at + 1, end).replaceAll(/\$([A-Z_]+)/g, (_, one: string) => expand(one));
      at = end;
    } else if (name !== undefined) {
      word = (word ?? "") + expand(name);
      at += name.length;
    } else if (char === "\\" && text.charAt(at + 1) === "\n") at += 1;
    else if (char === "\n") endCommand();
    else if (char === " ") endWord();
    else if (char === "<" && word === null) isFile = true;
    else if (char === "|" && word === null) {
      if (words[0] !== "echo") throw new Error(`Only echo is piped in an example: ${text}`);
      piped = `${words.slice(1).join(" ")}\n`;
      words = [];
    } else word = (word ?? "") + char;
  }
  endCommand();
  return commands;
}

interface CurlAnswer {
  status: number;
  text: string;
}

/**
 * Runs a curl command: with curl if it is installed, otherwise as the same request by fetch. Fetch supports only the options that the examples use.
 */
export async function runCurl(words: readonly string[]): Promise<CurlAnswer> {
  if (words[0] !== "curl") throw new Error(`${words.join(" ")} is no line of curl.`);
  const curl = Bun.which("curl");
  if (curl === null) return await fetchAs(words.slice(1));
  const child = Bun.spawn([curl, ...words.slice(1), "-w", "\n%{http_code}"], { stdout: "pipe", stderr: "pipe", stdin: "ignore" });
  const output = await new Response(child.stdout).text();
  await child.exited;
  const end = output.lastIndexOf("\n");
  return { status: Number(output.slice(end + 1)), text: output.slice(0, end) };
}

export async function fetchAs(words: readonly string[]): Promise<CurlAnswer> {
  const headers = new Headers();
  let [method, body, url, seconds] = ["", undefined as string | undefined, "", 0];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    const value = (): string => words[++at] ?? "";
    if (word === "-s" || word === "-N") continue;
    if (word === "-X") method = value();
    else if (word === "-H") {
      const header = value();
      headers.set(header.slice(0, header.indexOf(":")), header.slice(header.indexOf(":") + 1).trim());
    } else if (word === "-d" || word === "--data-binary") body = value();
    else if (word === "--max-time") seconds = Number(value());
    else if (word.startsWith("-")) throw new Error(`The examples do not use ${word} of curl.`);
    else url = word;
  }
  if (body !== undefined && !headers.has("content-type")) headers.set("content-type", "application/x-www-form-urlencoded");
  const signal = seconds === 0 ? null : AbortSignal.timeout(seconds * 1_000);
  const answer = await fetch(url, {
    method: method || (body === undefined ? "GET" : "POST"),
    headers,
    body: body ?? null,
    redirect: "manual",
    signal,
  });
  return { status: answer.status, text: await answer.text().catch(() => "") };
}

/** Returns the first line of an example that the output does not contain in this order, or null. `…` matches anything. */
export function findUnshown(shown: string, output: string): string | null {
  const lines = output.split("\n");
  let from = 0;
  for (const line of shown.split("\n")) {
    const pattern = new RegExp(`^${line.trimEnd().split("…").map(RegExp.escape).join(".*")}$`);
    const found = lines.findIndex((one, index) => index >= from && pattern.test(one.trimEnd()));
    if (found < 0) return line;
    from = found + 1;
  }
  return null;
}
