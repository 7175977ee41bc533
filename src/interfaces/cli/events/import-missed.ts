/**
 * Imports events that the provider lists but never delivered (`relay import-missed`), as if they had arrived. It shows the plan first, then
 * imports exactly those lines.
 */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { sleep } from "../../../base/clock.ts";
import { toRefusalCode } from "../../../base/code/refusal-code.ts";
import { writeJson } from "../../../base/json.ts";
import { plain } from "../../../base/text.ts";
import type { ImportView } from "../../../engine/receiver/import.ts";
import { MAX_IMPORT_LINES } from "../../../engine/receiver/import-step.ts";
import { StoreUnavailable } from "../../../store/port.ts";
import type { Api } from "../api/api.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import { type Command, CommandFailure, type Input, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { pointersOf, writeCodeLine } from "../refusal-text.ts";
import { BASE_URL } from "../service-option.ts";
import { count } from "../sync/plan-lines.ts";
import { MissedTally as Tally } from "./import-summary.ts";
import { EXPORTERS, explainDocument, readExport } from "./read-export.ts";

const MAX_FILE_MB = 256;
/** The most bytes of one request, which is one batch. */
const BATCH_BYTES = 900 * 1024;
const TELL_EVERY_MS = 500;
/** The time between tries, in addition to the second that each try waits for the database. */
const TRY_AGAIN_MS = 200;
const MAX_TRIES = 10;

export const importEvents: Command = {
  words: ["import-missed"],
  summary: "import events that the provider never delivered",
  details:
    'With --from, the file is the list that the provider\'s API or tool gives, and each item counts as one line. Without it, each line of the file is one event: the body as the provider lists it, or a whole delivery as {"headers":{…},"body":"…"}. Relay verifies a delivery with the relay\'s secret, and accepts signatures of up to 30 days. Any other event is unsigned, and a relay that acts on people does not take unsigned events. Relay knows received and imported events by their event_id, and does not import them again. You can import the same file twice, also after an interruption. Relay offers each line to the relay and to those that follow it; name a follower to import into that one only. The command shows a plan first, then asks. Exit codes: 0 done, or nothing new; 1 refused, failed, some lines were refused (the other lines were imported), or the list of --from has another page; 2 the command line is wrong.',
  arguments: [
    { name: "name", help: "the name of the relay", of: "relay" },
    { name: "file", help: "the export; if absent, standard input", optional: true, of: "file" },
  ],
  options: [
    {
      name: "from",
      value: "<provider>",
      help: `read the provider's own list: ${EXPORTERS.join(", ")}`,
      of: EXPORTERS,
    },
    { name: "dry-run", help: "show the plan, and import nothing" },
    { name: "yes", help: "import without a question" },
    JSON_OUTPUT,
    BASE_URL,
    ...ANYWHERE,
  ],
  examples: [
    "relay import-missed orders < export.jsonl",
    "stripe events list --limit 100 | relay import-missed orders --from stripe --dry-run",
    "jq -c '.data[]' export.json | relay import-missed orders",
    "relay import-missed orders export.jsonl --profile shop --yes",
  ],
  async run(input, io) {
    const from = input.choice("from", EXPORTERS);
    const read = await readInput(input, io);
    const file = new Bun.CryptoHasher("sha256").update(read).digest("hex");
    const { bytes, hasMore } = from === null ? { bytes: read, hasMore: false } : await readExport(read, from);
    const code = await withApi(!input.on("dry-run") ? "write" : "read", input, io, (api) =>
      carry(sendBatches(api, input, io), bytes, file, input, io),
    );
    if (!hasMore) return code;
    io.inform(
      "This is not the whole list: the provider says that another page follows. Read the next page and import it too.",
    );
    return 1;
  },
};

async function readInput(input: Input, io: Io): Promise<Uint8Array> {
  const file = input.positionals[1];
  if (file === undefined && io.interactive)
    throw new UsageError(
      `The command would read the export from standard input, which is the terminal. Name a file: relay import-missed ${input.first()} < export.jsonl.`,
    );
  const bytes = file === undefined ? await io.readInputBytes() : await readFile(resolve(io.cwd, file));
  if (bytes.byteLength <= MAX_FILE_MB * 2 ** 20) return bytes;
  throw new CommandFailure(
    "body_too_large",
    `The export is larger than ${MAX_FILE_MB} MB: split it by lines, then import the parts one after another.`,
  );
}

interface Asked {
  dryRun: boolean;
  file: string;
  firstLine: number;
  version: number | null;
  followers: string | null;
}

/** Plans or stores one batch. */
type Send = (bytes: Uint8Array, asked: Asked) => Promise<ImportView>;

function sendBatches(api: Api, input: Input, io: Io): Send {
  return (bytes, { dryRun, file, firstLine, version, followers }) => {
    const query = new URLSearchParams({ dryRun: String(dryRun), file, line: String(firstLine) });
    if (version !== null) query.set("version", String(version));
    if (followers !== null) query.set("followers", followers);
    const path = `/relays/${encodeURIComponent(input.first())}/import-missed?${query}`;
    const send = () => api.request<ImportView>("POST", path, bytes);
    return api.isLocal ? retryWhileBusy(send, io) : send();
  };
}

/** Waits while a server runs the imported events, because it may hold the database for longer than a write waits. */
async function retryWhileBusy<Result>(work: () => Promise<Result>, { clock }: Io): Promise<Result> {
  for (let left = MAX_TRIES; ; left--) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || left === 0) throw error;
      await sleep(clock, TRY_AGAIN_MS);
    }
  }
}

/** Shows the plan, asks, and carries it out. `file` is the SHA-256 of the file, in hex. Returns the exit code. */
async function carry(send: Send, bytes: Uint8Array, file: string, input: Input, io: Io): Promise<number> {
  const plan = await passOver(send, bytes, { dryRun: true, file, version: null, followers: null }, io);
  if (plan.counts.new + plan.counts.known === 0 && !input.given("from")) {
    const why = await explainDocument(bytes, input.first(), input.positionals[1] ?? "export.json");
    if (why !== null) throw new CommandFailure("invalid_json", why);
  }
  const dry = input.on("dry-run");
  const what = `${plain(input.first())}: ${count(plan.lines, "line")} of ${plain(input.positionals[1] ?? "standard input")} (sha256 ${file.slice(0, 12)}…)`;
  if (!input.on("json")) for (const words of [what, ...plan.words()]) io.print(words);
  if (dry || plan.counts.new === 0) {
    if (input.on("json")) io.print(writeJson(plan.view(input.first(), file, false), 2));
    io.inform(dry ? "This is only the plan: nothing was imported." : "Nothing to import.");
    return end(plan, input, io);
  }
  await requireYes(plan, input, io);
  const { version, followers } = plan;
  const done = await passOver(send, bytes, { dryRun: false, file, version, followers }, io);
  if (input.on("json")) io.print(writeJson(done.view(input.first(), file, true), 2));
  const { new: made, known } = done.counts;
  const events = done.events === made ? "" : ` (${count(done.events, "event")})`;
  io.inform(
    `${made} new${events}, ${known} already known, ${done.counts.ignored} ignored, ${done.counts.refused} refused.`,
  );
  const filter = done.relays.size === 0 ? ` --relay ${plain(input.first())}` : "";
  if (made > 0) io.inform(`To see the events run: relay events list${filter}.`);
  return end(done, input, io);
}

function end({ counts, refusedLines, refusedCode }: Tally, input: Input, io: Io): number {
  if (refusedLines === 0) return 0;
  const code = toRefusalCode(refusedCode);
  const by = refusedLines === counts.refused ? "" : " by a relay";
  io.inform(`${count(refusedLines, "line")} ${refusedLines === 1 ? "was" : "were"} refused${by}.`);
  io.inform(writeCodeLine(code, pointersOf(input), io));
  return 1;
}

async function requireYes({ events }: Tally, input: Input, io: Io): Promise<void> {
  if (input.on("yes")) return;
  const answer = await io.confirmAside(`Import ${count(events, "event")}? Each runs as if it arrived now.`);
  if (answer === true) return;
  throw new CommandFailure(
    "not_confirmed",
    answer === null
      ? "Nothing was imported: there is no terminal to ask at. Add --yes to import without a question."
      : "Nothing was imported.",
  );
}

/** Sends every batch of the file in sequence. */
async function passOver(
  send: Send,
  bytes: Uint8Array,
  asked: Omit<Asked, "firstLine">,
  io: Io,
): Promise<Tally> {
  const tally = new Tally();
  let informedMs = io.clock.monotonicMs();
  try {
    for (const batch of batchesOf(bytes)) {
      if (batch.bytes === null) tally.addTooLong(batch.firstLine);
      else {
        const view = await send(batch.bytes, { ...asked, firstLine: batch.firstLine });
        tally.note(view);
        for (const line of view.lines) tally.add(line, asked.dryRun);
      }
      tally.lines = batch.firstLine + batch.lines - 1;
      if (!io.watched || io.clock.monotonicMs() - informedMs < TELL_EVERY_MS) continue;
      informedMs = io.clock.monotonicMs();
      io.redraw(`${asked.dryRun ? "Read" : "Imported"} up to line ${tally.lines}: ${tally.counts.new} new`);
    }
    return tally;
  } catch (error) {
    if (!asked.dryRun)
      io.inform(
        `The import stopped. ${count(tally.events, "event")} up to line ${tally.lines} ${tally.events === 1 ? "was" : "were"} imported, and later lines may be too. Import the same file again: Relay skips the events that it already has.`,
      );
    throw error;
  }
}

interface Batch {
  /** Null for a line that is too long to send. */
  bytes: Uint8Array | null;
  firstLine: number;
  lines: number;
}

const LF = 0x0a;

function* batchesOf(bytes: Uint8Array): Generator<Batch> {
  let [start, firstLine] = [0, 1];
  let [end, lines] = [0, 0];
  while (end < bytes.byteLength) {
    const found = bytes.indexOf(LF, end);
    const next = found < 0 ? bytes.byteLength : found + 1;
    if (lines > 0 && (next - start > BATCH_BYTES || lines === MAX_IMPORT_LINES)) {
      yield { bytes: bytes.subarray(start, end), firstLine, lines };
      [start, firstLine, lines] = [end, firstLine + lines, 0];
    }
    [end, lines] = [next, lines + 1];
    if (end - start <= BATCH_BYTES) continue;
    yield { bytes: null, firstLine, lines };
    [start, firstLine, lines] = [end, firstLine + lines, 0];
  }
  // Sends a file without lines too, because the relay may refuse imports.
  if (lines > 0 || firstLine === 1) yield { bytes: bytes.subarray(start, end), firstLine, lines };
}
