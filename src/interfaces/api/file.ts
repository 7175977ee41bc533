/**
 * Files of records. They are uploaded as raw bytes and always returned as a download, never as a page. A key acts as the app. The changes of an
 * owner are audited.
 */
import { Type } from "typebox";
import { MAX_FILE_BYTES } from "../../base/limit.ts";
import { fields } from "../../base/schema.ts";
import { deleteFile, fileView, listFiles, readFile, uploadFile, viewFile } from "../../shop/records/file.ts";
import { auditFile } from "../../shop/records/record-audit.ts";
import { appStorer, withinStorage } from "../../shop/records/record-budget.ts";
import { DATA_HEADERS } from "../http/answer.ts";
import { environmentRoute, listRoute } from "../http/route.ts";

export const fileRoutes = [
  listRoute({
    path: "/files",
    needs: "read",
    summary: "Lists files without their bytes, newest first.",
    item: fileView,
    list: (tx, { environmentId }, page) => listFiles(tx, environmentId, page),
  }),
  environmentRoute({
    method: "POST",
    path: "/files",
    needs: "edit_records",
    summary: "Stores the bytes of the body as a file. The content-type header is its media type.",
    query: fields({ name: Type.String({ description: "the file's name" }) }),
    rawBytes: MAX_FILE_BYTES,
    answer: Type.Object({ file: fileView }),
    status: 201,
    async write(tx, { deps, environmentId, actor, change, request, query, bytes: content, nowMs }) {
      const mediaType = request.headers.get("content-type");
      const upload = { environmentId, name: query.name, mediaType, content, nowMs };
      const row = await withinStorage(tx, appStorer(environmentId), deps.config.limits, () =>
        uploadFile(tx, upload),
      );
      if (actor.kind !== "key") await auditFile(tx, change, "file.uploaded", row);
      return { file: viewFile(row) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/files/:id",
    needs: "read_payloads",
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
    needs: "edit_records",
    summary: "Deletes a file that no record uses.",
    answer: null,
    async write(tx, { environmentId, actor, change, params }) {
      const row = await deleteFile(tx, environmentId, params.id);
      if (actor.kind !== "key") await auditFile(tx, change, "file.deleted", row);
    },
  }),
];
