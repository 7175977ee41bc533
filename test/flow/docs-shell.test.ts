/** Runs the shell lines for a server's host that the pages show. The test machine's systemd and Docker follow the files of packaging/. */
import { expect, test } from "bun:test";
import { readManual } from "../../src/boot/documentation.ts";
import { listBlocks } from "../kit/docs-block.ts";
import { CALLER, DocsMachine } from "../kit/docs-machine.ts";
import { poll } from "../kit/patience.ts";

const lines = readManual().pages.flatMap(({ id, text }) =>
  listBlocks(id, text)
    .filter(({ tag }) => tag === "text shell")
    .flatMap((block) => block.text.split("\n").map((line) => ({ page: id, line }))),
);
const linesOf = (page: string): string[] => lines.filter((one) => one.page === page).map(({ line }) => line);

/** Names a copy as the downgrade page shows it. */
const COPY = "backups/before-migration-to-52.db";
const COPIES = [
  `sudo -u relay relay backup /var/lib/relay/${COPY} --data-dir /var/lib/relay`,
  `docker compose --file packaging/compose.yaml exec relay relay backup /data/${COPY}`,
];

interface Row {
  page: string;
  /** Holds the lines of other pages that must run first. */
  before: string[];
  /** Maps the beginning of a line to the output that it must print. */
  shown: [line: string, wanted: string][];
}

const ROWS: Row[] = [
  {
    page: "install-server",
    before: [],
    shown: [
      ["sudo journalctl -u relay", "Set-up     https://relay.example.com/setup#"],
      ["sudo -u relay relay apps create", "shop"],
      ["sudo -u relay relay keys create", "relay_live_"],
      ["sudo -u relay relay doctor", "data directory"],
    ],
  },
  {
    page: "docker",
    before: [],
    shown: [
      ["docker compose --file packaging/compose.yaml logs relay", "Set-up     https://relay.example.com/setup#"],
      ["docker compose --file packaging/compose.yaml exec relay relay keys create", "relay_live_"],
      ["docker compose --file packaging/compose.yaml exec relay relay doctor", "data directory"],
    ],
  },
  {
    page: "upgrade",
    before: [...linesOf("install-server"), ...linesOf("docker"), ...COPIES],
    shown: [
      ["sudo ls", "before-migration-"],
      ["sudo -u relay relay restore", "Restored 0 events"],
      ["docker compose --file packaging/compose.yaml run --rm relay restore", "Restored 0 events"],
    ],
  },
  {
    page: "off-site-backups",
    before: [...linesOf("install-server"), COPIES[0] ?? ""],
    shown: [
      ["sudo rsync", "before-migration-"],
      ["sudo -u relay relay restore", "Restored 0 events"],
    ],
  },
  {
    page: "trusted-proxy",
    before: linesOf("install-server"),
    shown: [
      ["curl", "404"],
      ["sudo -u relay relay requests list", ` ${CALLER} `],
    ],
  },
];

test.each(ROWS)("$page", async ({ page, before, shown }) => {
  await using machine = new DocsMachine();
  for (const line of before) await machine.run(line);
  const wanted = new Map(shown);
  for (const line of linesOf(page)) {
    const known = [...wanted].find(([begins]) => line.startsWith(begins));
    // The service stores a rejected request after its response.
    const isSaid = (said: string): boolean => known === undefined || said.includes(known[1]) || !line.includes(" list ");
    const said = await poll(() => machine.run(line), isSaid, 50);
    if (known === undefined) continue;
    expect([line, said]).toEqual([line, expect.stringContaining(known[1])]);
    wanted.delete(known[0]);
  }
  expect([...wanted.keys()]).toEqual([]);
});

/** Names the page with PostgreSQL's own programs, which no package provides. Other tests run its relay commands: move.test.ts and node.test.ts. */
const OF_POSTGRES = "postgres";

test("every page with such lines is run", () => {
  expect([...new Set(lines.map(({ page }) => page))].toSorted()).toEqual([...ROWS.map(({ page }) => page), OF_POSTGRES].toSorted());
  expect(lines.length).toBeGreaterThan(35);
});

const REFUSED: [name: string, before: string[], line: string, said: string][] = [
  ["a listing of the service's folder by another user", linesOf("install-server"), "ls /var/lib/relay/backups", "Permission denied"],
  ["a command as another user", linesOf("install-server"), "sudo relay doctor --data-dir /var/lib/relay", "may not read"],
  ["a missing unit file", ["sudo systemctl daemon-reload"], "sudo systemctl enable --now relay", "not found"],
  ["a missing user", [], "sudo install -d -m 750 -g relay /etc/relay", "invalid user"],
  [
    "compose without the domain",
    [],
    "docker compose --file packaging/compose.yaml logs relay",
    "write the domain that points at this machine into packaging/.env",
  ],
  [
    "a restore next to the running server",
    [...linesOf("install-server"), COPIES[0] ?? ""],
    `sudo -u relay relay restore /var/lib/relay/${COPY} --data-dir /var/lib/relay`,
    "ended with 1",
  ],
];

test.each(REFUSED)("the machine rejects %s", async (_name, before, line, said) => {
  await using machine = new DocsMachine();
  for (const one of before) await machine.run(one);
  expect(await machine.run(line).catch((error: Error) => error.message)).toContain(said);
});
