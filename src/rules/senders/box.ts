/** Box, by its pages on webhooks V2 and their signatures. */
import type { Sender } from "./sender.ts";

export const box: Sender = {
  name: "box",
  title: "Box",
  summary: "Tells of files and folders that were uploaded, changed, shared and deleted.",
  verify: { scheme: "box" },
  map: {
    event_id: "id",
    event_type: "trigger",
    file: "source.id",
    name: "source.name",
    by: "created_by.login",
  },
  when: { event_type: "FILE.UPLOADED" },
  personEmail: "created_by.login",
  secret: {
    from: "sender",
    where:
      "The Developer Console, the app’s Webhooks, Manage signature keys: the primary (or the secondary) key.",
  },
  register:
    "The Developer Console, the app’s Webhooks, Create webhook, V2: URL address, the folder or file, and the triggers.",
  example: {
    json: {
      type: "webhook_event",
      id: "0f59b1b8-3c2d-4b2e-9a3c-ec7f86a1c0de",
      created_at: "2026-01-15T04:00:00-08:00",
      trigger: "FILE.UPLOADED",
      webhook: { id: "386135533", type: "webhook" },
      created_by: { type: "user", id: "226067247", name: "Ada Lovelace", login: "ada@example.com" },
      source: {
        id: "73835521473",
        type: "file",
        name: "order.pdf",
        size: 26458,
        parent: { type: "folder", id: "2394823", name: "Orders" },
      },
      additional_info: [],
    },
  },
  eventTypes: [
    { type: "FILE.UPLOADED", meaning: "A file is new, or has a new version." },
    { type: "FILE.DELETED", meaning: "A file went to the bin." },
    { type: "FILE.DOWNLOADED", meaning: "Somebody downloaded a file." },
    { type: "FOLDER.CREATED", meaning: "A folder is new." },
    { type: "SIGN_REQUEST.COMPLETED", meaning: "Everybody has signed." },
  ],
  pitfalls: [
    "Without signature keys Box signs nothing, and every call is refused.",
    "Both keys sign each call; the one that is pasted here is enough.",
  ],
  docs: "https://developer.box.com/guides/webhooks/v2/signatures-v2/",
};
