/** The approval page that a command opens when a scripted server sends one. */
import { afterAll, expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { SYSTEM } from "../../src/base/system.ts";
import { Remote } from "../../src/interfaces/cli/api/remote.ts";
import type { Input } from "../../src/interfaces/cli/command.ts";
import type { Io } from "../../src/interfaces/cli/io.ts";
import { carryLive } from "../../src/interfaces/cli/sync/live.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

let named = "";
let state = "denied";
let decidedBy: string | null = null;
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(request) {
    if (request.url.endsWith("/apply")) {
      state = "expired";
      return Response.json({ code: "approval_expired", message: "Expired." }, { status: 409 });
    }
    const approval = { id: "apr_1", app: "shop", url: named, state, why: null, secondsLeft: 600, decidedBy };
    return Response.json({ approval }, { status: 201 });
  },
});
afterAll(() => server.stop(true));

test.each([
  ["https://relay.example.com/approvals/apr_1", true],
  ["http://127.0.0.1:4747/approvals/apr_1", true],
  ["javascript:alert(1)", false],
  ["file:///etc/passwd", false],
  ["data:text/html,<script>alert(1)</script>", false],
  ["relay.example.com/approvals/apr_1", false],
  ["", false],
])("--open of an approval at %j: opened %j", async (url, isOpened) => {
  named = url;
  const { code, opened, told } = await carry();
  expect(code).toBe(3);
  expect(opened).toEqual(isOpened ? [url] : []);
  expect(told.some((line) => line.includes("not a web address"))).toBe(!isOpened);
});

test.each([
  ["approved", "owner:ann@example.com", "An owner approved, but the approval expired before the command could apply the plan"],
  ["expired", "owner:ann@example.com", "An owner approved, but the approval expired before the command could apply the plan"],
  ["expired", null, "No owner approved within 10 minutes"],
])("an approval that is %s by %j and is applied too late exits with 4 and says why", async (now, by, words) => {
  named = "https://relay.example.com/approvals/apr_1";
  [state, decidedBy] = [now, by];
  const { code, told } = await carry();
  expect([code, told.join("\n")]).toEqual([4, expect.stringContaining(words)]);
  expect(told.join("\n")).not.toContain("could not be withdrawn");
});

async function carry(): Promise<{ code: unknown; opened: string[]; told: string[] }> {
  const opened: string[] = [];
  const told: string[] = [];
  const io = {
    clock: new VirtualClock(Date.UTC(2030, 0, 1)),
    cwd: tmpdir(),
    env: { RELAY_DOCS_URL: "https://relay.example.com" },
    system: SYSTEM,
    untilStopped: (over: AbortSignal) => new Promise<void>((resolve) => over.addEventListener("abort", () => resolve())),
    openBrowser: (link: string) => {
      opened.push(link);
      return Promise.resolve(true);
    },
    inform: (text: string) => void told.push(text),
  } as unknown as Io;
  const origin = `http://127.0.0.1:${server.port}`;
  const remote = new Remote({ url: origin, app: "shop", environment: "production", key: "sk", profile: null });
  const change = {
    sent: {},
    decided: { plan: { plan: "p", entries: [] }, replaceEdited: false },
    serviceDir: ".",
    requireSame: () => Promise.resolve(),
  } as unknown as Parameters<typeof carryLive>[1];
  const input = { on: (name: string) => name === "open" } as unknown as Input;
  return { code: await carryLive(remote, change, input, io), opened, told };
}
