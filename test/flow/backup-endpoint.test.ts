/** The S3 endpoint can be set only where the server makes backups, which it does not on PostgreSQL. */
import { expect, test } from "bun:test";
import { startApi } from "../kit/api-server.ts";
import { ON_POSTGRES } from "../kit/chosen-store.ts";

test("an S3 endpoint is refused on PostgreSQL, whose own tools make the backups, and stored elsewhere", async () => {
  await using api = await startApi();
  const body = {
    endpoint: "https://s3.example.com",
    bucket: "backups",
    accessKeyId: "AKIATEST",
    secretAccessKey: "a-secret-access-key",
    passphrase: "correct horse battery staple",
    keep: 2,
  };
  const { status, json } = await api.call("/api/backups/copies", { method: "PUT", session: true, body });
  const stored = await api.store.read((tx) => tx.all("SELECT endpoint FROM backup_target"));
  if (ON_POSTGRES) {
    expect([status, json.code, stored]).toEqual([409, "backup_refused", []]);
    expect(json.message).toContain("pg_dump");
  } else expect([status, stored]).toEqual([200, [{ endpoint: body.endpoint }]]);
});
