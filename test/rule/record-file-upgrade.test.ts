/**
 * An upgrade from 0.10.0 with records whose texts only begin like a file's id. Both databases drop those references, keep real ones, and accept
 * longer texts.
 */
import { expect, test } from "bun:test";
import { UPGRADES } from "../kit/upgraded-store.ts";

/** The schema of 0.10.0. */
const BEFORE = 41;
const FILE_ID = `fil_${"0123456789abcdef".repeat(2)}`;
const LONG = `fil_${Array.from({ length: 4_000 }, () => String.fromCodePoint(0x2_0000 + Math.floor(Math.random() * 0xa000))).join("")}`;
const write = (id: string, data: object): string =>
  `INSERT INTO record (id, environment_id, collection, data, written_by, created_at, updated_at)
   VALUES ('${id}', 1, 'notes', '${JSON.stringify(data)}', 'sql', 1, 1)`;

test.each([...UPGRADES])("$on", async ({ open }) => {
  await using opened = await open(BEFORE, [
    write("rec_1", { file: FILE_ID, text: "fil_ing cabinet" }),
    write("rec_2", { text: `${FILE_ID} and more` }),
  ]);
  const { store } = opened;
  const known = () => store.read((tx) => tx.all("SELECT file_id AS file, record.id FROM record_file JOIN record ON seq = record_seq ORDER BY id"));
  expect(await known()).toEqual([{ file: FILE_ID, id: "rec_1" }]);
  await store.write("app", async (tx) => {
    await tx.run(write("rec_3", { text: LONG, file: FILE_ID }));
    await tx.run("UPDATE record SET data = ?1 WHERE id = 'rec_1'", JSON.stringify({ text: LONG }));
  });
  expect(await known()).toEqual([{ file: FILE_ID, id: "rec_3" }]);
});
