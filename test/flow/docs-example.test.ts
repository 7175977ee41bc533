/** Runs every example of every documentation page: it checks definitions and catalogs, sends curl lines, and runs commands in order. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { type Json, type JsonObject, parseJson } from "../../src/base/json.ts";
import * as LIMITS from "../../src/base/limit.ts";
import { readManual } from "../../src/boot/documentation.ts";
import { findCommand, parseCommand } from "../../src/interfaces/cli/line/parse.ts";
import { COMMANDS } from "../../src/interfaces/cli/registry.ts";
import { SHOWN_LIMITS } from "../../src/interfaces/docs/limit-part.ts";
import { breakRule, formatProblems, RIGHT } from "../../src/interfaces/docs/rule-example.ts";
import { checkCatalog } from "../../src/operator/sync/catalog-file.ts";
import { NOTICE_VERIFIERS } from "../../src/rules/action/notice-verifier.ts";
import { checkDefinition } from "../../src/rules/relay/definition.ts";
import { startService } from "../../src/service.ts";
import { type CommandResult, runCommand } from "../kit/cli-io.ts";
import { type Block, fetchAs, findUnshown, listBlocks, readShell, runCurl } from "../kit/docs-block.ts";
import { openDocsShop } from "../kit/docs-shop.ts";
import { poll } from "../kit/patience.ts";

const docs = readManual();
const blocks = docs.pages.flatMap(({ id, text }) => listBlocks(id, text));
const jsonOf = ({ text }: Block): JsonObject => parseJson(text) as JsonObject;
const nameOf = ({ page, tag, text }: Block): string => `${page}: ${tag}: ${text.slice(0, 60).replaceAll("\n", " ")}`;

/** Lists the blocks that the product never reads, so they are only displayed. */
const SHOWN = new Set(["text Caddyfile", "text form", "text", ...NOTICE_VERIFIERS.map(({ language }) => language)]);
const KNOWN = /^(json (relay|catalog|refused|trigger|verify|action|event|answer|file)|sh (relay|curl|command|server)|text (output|problem))\b/;

describe("every block", () => {
  test("has a tag that the tests know", () => {
    expect(blocks.filter(({ tag, language }) => !KNOWN.test(tag) && !SHOWN.has(tag) && language !== "text").map(nameOf)).toEqual([]);
    expect(blocks.length).toBeGreaterThan(400);
  });
});

/** Completes a part to a whole definition. */
function around(block: Block): Json {
  const part = jsonOf(block);
  const trigger = RIGHT.trigger as JsonObject;
  const unsigned = { map: { event_id: "id" } };
  if (block.kind === "relay") return part;
  if (block.kind === "refused") return breakRule(part);
  if (block.kind === "verify") return { ...RIGHT, trigger: { ...trigger, ...unsigned, verify: part } };
  if (block.kind === "trigger") return { ...RIGHT, trigger: part };
  return { ...RIGHT, actions: [part] };
}

describe("definitions and catalogs", () => {
  const whole = blocks.filter(({ language, kind }) => language === "json" && ["relay", "trigger", "verify", "action"].includes(kind));
  test("the product accepts every relay, trigger, scheme and action", () => {
    const wrong = whole.map((block) => [nameOf(block), ...formatProblems(around(block))]).filter(({ length }) => length > 1);
    expect(wrong).toEqual([]);
    expect(whole.length).toBeGreaterThan(40);
  });

  test("the product accepts every complete relay without a warning", () => {
    const relays = blocks.filter(({ language, kind, page }) => language === "json" && kind === "relay" && !page.startsWith("senders/"));
    const warned = relays.flatMap((block) => {
      const checked = checkDefinition(jsonOf(block));
      return "warnings" in checked ? checked.warnings.map(({ message }) => [nameOf(block), message]) : [];
    });
    expect(warned).toEqual([]);
  });

  test("the product rejects every definition that a page calls rejected, in the words below it", () => {
    const refused = blocks.flatMap((block, index) => (block.kind === "refused" ? [{ block, said: blocks[index + 1] }] : []));
    for (const { block, said } of refused) expect([nameOf(block), said?.text]).toEqual([nameOf(block), formatProblems(around(block)).join("\n")]);
    expect(refused.filter(({ said }) => said?.kind !== "problem" || said.text === "")).toEqual([]);
    expect(refused.length).toBeGreaterThan(35);
  });

  test("the product accepts every catalog", () => {
    const catalogs = blocks.filter(({ language, kind }) => language === "json" && kind === "catalog");
    const wrong = catalogs
      .map((block) => ({ name: nameOf(block), checked: checkCatalog(jsonOf(block)) }))
      .filter(({ checked }) => "problems" in checked);
    expect(wrong).toEqual([]);
    expect(catalogs.length).toBeGreaterThan(6);
  });

  test("every other JSON block is valid JSON", () => {
    for (const block of blocks.filter(({ language, kind }) => language === "json" && kind !== "file"))
      expect(() => parseJson(block.text)).not.toThrow();
  });
});

test("every limit of the code has its line", () => {
  const units = ["MINUTE_MS", "HOUR_MS", "DAY_MS", "DEFAULT_LIMITS", "RETRY_DELAYS_MS", "MAX_UNCOUNTED_US", "CAP_WINDOW_MS"];
  const untold = [...units, "MIN_BODY_LIMIT_BYTES", "MAX_BODY_TEXT_CHARS", "HEAVY_BODY_BYTES"];
  expect(Object.keys(LIMITS).filter((name) => !SHOWN_LIMITS.includes(name) && !untold.includes(name))).toEqual([]);
});

test("the program accepts every command line that a page shows without running it", () => {
  const shown = blocks.filter(({ language, kind }) => language === "sh" && (kind === "command" || kind === "server"));
  const lines = shown.flatMap(({ text }) =>
    text.split("\n").flatMap((line) => /(?:^|\| |[A-Z_]+=\S+ )relay( .*)?$/.exec(line.split(" < ")[0] ?? "")?.[1]?.trim() ?? []),
  );
  for (const line of lines) {
    const words = (readShell(line, {})[0]?.words ?? []).filter((word) => word !== "relay");
    const found = findCommand(words, COMMANDS);
    expect([line, found === null]).toEqual([line, false]);
    if (found !== null) expect([line, () => parseCommand(found.command, found.rest, {})]).toEqual([line, expect.any(Function)]);
    if (found !== null) parseCommand(found.command, found.rest, {});
  }
  expect(lines.length).toBeGreaterThan(60);
});

/** Sends a page's curl lines to the shop's server, and compares each status and each shown response. */
describe("lines of curl", () => {
  let shop: Awaited<ReturnType<typeof openDocsShop>>;
  beforeAll(async () => {
    shop = await openDocsShop();
  });
  afterAll(() => shop[Symbol.asyncDispose]());
  const isLocal = ({ text }: Block): boolean => text.includes("$BASE/hooks/local/");
  const pages = [...new Set(blocks.filter((block) => block.kind === "curl" && !isLocal(block)).map(({ page }) => page))];

  test.each(pages)("%s", async (page) => {
    const answered: unknown[] = [];
    const said: unknown[] = [];
    for (const [index, block] of blocks.entries()) {
      if (block.page !== page || block.kind !== "curl" || isLocal(block)) continue;
      for (const { words } of readShell(block.text, await shop.readVariables())) {
        const answer = await runCurl(words);
        if (answer.status !== Number(block.more)) answered.push([block.tag, block.text, answer.status, answer.text.slice(0, 300)]);
        const shown = blocks[index + 1];
        if (shown?.kind === "answer") said.push([parseJson(answer.text), expect.objectContaining(jsonOf(shown) as object)]);
      }
    }
    expect(answered).toEqual([]);
    for (const [given, wanted] of said as [unknown, unknown][]) expect(given).toEqual(wanted);
  });

  test("do not depend on an installed curl", async () => {
    const words =
      readShell('curl -s "$BASE/api/apps/shop/development/events?limit=2" -H "Authorization: Bearer $KEY"', await shop.readVariables())[0]?.words ??
      [];
    const [one, other] = [await runCurl(words), await fetchAs(words.slice(1))];
    expect(other).toEqual(one);
  });
});

/** Runs a page's commands in order in a separate folder. Local development runs in the background after the page starts it. */
class Terminal {
  readonly folder = mkdtempSync(join(tmpdir(), "relay-docs-"));
  base = "";
  #stop = (): void => undefined;
  #dev: Promise<CommandResult> | null = null;
  #told = "";

  async relay(words: readonly string[], input: string): Promise<string> {
    if (words[0] === "dev") return await this.#start();
    const { said, told, code } = await runCommand(words, { cwd: this.folder, input, clock: systemClock, env: this.#env });
    expect([words.join(" "), code, code === 0 ? told : `${said}\n${told}`]).toEqual([words.join(" "), 0, told]);
    return `${said}\n${told}`;
  }

  get #env(): Record<string, string> {
    return { RELAY_PORT: "0", HOME: this.folder, XDG_CONFIG_HOME: this.folder };
  }

  /** Returns the output of local development so far. */
  get heard(): string {
    return this.#told;
  }

  async #start(): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#stop = resolve;
    const { promise: isUp, resolve: up } = Promise.withResolvers<void>();
    const hear = (text: string): void => {
      this.#told += `${text}\n`;
      if (text.includes("Press Ctrl+C")) up();
    };
    const started: typeof startService = (config, ports) => startService(config, { ...ports, printRun: () => undefined });
    this.#dev = runCommand(["dev"], {
      cwd: this.folder,
      clock: systemClock,
      env: this.#env,
      untilStopped: () => promise,
      startService: started,
      hear,
    });
    await Promise.race([isUp, this.#dev]);
    this.base = /Dashboard {2}(http:\/\/[^/]+)/.exec(this.#told)?.[1] ?? "";
    return this.#told;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop();
    await this.#dev;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Matches commands that change nothing, so a test can repeat them. */
const LOOKS = /^(relay \w+ (list|show|funnel)\b[^\n]*\n?)+$/;

async function runPage(page: string, wanted: readonly Block[]): Promise<void> {
  await using terminal = new Terminal();
  const text = wanted.map((block) => block.text).join("\n");
  if (!text.includes("relay init")) await terminal.relay(["init"], "");
  if (!text.includes("relay dev")) await terminal.relay(["dev"], "");
  let output = "";
  for (const [index, block] of wanted.entries()) {
    const path = block.language === "json" && block.more !== "" && block.kind !== "event" ? block.more : null;
    if (path !== null) {
      const file = join(terminal.folder, path);
      const before = terminal.heard.length;
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, `${block.text}\n`);
      if (path.startsWith("service/")) {
        await waitFor(() => terminal.heard.slice(before).includes(path));
        expect(terminal.heard.slice(before)).toContain(path);
      }
    } else if (block.kind === "output") expect([page, findUnshown(block.text, output), output]).toEqual([page, null, output]);
    else if (block.kind === "answer") expect(parseJson(output)).toEqual(expect.objectContaining(jsonOf(block) as object));
    else if (block.language === "sh" && (block.kind === "relay" || block.kind === "curl")) {
      if (block.kind === "curl" && !block.text.includes("/hooks/local/")) continue;
      const shown = wanted[index + 1];
      const isSeen = async (): Promise<boolean> => {
        output = await runBlock(terminal, block);
        return shown?.kind !== "output" || findUnshown(shown.text, output) === null;
      };
      if (LOOKS.test(block.text)) await waitFor(isSeen);
      else await isSeen();
    }
  }
}

/** Runs the block's commands in order and returns their output. */
async function runBlock(terminal: Terminal, block: Block): Promise<string> {
  let output = "";
  for (const { words, input = "", inputFile } of readShell(block.text, { BASE: terminal.base })) {
    const given = inputFile === undefined ? input : readFileSync(join(terminal.folder, inputFile), "utf8");
    if (block.kind === "relay") output += `${await terminal.relay(words.slice(1), given)}\n`;
    else {
      const answer = await runCurl(words);
      expect([block.text, answer.status]).toEqual([block.text, Number(block.more)]);
      output = answer.text;
    }
  }
  return output;
}

/** Waits for an effect that follows shortly, for example an applied file or a request that is stored after its response. */
const waitFor = (isThere: () => boolean | Promise<boolean>): Promise<boolean> => poll(isThere, Boolean, 50);

describe("commands in a separate folder", () => {
  const pages = docs.pages.filter(({ id }) => !id.startsWith("senders/")).map(({ id }) => id);
  const run = pages.filter((id) => blocks.some((block) => block.page === id && block.tag === "sh relay"));
  test.each(run)("%s", async (page) => {
    await runPage(
      page,
      blocks.filter((block) => block.page === page),
    );
  });

  test("every sender's page starts from a valid relay", async () => {
    for (const { id } of docs.pages.filter(({ parent }) => parent === "senders")) {
      await using terminal = new Terminal();
      await terminal.relay(["init", "--from", id.slice("senders/".length)], "");
      await terminal.relay(["validate"], "");
    }
  });
});

describe("server commands with their folders below a temporary folder", () => {
  /** Commands of an S3 endpoint, which test/flow/backup-copy.test.ts runs. */
  const needsEndpoint = ({ text }: Block): boolean => /^relay backups (copy|endpoint)|s3:\/\//.test(text);
  const isServer = (block: Block): boolean =>
    block.kind === "command" && /^relay (serve|backup|backups|restore) /.test(block.text) && !needsEndpoint(block);
  const pages = [...new Set(blocks.filter(isServer).map(({ page }) => page))];

  test.each(pages)("%s", async (page) => {
    const root = mkdtempSync(join(tmpdir(), "relay-docs-"));
    const dataDir = join(root, "var/lib/relay");
    const run = async (words: readonly string[]): Promise<void> => {
      const { promise: isStopped, resolve: stop } = Promise.withResolvers<void>();
      const line = words.map((word) => word.replace(/^(?=\/(?:var|mnt)\/)/, root));
      const { code, said, told } = await runCommand(line, {
        cwd: root,
        clock: systemClock,
        env: { RELAY_PORT: "0", RELAY_DATA_DIR: dataDir },
        startService,
        untilStopped: () => isStopped,
        hear: (text) => (text.startsWith("Set-up") || text.startsWith("Public")) && stop(),
      });
      expect([words.join(" "), code, said, told]).toEqual([words.join(" "), 0, said, told]);
      if (words[0] === "serve") expect(said).toContain("Listening");
    };
    mkdirSync(join(root, "mnt/backup"), { recursive: true });
    await run(["serve", "--base-url", "https://relay.example.com"]);
    mkdirSync(join(root, "mnt/key"));
    copyFileSync(join(dataDir, "master.key"), join(root, "mnt/key/master.key"));
    const shown = blocks.filter((one) => one.page === page && isServer(one));
    if (!shown.some(({ text }) => text.startsWith("relay backup /mnt/backup/relay.db"))) await run(["backup", "/mnt/backup/relay.db"]);
    for (const block of shown) for (const { words } of readShell(block.text, {})) await run(words.slice(1));
    rmSync(root, { recursive: true });
  });

  test("cover every server command in the docs, except sign-ins to another machine, which the sync and promote tests run", () => {
    const left = blocks.filter((block) => block.kind === "command" && !isServer(block) && !needsEndpoint(block) && block.language === "sh");
    expect(left.filter(({ page }) => !page.startsWith("commands") && !page.startsWith("cli")).map(({ text }) => text)).toEqual([
      "relay login --url https://relay.example.com",
      "relay sync",
      "relay relays cases checkout-completed --keep paid --data paid.json\nrelay relays cases checkout-completed --run",
      "relay promote --open",
      "relay relays checklist checkout-completed --profile shop-production",
      "relay relays set-secret checkout-completed --profile shop-production < secret.txt",
      "relay status",
      "relay pull",
      "relay validate --strict\nrelay sync --wait",
      "relay sync --check",
      // test/flow/customer-link.test.ts runs these.
      "relay people link ada@example.com --customers stripe cus_123\nrelay people unlink ada@example.com --customers stripe cus_123",
      // test/flow/alert-channel-command.test.ts runs these.
      "relay alerts add-channel slack --name Ops < webhook-url.txt\nrelay alerts test-channel Ops",
      // test/rule/cli-account.test.ts runs these.
      "relay oidc provider https://id.example.com --client-id relay-dashboard --role relay-admins=owner --role support=support:shop/production --data-dir /var/lib/relay",
      "relay oidc passwords on --data-dir /var/lib/relay",
      // test/flow/capture-command.test.ts runs these two.
      "relay capture",
      "relay guess order.txt",
    ]);
  });
});
