/**
 * The container image, written from small files in place of the executables and the C library: its format, its settings and its files.
 * test/soak/image.test.ts runs a real one.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { rootCertificates } from "node:tls";
import { hashFile } from "../../scripts/release/checksums.ts";
import { readContainer } from "../../scripts/release/dockerfile.ts";
import { IMAGE_SYSTEMS, imageArchive, writeImage } from "../../scripts/release/image.ts";
import { ARCHITECTURES, type Libc } from "../../scripts/release/libc.ts";
import { executableFile } from "../../scripts/release/systems.ts";
import { readTar } from "../kit/tar.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const TIME = new Date("2026-05-06T07:08:09Z");
const place = mkdtempSync(join(tmpdir(), "relay-image-"));
afterAll(() => rmSync(place, { recursive: true }));

/** Makes the smallest executable that names libraries: one loaded segment, and in it the names and the list that refers to them. */
function makeExecutable(libraries: readonly string[]): Buffer {
  const [header, segment] = [64, 56];
  const list = Buffer.alloc((libraries.length + 2) * 16);
  const names = Buffer.from(`\0${libraries.map((name) => `${name}\0`).join("")}`);
  let offset = 1;
  for (const [at, name] of libraries.entries()) {
    list.writeBigUInt64LE(1n, at * 16);
    list.writeBigUInt64LE(BigInt(offset), at * 16 + 8);
    offset += name.length + 1;
  }
  const address = 0x20_0000;
  const start = header + 2 * segment;
  list.writeBigUInt64LE(5n, libraries.length * 16);
  list.writeBigUInt64LE(BigInt(address + start + list.length), libraries.length * 16 + 8);
  const head = Buffer.alloc(start);
  head.write("\x7fELF\x02\x01", "latin1");
  head.writeBigUInt64LE(BigInt(header), 32);
  head.writeUInt16LE(segment, 54);
  head.writeUInt16LE(2, 56);
  const rows = [
    [1, 0, address, start + list.length + names.length],
    [2, start, address + start, list.length],
  ] as const;
  for (const [row, [kind, at, where, length]] of rows.entries()) {
    head.writeUInt32LE(kind, header + row * segment);
    head.writeBigUInt64LE(BigInt(at), header + row * segment + 8);
    head.writeBigUInt64LE(BigInt(where), header + row * segment + 16);
    head.writeBigUInt64LE(BigInt(length), header + row * segment + 32);
  }
  return Buffer.concat([head, list, names]);
}

function makeLibc(folder: string, loader: string): Libc {
  const file = (path: string) => ({ path, mode: 0o644, content: path });
  return {
    control: `Package: libc6\nArchitecture: ${folder}\n`,
    files: [
      ...["libc.so.6", "libm.so.6", "libnsl.so.1", "ld-linux.so.2"].map((name) => file(`lib/${folder}/${name}`)),
      file("usr/share/doc/libc6/copyright"),
      { path: loader.slice(1), mode: 0o777, content: null, link: `/lib/${folder}/ld-linux.so.2` },
    ],
  };
}

const [X64 = "", ARM64 = ""] = IMAGE_SYSTEMS.map((system) => system.libc?.loader);
const libc = { amd64: makeLibc("x86", X64), arm64: makeLibc("arm", ARM64) };

async function writeAll(name: string, libraries = ["libc.so.6", "ld-linux.so.2", "libm.so.6"]): Promise<{ out: string; paths: string[] }> {
  const out = join(place, name);
  mkdirSync(out, { recursive: true });
  for (const system of IMAGE_SYSTEMS) writeFileSync(join(out, executableFile(system)), makeExecutable(libraries));
  return { out, paths: await writeImage({ built: out, out, version: "1.2.3", time: TIME, libc }) };
}

// biome-ignore lint/suspicious/noExplicitAny: JSON of the OCI format
type Any = any;
const { out, paths } = await writeAll("first");
const layout = join(out, "image");
const blobPath = (digest: string): string => join(layout, "blobs", digest.replace(":", "/"));
const readBlob = (digest: string): Any => JSON.parse(readFileSync(blobPath(digest), "utf8"));
const [outer] = JSON.parse(readFileSync(join(layout, "index.json"), "utf8")).manifests as [Any];
const manifests = readBlob(outer.digest).manifests as Any[];

test("the layout and an archive for each architecture are written", () => {
  expect(paths.map((path) => basename(path))).toEqual(["image", "relay-image-amd64.tar", "relay-image-arm64.tar"]);
  expect(JSON.parse(readFileSync(join(layout, "oci-layout"), "utf8"))).toEqual({ imageLayoutVersion: "1.0.0" });
  expect(manifests.map(({ platform }) => platform)).toEqual([
    { os: "linux", architecture: "amd64" },
    { os: "linux", architecture: "arm64" },
  ]);
});

test("every blob has the digest and the size that refer to it, and none is left over", () => {
  const described = [outer, ...manifests.flatMap((one) => [one, readBlob(one.digest).config, ...readBlob(one.digest).layers])] as Any[];
  for (const { digest, size } of described) {
    expect([`sha256:${hashFile(blobPath(digest))}`, readFileSync(blobPath(digest)).length]).toEqual([digest, size]);
  }
  const named = new Set(described.map(({ digest }) => digest.slice("sha256:".length)));
  expect(readdirSync(join(layout, "blobs/sha256")).toSorted()).toEqual([...named].toSorted());
});

test("a second folder gets the same bytes", async () => {
  const second = await writeAll("second");
  expect(second.paths.slice(1).map(hashFile)).toEqual(paths.slice(1).map(hashFile));
  expect(readFileSync(join(second.out, "image/index.json"), "utf8")).toBe(readFileSync(join(layout, "index.json"), "utf8"));
});

describe.each(["amd64", "arm64"] as const)("the image for %s", (architecture) => {
  const manifest = readBlob(manifests.find(({ platform }) => platform.architecture === architecture).digest);
  const config = readBlob(manifest.config.digest);
  const layers = manifest.layers.map(({ digest }: Any) => readFileSync(blobPath(digest))) as Buffer<ArrayBuffer>[];

  test("has the settings of the Dockerfile", () => {
    expect(config).toMatchObject({ architecture, os: "linux", created: TIME.toISOString() });
    const { Labels, ...settings } = config.config;
    expect(settings).toEqual({
      User: "65532:65532",
      Env: ["PATH=/usr/local/bin:/usr/bin:/bin", "RELAY_DATA_DIR=/data", "RELAY_HOST=0.0.0.0", "RELAY_PORT=4747", "BUN_JSC_useFTLJIT=0"],
      Entrypoint: ["/usr/local/bin/relay"],
      Cmd: ["serve"],
      WorkingDir: "/data",
      Volumes: { "/data": {} },
      ExposedPorts: { "4747/tcp": {} },
      StopSignal: "SIGTERM",
      Healthcheck: {
        Test: ["CMD", "/usr/local/bin/relay", "ready"],
        Interval: 10_000_000_000,
        Timeout: 6_000_000_000,
        StartPeriod: 30_000_000_000,
        Retries: 3,
      },
    });
    expect(Labels).toMatchObject({ "org.opencontainers.image.version": "1.2.3", "org.opencontainers.image.licenses": "MIT" });
  });

  test("names its layers by the digests of their archives", () => {
    const digests = layers.map((layer) => `sha256:${new Bun.CryptoHasher("sha256").update(Bun.gunzipSync(layer)).digest("hex")}`);
    expect(config.rootfs).toEqual({ type: "layers", diff_ids: digests });
    expect(config.history.length).toBe(digests.length);
  });

  test("has only what the executable needs, and lets its user write only to the volume and to /tmp", async () => {
    const entries = (await Promise.all(layers.map(readTar))).map((layer) =>
      layer.map(({ name, mode, owner, link }) => `${mode} ${owner} ${name} ${link}`.trim()),
    );
    const [folder, loader] = architecture === "amd64" ? ["x86", X64] : ["arm", ARM64];
    const isFile = (line: string): boolean => !line.endsWith("/");
    expect(entries.map((layer) => layer.filter(isFile))).toEqual([
      [
        "644 0:0 etc/group",
        "644 0:0 etc/nsswitch.conf",
        "644 0:0 etc/os-release",
        "644 0:0 etc/passwd",
        "644 0:0 etc/ssl/certs/ca-certificates.crt",
        ...[
          ...["ld-linux.so.2", "libc.so.6", "libm.so.6"].map((name) => `644 0:0 lib/${folder}/${name}`),
          `777 0:0 ${loader.slice(1)} /lib/${folder}/ld-linux.so.2`,
        ].toSorted((one, other) => Number(one.slice(8) > other.slice(8)) - Number(one.slice(8) < other.slice(8))),
        "644 0:0 usr/share/doc/libc6/copyright",
        "644 0:0 var/lib/dpkg/status.d/libc6",
      ],
      ["755 0:0 usr/local/bin/relay", "644 0:0 usr/share/doc/relay-service/copyright"],
    ]);
    const folders = entries.flat().filter((line) => !isFile(line) && !line.startsWith("755 0:0 "));
    expect(folders).toEqual(["700 65532:65532 data/", "1777 0:0 tmp/"]);
  });

  test("knows its user and the public authorities", async () => {
    const [base = []] = await Promise.all(layers.map(readTar));
    const text = Object.fromEntries(base.map((entry) => [entry.name, entry.text]));
    expect(text["etc/passwd"]).toContain("\nrelay:x:65532:65532:relay:/data:/sbin/nologin\n");
    expect(text["etc/ssl/certs/ca-certificates.crt"]?.match(/BEGIN CERTIFICATE/g)?.length).toBe(rootCertificates.length);
    expect(text["var/lib/dpkg/status.d/libc6"]).toContain("Package: libc6\n");
  });

  test("is in its archive, also for older versions of Docker", async () => {
    const entries = await readTar(readFileSync(join(out, imageArchive(architecture))));
    const bytes = new Map(entries.map((entry) => [entry.name, entry.bytes]));
    const json = (name: string): Any => JSON.parse(bytes.get(name)?.toString() ?? "");
    const [only] = json("index.json").manifests;
    expect(only.annotations).toEqual({
      "io.containerd.image.name": "docker.io/library/relay-service:1.2.3",
      "org.opencontainers.image.ref.name": "1.2.3",
    });
    const inside = (digest: string): string => `blobs/${digest.replace(":", "/")}`;
    expect(json(inside(only.digest))).toEqual(manifest);
    expect(json("manifest.json")).toEqual([
      { Config: inside(manifest.config.digest), RepoTags: ["relay-service:1.2.3"], Layers: manifest.layers.map(({ digest }: Any) => inside(digest)) },
    ]);
    for (const { digest, size } of [only, manifest.config, ...manifest.layers]) expect(bytes.get(inside(digest))?.length).toBe(size);
  });
});

test("an executable that needs another library is refused", async () => {
  const writes = writeAll("refused", ["libc.so.6", "libstdc++.so.6"]);
  await expect(writes).rejects.toThrow("needs libstdc++.so.6, which the C library does not have");
});

test.each([
  ["RUN chmod 755 /data", 'The Dockerfile has the line "RUN chmod 755 /data"'],
  ["USER", 'The Dockerfile has the line "USER"'],
])("the line %s in the last stage is refused, because the image would differ", (line, said) => {
  const dockerfile = readFileSync(join(PROJECT_ROOT, "packaging/Dockerfile"), "utf8");
  expect(() => readContainer(`${dockerfile}${line}\n`)).toThrow(said);
});

test("every architecture of the table has a system", () => {
  expect(IMAGE_SYSTEMS.map(({ cpu }) => ARCHITECTURES[cpu])).toEqual(["amd64", "arm64"]);
});
