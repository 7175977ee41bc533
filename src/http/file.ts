/** Files that records may hold: uploaded as raw bytes, always handed out as a download, never as a page. */
import { Type } from "typebox";
import { MAX_FILE_BYTES } from "../ground/limit.ts";
import { readPageRequest } from "../ground/page.ts";
import { fields, pageOf, pageQuery } from "../ground/schema.ts";
import { deleteFile, fileView, listFiles, readFile, uploadFile, viewFile } from "../records/file.ts";
import { withinStorage } from "../records/record-budget.ts";
import { DATA_HEADERS } from "./answer.ts";
import { environmentRoute } from "./route.ts";

export const fileRoutes = [
  environmentRoute({
    method: "GET",
    path: "/files",
    summary: "Lists files without their bytes, newest first.",
    query: fields(pageQuery),
    answer: pageOf(fileView),
    handle({ deps, environment, query }) {
      const page = readPageRequest(query);
      return deps.store.read((tx) => listFiles(tx, environment.id, page));
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/files",
    summary: "Keeps the body's bytes as a file; its media type is the content-type header's.",
    query: fields({ name: Type.String({ description: "the file's name" }) }),
    rawBytes: MAX_FILE_BYTES,
    answer: Type.Object({ file: fileView }),
    status: 201,
    async handle({ deps, environment, origin, request, query, bytes, nowMs }) {
      const upload = {
        environmentId: environment.id,
        name: query.name,
        mediaType: request.headers.get("content-type"),
        content: bytes,
        nowMs,
      };
      const storer = { environmentId: environment.id, personId: null };
      const row = await deps.store.write(origin, (tx) =>
        withinStorage(tx, storer, deps.config.limits, () => uploadFile(tx, upload)),
      );
      return { file: viewFile(row) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/files/:id",
    summary: "Downloads a file's bytes.",
    answer: Type.String(),
    async handle({ deps, environment, params }) {
      const found = await deps.store.read((tx) => readFile(tx, environment.id, params.id));
      return new Response(new Uint8Array(found.content), {
        headers: {
          ...DATA_HEADERS,
          "cache-control": "private, no-store",
          "content-type": found.mediaType,
          "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(found.name)}`,
        },
      });
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/files/:id",
    summary: "Deletes a file that no record holds.",
    answer: null,
    async handle({ deps, environment, origin, params }) {
      await deps.store.write(origin, (tx) => deleteFile(tx, environment.id, params.id));
      return undefined;
    },
  }),
];
