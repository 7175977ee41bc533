/**
 * The life of the Debian package on a copy of this machine that only this test sees: dpkg installs it and runs its scripts, and the service runs as its
 * user. No systemd runs in the copy. Its systemctl works only for the files of units. It records a start, a restart and a stop, and does nothing.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { debFile, debVersion, writeDebs } from "../../scripts/release/deb.ts";
import { readManifest, readReleaseTime } from "../../scripts/release/release.ts";
import { executableFile, RELEASED } from "../../scripts/release/systems.ts";
import { type CliProcess, startCli } from "../kit/cli-process.ts";
import { copyExecutable } from "../kit/executable-build.ts";
import { lacksNamespaces, type MountNamespace, startNamespace } from "../kit/mount-namespace.ts";
import { tellNotRun } from "../kit/not-run.ts";
import { TEST_MS } from "../kit/patience.ts";

const { version } = readManifest();
/** A version after every real one. */
const NEXT = "99.0.0";
const system = RELEASED.find(({ os, cpu, libc }) => os === "linux" && cpu === process.arch && libc?.name === "glibc");

const LIFE = "the life of the Debian package";
const canLive =
  system !== undefined &&
  !lacksNamespaces(LIFE, ["dpkg", "systemctl", "systemd-sysusers", "systemd-tmpfiles", "deb-systemd-helper", "deb-systemd-invoke"]) &&
  hasPackages(["systemd", "init-system-helpers", "libc6"]);

function hasPackages(names: readonly string[]): boolean {
  const missing = names.filter((name) => Bun.spawnSync(["dpkg-query", "--show", name]).exitCode !== 0);
  if (missing.length > 0) tellNotRun(LIFE, `this machine has no package ${missing.join(" and no ")}`);
  return missing.length === 0;
}

const place = mkdtempSync(join(tmpdir(), "relay-deb-"));
const root = join(place, "root");

/** Makes the copy: changes go to memory. Its systemctl passes on what needs no running systemd, which is everything with --root. */
const SETUP = `
mount -t tmpfs tmpfs "${place}/memory"
mkdir "${place}/memory/changes" "${place}/memory/work"
mount -t overlay overlay -o "lowerdir=/,upperdir=${place}/memory/changes,workdir=${place}/memory/work" "${root}"
mount --rbind /proc "${root}/proc"
mount --rbind /dev "${root}/dev"
mkdir -p "${root}/run/systemd/system" "${root}/debs"
mount --bind "${place}/debs" "${root}/debs"
mv "${root}/usr/bin/systemctl" "${root}/usr/bin/systemctl.real"
cat > "${root}/usr/bin/systemctl" <<'END'
#!/bin/sh
case "$*" in
  --root=*) exec systemctl.real "$@" ;;
  *is-enabled*) exec systemctl.real --root=/ is-enabled relay.service ;;
  *is-active*) test -e /active ;;
  *restart*relay.service) echo restart >> /calls; touch /active ;;
  *start*relay.service) echo start >> /calls; touch /active ;;
  *stop*relay.service) echo stop >> /calls; rm -f /active ;;
  *) echo "$@" >> /calls ;;
esac
END
printf '#!/bin/sh\\nexit 0\\n' > "${root}/usr/sbin/policy-rc.d"
chmod 755 "${root}/usr/bin/systemctl" "${root}/usr/sbin/policy-rc.d"
rm -rf "${root}/etc/relay" "${root}/var/lib/relay"
`;

/** Lists the places of this machine where an installation would show. */
function listPlaces(): string[] {
  return ["/etc/relay", "/var/lib/relay", "/usr/bin/relay", "/var/lib/dpkg/info/relay-service.list"].filter((path) => existsSync(path));
}
const before = listPlaces();

let machine: MountNamespace;

beforeAll(async () => {
  if (!canLive) return;
  for (const folder of ["root", "memory", "debs", "built"]) mkdirSync(join(place, folder));
  copyExecutable(join(place, "built", executableFile(system)), "relay");
  for (const one of [version, NEXT]) {
    const out = join(place, "debs", one);
    mkdirSync(out);
    await writeDebs({ built: join(place, "built"), out, systems: [system], version: one, time: readReleaseTime(), repository: null });
  }
  machine = await startNamespace(SETUP, root);
}, TEST_MS);

afterAll(async () => {
  if (canLive) await machine[Symbol.asyncDispose]();
  rmSync(place, { recursive: true });
});

interface Answer {
  code: number;
  said: string;
}

/** Runs a command on the copy. `said` has both of its outputs. */
async function run(...command: string[]): Promise<Answer> {
  const env = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C.UTF-8", DEBIAN_FRONTEND: "noninteractive" };
  const child = Bun.spawn([...machine.enter(), ...command], { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [said, told, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { code, said: `${said}${told}` };
}

async function mustRun(...command: string[]): Promise<string> {
  const { code, said } = await run(...command);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${said}`);
  return said;
}

const install = (one: string): Promise<string> =>
  mustRun("dpkg", "--install", "--force-confold", `/debs/${one}/${system === undefined ? "" : debFile(system)}`);

/** Returns what systemctl was asked since the last call of this function. */
async function takeCalls(): Promise<string[]> {
  return (await mustRun("sh", "-c", "touch /calls; cat /calls; rm /calls")).split("\n").filter((line) => line !== "");
}

/** Returns the kind, the permissions and the owner of a path, or that it is missing. */
async function look(path: string): Promise<string> {
  const { code, said } = await run("stat", "--format=%F %a %U:%G", path);
  return code === 0 ? said.trim() : "missing";
}

/** The words that run a command as the unit does: as its user, with its variables, in its folder. */
async function asUnit(): Promise<{ prefix: string[]; line: string[] }> {
  const unit = await mustRun("cat", "/usr/lib/systemd/system/relay.service");
  const field = (name: string): string => new RegExp(`^${name}=(.*)$`, "m").exec(unit)?.[1] ?? "";
  const settings = await mustRun("cat", field("EnvironmentFile"));
  const variables = [...settings.split("\n"), field("Environment")].filter((text) => /^RELAY_\w+=/.test(text));
  const user = ["setpriv", `--reuid=${field("User")}`, `--regid=${field("Group")}`, "--clear-groups", "--no-new-privs", "--"];
  const [program = "", ...line] = field("ExecStart").split(" ");
  return { prefix: ["/usr/bin/env", "-i", `--chdir=${field("WorkingDirectory")}`, ...variables, ...user, program], line };
}

async function startUnit(): Promise<CliProcess> {
  const { prefix, line } = await asUnit();
  const server = startCli(line, { cwd: place, command: [...machine.enter(), ...prefix] });
  await server.line("Listening");
  return server;
}

async function stopUnit(server: CliProcess): Promise<void> {
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
}

const relay = async (...words: string[]): Promise<string> => await mustRun(...(await asUnit()).prefix, ...words);
const isEnabled = async (): Promise<boolean> => (await look("/etc/systemd/system/multi-user.target.wants/relay.service")) !== "missing";

/** Adds a test that continues where the one before it ended. */
function step(name: string, continues: () => Promise<void>): void {
  if (canLive) test(name, continues);
}

step("an installation makes the user, the folders and the settings, and starts the service", async () => {
  await install(version);
  expect(await mustRun("id", "--user", "--name", "relay")).toBe("relay\n");
  expect(await look("/var/lib/relay")).toBe("directory 700 relay:relay");
  expect(await look("/etc/relay/relay.env")).toBe("regular file 640 root:relay");
  expect(await isEnabled()).toBe(true);
  expect(await takeCalls()).toEqual(["--system daemon-reload", "start"]);
  expect(await mustRun("relay", "--version")).toBe(`${version}\n`);
});

step("systemd accepts the installed unit", async () => {
  const { code, said } = await run("systemd-analyze", "verify", "/usr/lib/systemd/system/relay.service");
  expect([code, said.split("\n").filter((line) => line.includes("relay.service"))]).toEqual([0, []]);
});

step("the service runs as its user, only on this machine, and stores data", async () => {
  // Other tests may use the usual port.
  await mustRun("sh", "-c", "echo RELAY_PORT=0 >> /etc/relay/relay.env");
  const server = await startUnit();
  expect(await server.line("Listening")).toMatch(/ http:\/\/127\.0\.0\.1:\d+$/);
  expect(await relay("apps", "create", "My shop", "--id", "shop")).toContain("shop");
  expect(await look("/var/lib/relay/relay.db")).toBe("regular file 600 relay:relay");
  await stopUnit(server);
});

step("an upgrade restarts the service, and keeps the data and the changed settings", async () => {
  const server = await startUnit();
  await takeCalls();
  await install(NEXT);
  expect(await mustRun("dpkg-query", "--show", "relay-service")).toBe(`relay-service\t${debVersion(NEXT)}\n`);
  expect(await takeCalls()).toEqual(["--system daemon-reload", "restart"]);
  await stopUnit(server);
  expect(await mustRun("cat", "/etc/relay/relay.env")).toContain("RELAY_PORT=0");
  const next = await startUnit();
  expect(await relay("apps", "list")).toContain("shop");
  await stopUnit(next);
});

step("a service that the administrator disabled stays disabled after an upgrade and a way back", async () => {
  await mustRun("systemctl", "stop", "relay.service");
  await mustRun("systemctl", "--root=/", "disable", "relay.service");
  await takeCalls();
  await install(version);
  await install(NEXT);
  expect([await isEnabled(), (await takeCalls()).filter((call) => call.includes("start"))]).toEqual([false, []]);
  await mustRun("systemctl", "--root=/", "enable", "relay.service");
});

step("a removal stops the service, and keeps the settings and the data", async () => {
  await takeCalls();
  await mustRun("dpkg", "--remove", "relay-service");
  expect(await takeCalls()).toEqual(["stop", "--system daemon-reload"]);
  expect(await look("/usr/bin/relay")).toBe("missing");
  expect(await look("/etc/relay/relay.env")).toBe("regular file 640 root:relay");
  expect(await look("/var/lib/relay/relay.db")).toBe("regular file 600 relay:relay");
});

step("an installation after a removal continues with the data", async () => {
  await install(version);
  const server = await startUnit();
  expect(await relay("apps", "list")).toContain("shop");
  await stopUnit(server);
});

step("a purge removes the settings and the state of the unit, and says where the data is", async () => {
  const said = await mustRun("dpkg", "--purge", "relay-service");
  expect(said).toContain("The data of Relay is still in /var/lib/relay. To delete it: rm -r /var/lib/relay");
  expect(await look("/etc/relay")).toBe("missing");
  expect(await look("/var/lib/relay/relay.db")).toBe("regular file 600 relay:relay");
  expect(await isEnabled()).toBe(false);
});

step("a purge without data removes the data directory", async () => {
  await mustRun("rm", "-r", "/var/lib/relay");
  await install(version);
  expect(await look("/var/lib/relay")).toBe("directory 700 relay:relay");
  await mustRun("dpkg", "--purge", "relay-service");
  expect(await look("/var/lib/relay")).toBe("missing");
});

step("an installation says that systemd prefers a unit that was installed by hand", async () => {
  const unit = "/etc/systemd/system/relay.service";
  await mustRun("sh", "-c", `echo '[Service]' > ${unit}`);
  expect(await install(version)).toContain(`To use the package: rm ${unit} && systemctl daemon-reload && systemctl restart relay`);
  await mustRun("rm", unit);
  expect(await install(version)).not.toContain("installed by hand");
  await mustRun("dpkg", "--purge", "relay-service");
});

/** The tags that Debian's own checker gives the package, each with the reason why it stays. */
const KNOWN_TAGS: Readonly<Record<string, string>> = {
  "bogus-mail-host": "the project has no address",
  "bogus-mail-host-in-debian-changelog": "the project has no address",
  "embedded-library": "Bun contains its libraries",
  "hardening-no-pie": "Bun is linked so",
  "hardening-no-relro": "Bun is linked so",
  "initial-upload-closes-no-bugs": "the package is not for Debian's archive",
  "no-manual-page": "relay help has the manual",
  "unstripped-binary-or-object": "the program is after the end of Bun's own sections, and strip would remove it",
};

const lintian = Bun.which("lintian");
if (lintian === null) tellNotRun("lintian on the Debian package", "this machine has no lintian");
else if (canLive)
  test("lintian finds only what is known", async () => {
    const file = join(place, "debs", version, debFile(system));
    const child = Bun.spawn([lintian, "--allow-root", "--tag-display-limit", "0", file], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    const lines = (await new Response(child.stdout).text()).split("\n").filter((line) => /^[EW]: /.test(line));
    expect(lines.filter((line) => KNOWN_TAGS[line.split(" ")[2] ?? ""] === undefined)).toEqual([]);
    expect(lines.length).toBeGreaterThan(0);
  });

test("this machine is unchanged", () => {
  expect(listPlaces()).toEqual(before);
});
