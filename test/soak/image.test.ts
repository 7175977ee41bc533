/**
 * A real container image: the tools of other projects read it, and the service runs from its unpacked root, which is read-only, as the user of the
 * image. It starts, becomes healthy, handles a signed request, and stops. Docker is not needed.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { IMAGE_SYSTEMS, imageArchive, writeImage } from "../../scripts/release/image.ts";
import { ARCHITECTURES, fetchLibc, type Libc } from "../../scripts/release/libc.ts";
import { readManifest, readReleaseTime } from "../../scripts/release/release.ts";
import { executableFile } from "../../scripts/release/systems.ts";
import { startCli } from "../kit/cli-process.ts";
import { copyExecutable } from "../kit/executable-build.ts";
import { lacksNamespaces, startNamespace } from "../kit/mount-namespace.ts";
import { callApi, type Tenant } from "../kit/node.ts";
import { tellNotRun } from "../kit/not-run.ts";
import { poll, TEST_MS } from "../kit/patience.ts";
import { HOOK_SECRET, receiverDefinition, signedCall } from "../kit/relay-definition.ts";
import { readTar } from "../kit/tar.ts";

const { version } = readManifest();
const place = mkdtempSync(join(tmpdir(), "relay-image-"));
afterAll(() => rmSync(place, { recursive: true }));

const system = IMAGE_SYSTEMS.find(({ os, cpu }) => os === process.platform && cpu === process.arch);
const libc = await findLibc();

/** Fetches the C library. Returns null and says so if this machine cannot. */
async function findLibc(): Promise<Record<"amd64" | "arm64", Libc> | null> {
  const what = "the container image";
  if (system === undefined) tellNotRun(what, "this machine is not a Linux that the image has");
  else {
    const folder = join(place, "libc");
    mkdirSync(folder);
    try {
      return await fetchLibc(folder);
    } catch (error) {
      tellNotRun(what, `its C library could not be fetched. ${(error as Error).message.split("\n")[0]?.replace(/\.$/, "")}`);
    }
  }
  return null;
}

test.each([
  ["a machine without apt", [], 1, "image: This machine has no apt-get. Build the image on Debian, or in a container of it.\n"],
  ["an unknown option", ["--push"], 2, "Use --out <folder> for another folder than dist.\n"],
])("the command refuses %s and says what to do", (_what, words, code, said) => {
  const command = [process.execPath, "scripts/image.ts", "--out", join(place, "refused"), ...words];
  const { exitCode, stderr } = Bun.spawnSync(command, { cwd: join(import.meta.dir, "../.."), env: { PATH: place } });
  expect([exitCode, stderr.toString()]).toEqual([code, expect.stringContaining(said)]);
});

if (system !== undefined && libc !== null) {
  const architecture = ARCHITECTURES[system.cpu];
  const layout = join(place, "image");
  const archive = join(place, imageArchive(architecture));

  beforeAll(async () => {
    copyExecutable(join(place, executableFile(system)), "relay");
    await writeImage({ built: place, out: place, version, time: readReleaseTime(), libc, systems: [system] });
  }, TEST_MS);

  // biome-ignore lint/suspicious/noExplicitAny: JSON of the OCI format
  type Any = any;
  const readJson = (path: string): Any => JSON.parse(readFileSync(join(layout, path), "utf8"));
  const readBlob = ({ digest }: { digest: string }): Any => readJson(`blobs/${digest.replace(":", "/")}`);

  /** Reads the only manifest, and the settings in its configuration. */
  function readImage(): { manifest: Any; settings: Any } {
    const manifest = readBlob(readBlob(readJson("index.json").manifests[0]).manifests[0]);
    return { manifest, settings: readBlob(manifest.config).config };
  }

  function run(...command: string[]): string {
    const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: place });
    if (exitCode !== 0) throw new Error(`${command.join(" ")} ended with ${exitCode}: ${stderr}`);
    return stdout.toString();
  }

  const skopeo = Bun.which("skopeo");
  if (skopeo === null) tellNotRun("skopeo on the container image", "this machine has no skopeo");
  else
    describe("skopeo", () => {
      test.each([
        ["the layout", `oci:${layout}`],
        ["the archive", `oci-archive:${archive}`],
        ["the archive as an older Docker reads it", `docker-archive:${archive}`],
      ])("reads and copies %s, and compares every digest", (what, source) => {
        expect(JSON.parse(run(skopeo, "inspect", source))).toMatchObject({ Architecture: architecture, Os: "linux" });
        const { config } = JSON.parse(run(skopeo, "inspect", "--config", source));
        expect(config).toMatchObject({ User: "65532:65532", Entrypoint: ["/usr/local/bin/relay"], Cmd: ["serve"] });
        const copy = join(place, `copy of ${what}`);
        run(skopeo, "copy", "--insecure-policy", source, `dir:${copy}`);
        expect(readdirSync(copy)).toContain("manifest.json");
      });
    });

  const umoci = Bun.which("umoci");
  if (umoci === null) tellNotRun("umoci on the container image", "this machine has no umoci");
  else
    test("umoci unpacks the archive with the permissions of its files", async () => {
      const from = join(place, "for umoci");
      for (const { name, bytes } of await readTar(readFileSync(archive))) {
        if (name.endsWith("/")) continue;
        mkdirSync(dirname(join(from, name)), { recursive: true });
        writeFileSync(join(from, name), bytes);
      }
      const bundle = join(place, "bundle");
      run(umoci, "unpack", "--rootless", "--image", `${from}:${version}`, bundle);
      const mode = (path: string): string => (statSync(join(bundle, "rootfs", path)).mode & 0o7777).toString(8);
      expect(["usr/local/bin/relay", "data", "tmp", "etc/passwd"].map(mode)).toEqual(["755", "700", "1777", "644"]);
      const config = JSON.parse(readFileSync(join(bundle, "config.json"), "utf8"));
      expect(config.process.args).toEqual(["/usr/local/bin/relay", "serve"]);
    });

  /** Unpacks the layers as a container runtime does. Its own mounts need two more folders. */
  async function unpack(root: string): Promise<void> {
    for (const layer of readImage().manifest.layers)
      for (const { name, mode, owner, link, bytes } of await readTar(readFileSync(join(layout, "blobs", layer.digest.replace(":", "/"))))) {
        const path = join(root, name);
        if (link !== "") symlinkSync(link, path);
        else {
          if (name.endsWith("/")) mkdirSync(path, { recursive: true });
          else writeFileSync(path, bytes);
          const [user = 0, group = 0] = owner.split(":").map(Number);
          chownSync(path, user, group);
          chmodSync(path, Number.parseInt(mode, 8));
        }
      }
    for (const name of ["proc", "dev"]) mkdirSync(join(root, name));
  }

  if (!lacksNamespaces("the service in the container image"))
    test("the service runs from the read-only root as its user, handles a signed request, and stops", async () => {
      const [root, data] = [join(place, "root"), join(place, "data")];
      for (const folder of [root, data]) mkdirSync(folder);
      await unpack(root);
      const { settings } = readImage();
      const [user = 0, group = 0] = settings.User.split(":").map(Number);
      chownSync(data, user, group);
      chmodSync(data, 0o700);
      const mounts = [
        `mount --bind "${root}" "${root}"`,
        `mount -o remount,bind,ro "${root}"`,
        `mount --bind "${data}" "${root}/data"`,
        `mount -t tmpfs tmpfs "${root}/tmp"`,
        `mount --rbind /proc "${root}/proc"`,
        `mount --rbind /dev "${root}/dev"`,
      ];
      await using namespace = await startNamespace(mounts.join("\n"), root);
      const inContainer = (port: number): string[] => {
        const variables = [...settings.Env, `RELAY_PORT=${port}`, "HOME=/data"];
        return ["env", "-i", ...variables, ...["setpriv", "--no-new-privs", "--"], ...namespace.enter(settings.User)];
      };
      const exec = async (port: number, ...command: string[]): Promise<{ code: number; said: string }> => {
        const child = Bun.spawn([...inContainer(port), ...command], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
        const [said, told, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
        return { code, said: `${said}${told}` };
      };
      const [, ...health] = settings.Healthcheck.Test as string[];

      await using server = startCli([], { cwd: place, command: [...inContainer(0), ...settings.Entrypoint, ...settings.Cmd] });
      const port = Number(/:(\d+)$/.exec(await server.line("Listening"))?.[1]);
      expect(
        await poll(
          () => exec(port, ...health),
          ({ code }) => code === 0,
        ),
      ).toEqual({ code: 0, said: "ready\n" });

      const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
      expect([/^Uid:\s+(\d+)/m, /^CapEff:\s+(\w+)/m, /^NoNewPrivs:\s+(\d)/m].map((line) => line.exec(status)?.[1])).toEqual([
        String(user),
        "0".repeat(16),
        "1",
      ]);

      // As with docker exec: the name of the program is found on the PATH of the image.
      const program = "/usr/local/bin/relay";
      await exec(port, program, "apps", "create", "My shop", "--id", "shop");
      const { said } = await exec(port, program, "keys", "create", "--app", "shop", "--environment", "development", "--name", "backend");
      const tenant: Tenant = { app: "shop", name: "development", id: 0, key: /relay_\w+/.exec(said)?.[0] ?? "" };
      const node = { service: { url: `http://127.0.0.1:${port}` } };
      await callApi(node, tenant, "PUT", "/access/club", {});
      const definition = receiverDefinition({
        map: { event_id: "id", person_email: "email" },
        actions: [{ type: "grant_access", entitlement: "access:club" }],
      });
      await callApi(node, tenant, "POST", "/relays", { definition, secret: HOOK_SECRET });
      const request = signedCall({ id: "evt_1", email: "ada@example.com" });
      expect((await fetch(`${node.service.url}/hooks/shop/orders`, { method: "POST", ...request })).status).toBe(200);
      const access = async (): Promise<Any> =>
        await callApi(node, tenant, "GET", "/persons/access/access:club?email=ada@example.com").catch(() => null);
      expect(await poll(access, (answer) => answer?.granted === true)).toMatchObject({ granted: true });

      // The image has the root certificates that PostgreSQL's sslrootcert=system asks for, so only the server is missing.
      const away = "postgres://relay:pass@127.0.0.1:9/relay?sslmode=verify-full&sslrootcert=system";
      expect((await exec(port, program, "doctor", "--database", away, "--data-dir", "/data/other")).said).toContain("no server accepts connections");

      expect(await exec(port, program, "apps", "create", "Other", "--id", "other", "--data-dir", "/etc/relay")).toMatchObject({ code: 1 });
      expect(readdirSync(join(root, "etc"))).not.toContain("relay");
      expect(readdirSync(data)).toContain("relay.db");
      expect(statSync(join(data, "relay.db")).uid).toBe(user);
      server.kill(settings.StopSignal);
      expect(await server.exited).toBe(0);
      expect((await exec(port, ...health)).code).toBe(1);
    });
}
