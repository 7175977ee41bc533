/** `relay init`: a service folder with one working example, and editor settings that check definitions while they are written. */
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { writeJson } from "../ground/json.ts";
import { makeDefinitionSchema } from "../relay/definition-shape.ts";
import type { Command } from "./command.ts";
import { EXAMPLE_NAME, writeExample } from "./example.ts";
import { readServiceDir, SERVICE_DIR } from "./service-option.ts";
import { programWord, type World } from "./world.ts";

const SCHEMA_FILE = "relay.schema.json";

export const init: Command = {
  words: ["init"],
  summary: "write service/ with one working example relay, and editor settings",
  details: "Files that exist are left as they are; the schema is always this version's.",
  options: [SERVICE_DIR],
  async run(input, world) {
    const serviceDir = readServiceDir(input, world);
    const written = await writeExample(serviceDir);
    await mkdir(serviceDir, { recursive: true });
    const schemaFile = join(serviceDir, SCHEMA_FILE);
    await writeFile(schemaFile, `${writeJson(makeDefinitionSchema(), 2)}\n`);
    written.push(schemaFile);
    const settings = await writeEditorSettings(serviceDir, world);
    if (settings !== null) written.push(settings);
    for (const file of written) world.say(relative(world.cwd, file));
    world.tell("");
    const relay = programWord(world);
    world.tell(`Next: ${relay} dev receives, runs, and watches these files;`);
    world.tell(
      `then, from another terminal: ${relay} send ${EXAMPLE_NAME} posts a signed example event to it.`,
    );
    world.tell(
      `A page that you put into ${relative(world.cwd, serviceDir)}/public/ is served too, at /public/, to be tried with the client library.`,
    );
    return 0;
  },
};

/** Binds the schema to the definition files in the editor; tells how to, where settings exist already. */
async function writeEditorSettings(serviceDir: string, world: World): Promise<string | null> {
  const folder = relative(world.cwd, serviceDir).replaceAll("\\", "/");
  if (folder.startsWith("..")) return null;
  const binding = {
    "json.schemas": [{ fileMatch: [`/${folder}/relays/*.json`], url: `./${folder}/${SCHEMA_FILE}` }],
  };
  const file = join(world.cwd, ".vscode", "settings.json");
  if (existsSync(file)) {
    world.tell(
      `.vscode/settings.json exists; to have definitions checked in the editor, add ${JSON.stringify(binding)}`,
    );
    return null;
  }
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(binding, null, 2)}\n`, { flag: "wx" });
  return file;
}
