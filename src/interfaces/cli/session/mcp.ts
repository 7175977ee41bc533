/**
 * Runs the connector on stdin and stdout, one message per line (`relay mcp`). It forwards each message to the service's own `{E}/mcp`, so a
 * tool works as it does over HTTP.
 */
import { type Json, writeJson } from "../../../base/json.ts";
import { readObject } from "../api/api.ts";
import { requireServerOrService } from "../api/connect.ts";
import { postText, type Remote } from "../api/remote.ts";
import { ANYWHERE } from "../api/target.ts";
import type { Command, Input } from "../command.ts";
import type { Io } from "../io.ts";
import { describeError, docsOf, pointersOf } from "../refusal-text.ts";

/** The JSON-RPC code for a refusal of the server itself. */
const REFUSED = -32_000;
const NOT_JSON = -32_700;

export const mcp: Command = {
  words: ["mcp"],
  summary: "connect an assistant (MCP)",
  details:
    "The command runs the connector for editors and assistants on standard input and output. It connects to the service on the data directory or to a server. The tools list and read relays, events, requests, problems, people, the catalog, senders and the documentation. They validate, explain and compare. They also send a test event, play a step of a customer's life with a selling kit, replay one event or many, pause and resume. If the setting connector.saves is on, they save relays and the catalog. --read-only offers only the tools that change nothing.",
  options: [
    { name: "read-only", env: "RELAY_MCP_READ_ONLY", help: "offer only tools that change nothing" },
    ...ANYWHERE,
  ],
  examples: [
    "relay mcp --read-only",
    "relay mcp --profile shop-production --read-only",
    "RELAY_URL=https://relay.example.com RELAY_KEY=relay_live_… relay mcp",
  ],
  async run(input, io) {
    let remote = await find(input, io);
    const open = new Set<Promise<void>>();
    for await (const line of io.inputLines()) {
      if (line.trim() === "") continue;
      const passed = passOn(line, remote, input, io).then((next) => {
        remote = next;
      });
      open.add(passed);
      void passed.finally(() => open.delete(passed));
    }
    await Promise.all(open);
  },
};

function find(input: Input, io: Io): Promise<Remote> {
  return requireServerOrService(input, io, "relay mcp", { writes: !input.on("read-only") });
}

/** Answers one message and never throws. Returns the service for the next message, because a restarted one may have another address. */
async function passOn(line: string, remote: Remote, input: Input, io: Io): Promise<Remote> {
  const { id, method } = readObject(line);
  const reject = (code: number, message: string, data: Json): void => {
    if (id !== undefined || method === undefined)
      io.print(writeJson({ jsonrpc: "2.0", id: id ?? null, error: { code, message, data } }));
  };
  if (method === undefined && id === undefined) {
    reject(NOT_JSON, "The line is not a JSON-RPC message: write one JSON object on each line.", null);
    return remote;
  }
  try {
    const path = `${remote.place}/mcp${input.on("read-only") ? "?readOnly=true" : ""}`;
    const { status, text } = await postText(remote, path, line);
    const answer = readObject(text);
    if (answer.jsonrpc !== undefined) io.print(writeJson(answer));
    else if (status >= 300)
      reject(REFUSED, String(answer.message ?? `The service answered ${status}.`), answer);
    else if (id !== undefined)
      reject(REFUSED, "The answer of the service is not a JSON-RPC message: check its address.", answer);
    return remote;
  } catch (error) {
    const { code, message } = describeError(error);
    const docs = docsOf(code, pointersOf(input), io);
    reject(REFUSED, message, { code, message, docs });
    return await find(input, { ...io, inform: () => undefined }).catch(() => remote);
  }
}
