/**
 * Lists, uploads, downloads and deletes the files of records (`relay files …`), as Records › Files does in the dashboard. A download never
 * overwrites a file.
 */
import { readFile, stat, writeFile } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { writeJson } from "../../../base/json.ts";
import { type FileView, requireFileSize } from "../../../shop/records/file.ts";
import type { Api } from "../api/api.ts";
import { listItems, withApi } from "../api/connect.ts";
import { NothingSent } from "../api/remote.ts";
import { ANYWHERE } from "../api/target.ts";
import { type Command, CommandFailure, type Input, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { World } from "../io.ts";
import { requireSame, requireYes } from "../terminal/confirm.ts";
import { wholeId } from "../terminal/id-suffix.ts";
import { LIMIT, SINCE } from "../terminal/listing.ts";
import { sayList } from "../terminal/terminal.ts";

const FILE_ID = { name: "file id", help: "as relay files list shows it, or its ending" };

export const filesList: Command = {
  words: ["files", "list"],
  summary: "list the files that records may hold",
  options: [SINCE, LIMIT, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay files list --since 7d"],
  async run(input, world) {
    const time = { of: (one: FileView) => one.createdAt, ordered: true };
    const files = await listItems<FileView>(input, world, "/files", {}, time);
    await sayList(input, world, files, {
      columns: [
        { heading: "KEPT", value: (one) => one.createdAt },
        { heading: "ID", value: (one) => one.id },
        { heading: "BYTES", value: (one) => String(one.bytes), right: true },
        { heading: "TYPE", value: (one) => one.mediaType },
        { heading: "NAME", value: (one) => one.name, raw: true },
      ],
      none: "No file is kept here.",
    });
  },
};

export const filesUpload: Command = {
  words: ["files", "upload"],
  summary: "keep a file that a record may hold",
  details:
    "Each time it is written it keeps one more. The id that it tells is what a record's field of the type file takes: relay records set. Without a file it is read from standard input, and --name says what it is called.",
  arguments: [
    { name: "file", help: "on this machine; standard input when absent", optional: true, of: "file" },
  ],
  options: [
    { name: "name", value: "<name>", otherwise: "the file's own", help: "what it is called" },
    {
      name: "type",
      value: "<media type>",
      otherwise: "as the name's ending says",
      help: "what it is, such as image/png",
    },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay files upload invoice.pdf", "relay files upload --name note.txt < note.txt"],
  async run(input, world) {
    const path = input.positionals[0];
    const name = input.text("name") ?? (path === undefined ? null : basename(path));
    if (name === null)
      throw new UsageError(
        "--name is not given, and standard input has none: write --name note.txt, or name a file.",
      );
    const content = await readBytes(world, path);
    const mediaType = input.text("type") ?? Bun.file(name).type;
    const file = await withApi<FileView>("write", input, world, async (api) => {
      const path = `/files?name=${encodeURIComponent(name)}`;
      const asked = api.request<{ file: FileView }>("POST", path, content, mediaType);
      const { file } = await asked.catch((error) => {
        if (error instanceof CommandFailure && !(error instanceof NothingSent))
          world.tell("Whether it was kept is not known: relay files list shows whether it was.");
        throw error;
      });
      return file;
    });
    if (input.on("json")) world.say(writeJson({ file }, 2));
    world.tell(
      `${file.name} is kept as ${file.id} (${file.bytes} bytes, ${file.mediaType}): a record holds it once a field of the type file has this id.`,
    );
  },
};

async function readBytes(world: World, path: string | undefined): Promise<Uint8Array> {
  if (path === undefined) {
    if (world.interactive)
      throw new UsageError(
        "The file is read from standard input, which is the terminal: name a file, relay files upload invoice.pdf.",
      );
    const bytes = await world.readInputBytes();
    requireFileSize(bytes.byteLength);
    return bytes;
  }
  const whole = resolve(world.cwd, path);
  const found = await stat(whole).catch(() => null);
  if (found === null || !found.isFile())
    throw new CommandFailure("not_found", `${path} is no file here: name one that can be read.`);
  requireFileSize(found.size);
  return await readFile(whole);
}

interface Fetched {
  id: string;
  name: string;
  mediaType: string;
  content: Uint8Array;
}

export const filesDownload: Command = {
  words: ["files", "download"],
  summary: "write a kept file to a file here",
  details: "It never takes the place of a file that is there already.",
  arguments: [FILE_ID],
  options: [
    {
      name: "to",
      value: "<file>",
      otherwise: "its own name, in this folder",
      help: "where it is written",
      of: "file",
    },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay files download 7c44d0b1", "relay files download 7c44d0b1 --to invoice.pdf"],
  async run(input, world) {
    const text = input.first();
    const { content, ...file } = await withApi<Fetched>("read", input, world, async (api) => {
      const id = await findFileId(api, text);
      const { bytes, headers } = await api.download(`/files/${encodeURIComponent(id)}`);
      const [, name = id] = /filename\*=UTF-8''([^;]+)/.exec(headers.get("content-disposition") ?? "") ?? [];
      return {
        id,
        name: decodeURIComponent(name),
        mediaType: headers.get("content-type") ?? "",
        content: bytes,
      };
    });
    // A file name has no slash, but the name that a server sends may hold anything.
    const to = resolve(world.cwd, input.text("to") ?? basename(file.name));
    await writeFile(to, content, { flag: "wx" }).catch((error: NodeJS.ErrnoException) => {
      throw sayUnwritten(to, error);
    });
    const { id, name, mediaType } = file;
    if (input.on("json"))
      world.say(writeJson({ file: { id, name, mediaType, bytes: content.byteLength }, to }, 2));
    world.tell(`${name} is written to ${to}, ${content.byteLength} bytes.`);
  },
};

function sayUnwritten(to: string, { code }: NodeJS.ErrnoException): CommandFailure {
  return code === "EEXIST"
    ? new CommandFailure("in_use", `${to} is there already, and nothing was written: name another with --to.`)
    : new CommandFailure(
        "invalid_input",
        `${to} cannot be written (${code}): name a place that can with --to.`,
      );
}

export const filesDelete: Command = {
  words: ["files", "delete"],
  summary: "delete a file that no record holds, for good",
  arguments: [FILE_ID],
  options: [
    {
      name: "confirm",
      value: "<file id>",
      help: "the id once more, which deletes without asking; without it a terminal is asked",
    },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay files delete 7c44d0b1 --confirm 7c44d0b1"],
  async run(input, world) {
    const text = input.first();
    requireSame(input, "file", text);
    const deleted = await withApi<string>("write", input, world, async (api) => {
      const id = await findFileId(api, text);
      await askFirst(input, world, id);
      await api.command("DELETE", `/files/${encodeURIComponent(id)}`);
      return id;
    });
    if (input.on("json")) world.say(writeJson({ deleted }, 2));
    world.tell(`The file ${deleted} is deleted.`);
  },
};

async function askFirst(input: Input, world: World, id: string): Promise<void> {
  if (input.given("confirm")) return;
  const text = input.first();
  await requireYes(world, {
    question: `Delete the file ${id}, for good?`,
    undone: "Nothing was deleted",
    line: `relay files delete ${text} --confirm ${text}`,
  });
}

function findFileId(api: Api, text: string): Promise<string> {
  return wholeId(text, "files", (most, cursor) => api.page<FileView>("/files", {}, most, cursor));
}
