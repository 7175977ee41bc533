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
import type { Io } from "../io.ts";
import { count } from "../sync/plan-lines.ts";
import { requireSame, requireYes } from "../terminal/confirm.ts";
import { expandId } from "../terminal/id-suffix.ts";
import { LIMIT, SINCE } from "../terminal/listing.ts";
import { printList } from "../terminal/terminal.ts";

const FILE_ID = { name: "file id", help: "the id (or its ending) as relay files list shows it" };

export const filesList: Command = {
  words: ["files", "list"],
  summary: "list stored files, newest first",
  options: [SINCE, LIMIT, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay files list --since 7d"],
  async run(input, io) {
    const time = { of: (one: FileView) => one.createdAt, ordered: true };
    const files = await listItems<FileView>(input, io, "/files", {}, time);
    await printList(input, io, files, {
      columns: [
        { heading: "STORED", value: (one) => one.createdAt },
        { heading: "ID", value: (one) => one.id },
        { heading: "BYTES", value: (one) => String(one.bytes), right: true },
        { heading: "TYPE", value: (one) => one.mediaType },
        { heading: "NAME", value: (one) => one.name, raw: true },
      ],
      none: "No files are stored here.",
    });
  },
};

export const filesUpload: Command = {
  words: ["files", "upload"],
  summary: "store a file for a field of a record",
  details:
    "Each run stores a new file and prints its id. Write the id into a record's field of type file with relay records set. Without a file argument, the command reads standard input, and --name gives the file its name.",
  arguments: [
    { name: "file", help: "a file on this machine; if absent, standard input", optional: true, of: "file" },
  ],
  options: [
    { name: "name", value: "<name>", otherwise: "the file's own", help: "the name of the stored file" },
    {
      name: "type",
      value: "<media type>",
      otherwise: "from the extension of the name",
      help: "the media type, such as image/png",
    },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay files upload invoice.pdf", "relay files upload --name note.txt < note.txt"],
  async run(input, io) {
    const path = input.positionals[0];
    const name = input.text("name") ?? (path === undefined ? null : basename(path));
    if (name === null)
      throw new UsageError(
        "--name is missing, and standard input has no name: add --name note.txt, or name a file.",
      );
    const content = await readBytes(io, path);
    const mediaType = input.text("type") ?? Bun.file(name).type;
    const file = await withApi<FileView>("write", input, io, async (api) => {
      const path = `/files?name=${encodeURIComponent(name)}`;
      const asked = api.request<{ file: FileView }>("POST", path, content, mediaType);
      const { file } = await asked.catch((error) => {
        if (error instanceof CommandFailure && !(error instanceof NothingSent))
          io.inform(
            "The answer was lost, so the file may or may not be stored. Check with relay files list.",
          );
        throw error;
      });
      return file;
    });
    if (input.on("json")) io.print(writeJson({ file }, 2));
    io.inform(
      `${file.name} is stored as ${file.id} (${count(file.bytes, "byte")}, ${file.mediaType}). To attach it to a record, write this id into a field of type file.`,
    );
  },
};

async function readBytes(io: Io, path: string | undefined): Promise<Uint8Array> {
  if (path === undefined) {
    if (io.interactive)
      throw new UsageError(
        "The command would read the file from standard input, which is the terminal. Name a file: relay files upload invoice.pdf.",
      );
    const bytes = await io.readInputBytes();
    requireFileSize(bytes.byteLength);
    return bytes;
  }
  const absolute = resolve(io.cwd, path);
  const found = await stat(absolute).catch(() => null);
  if (found === null || !found.isFile())
    throw new CommandFailure("not_found", `There is no file ${path}: name a file that exists.`);
  requireFileSize(found.size);
  return await readFile(absolute);
}

interface Fetched {
  id: string;
  name: string;
  mediaType: string;
  content: Uint8Array;
}

export const filesDownload: Command = {
  words: ["files", "download"],
  summary: "download a stored file",
  details: "The command never overwrites a file.",
  arguments: [FILE_ID],
  options: [
    {
      name: "to",
      value: "<file>",
      otherwise: "the name of the stored file, in this folder",
      help: "the file to write",
      of: "file",
    },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay files download 7c44d0b1", "relay files download 7c44d0b1 --to invoice.pdf"],
  async run(input, io) {
    const text = input.first();
    const { content, ...file } = await withApi<Fetched>("read", input, io, async (api) => {
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
    const to = resolve(io.cwd, input.text("to") ?? basename(file.name));
    await writeFile(to, content, { flag: "wx" }).catch((error: NodeJS.ErrnoException) => {
      throw rejectUnwritten(to, error);
    });
    const { id, name, mediaType } = file;
    if (input.on("json"))
      io.print(writeJson({ file: { id, name, mediaType, bytes: content.byteLength }, to }, 2));
    io.inform(`${name} is written to ${to} (${count(content.byteLength, "byte")}).`);
  },
};

function rejectUnwritten(to: string, { code }: NodeJS.ErrnoException): CommandFailure {
  return code === "EEXIST"
    ? new CommandFailure(
        "in_use",
        `${to} exists already, so nothing was written: name another file with --to.`,
      )
    : new CommandFailure("invalid_input", `${to} cannot be written (${code}): name another file with --to.`);
}

export const filesDelete: Command = {
  words: ["files", "delete"],
  summary: "permanently delete a file that no record uses",
  arguments: [FILE_ID],
  options: [
    {
      name: "confirm",
      value: "<file id>",
      help: "the file id again: deletes without a question",
    },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay files delete 7c44d0b1 --confirm 7c44d0b1"],
  async run(input, io) {
    const text = input.first();
    requireSame(input, "file", text);
    const deleted = await withApi<string>("write", input, io, async (api) => {
      const id = await findFileId(api, text);
      await askFirst(input, io, id);
      await api.command("DELETE", `/files/${encodeURIComponent(id)}`);
      return id;
    });
    if (input.on("json")) io.print(writeJson({ deleted }, 2));
    io.inform(`The file ${deleted} is deleted.`);
  },
};

async function askFirst(input: Input, io: Io, id: string): Promise<void> {
  if (input.given("confirm")) return;
  const text = input.first();
  await requireYes(io, {
    question: `Permanently delete the file ${id}?`,
    undone: "Nothing was deleted",
    line: `relay files delete ${text} --confirm ${text}`,
  });
}

function findFileId(api: Api, text: string): Promise<string> {
  return expandId(text, "files", (most, cursor) => api.page<FileView>("/files", {}, most, cursor));
}
