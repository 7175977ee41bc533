/**
 * Writes the container image without Docker: a folder in the OCI layout with both architectures, and an archive for each of them that Docker and
 * Podman load. The image has two layers: what the executable needs, and the executable. It has no shell and no other program.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ContainerSettings, readContainer } from "./dockerfile.ts";
import { listBase, listProgram } from "./image-root.ts";
import { ARCHITECTURES, type Architecture, type Libc } from "./libc.ts";
import { gzip, makeTar, type PackedFile, withFolders } from "./pack.ts";
import { git, PROJECT, readManifest, readRepository } from "./release.ts";
import { executableFile, RELEASED, type ReleasedSystem } from "./systems.ts";

/** The systems of the image: Linux with the GNU C library. */
export const IMAGE_SYSTEMS: readonly ReleasedSystem[] = RELEASED.filter(({ libc }) => libc?.name === "glibc");

const NAME = "relay-service";
const TYPES = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar+gzip",
} as const;

interface Target {
  /** The folder with the executables of a release. */
  built: string;
  /** The folder for the layout `image` and the archives. */
  out: string;
  version: string;
  /** The time of every file and of the image. */
  time: Date;
  /** The C library of each architecture. */
  libc: Readonly<Record<Architecture, Libc>>;
  /** The systems whose executables are in `built`. */
  systems?: readonly ReleasedSystem[];
}

/** Refers to a blob, as the OCI format does. */
interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
  platform?: { os: string; architecture: string };
  annotations?: Record<string, string>;
}

/** The content of an image by its digest. */
class Blobs {
  readonly bytes = new Map<string, Uint8Array>();

  add(mediaType: string, content: Uint8Array | object): Descriptor {
    const bytes = content instanceof Uint8Array ? content : Buffer.from(JSON.stringify(content));
    const digest = hash(bytes);
    this.bytes.set(digest, bytes);
    return { mediaType, digest, size: bytes.length };
  }

  files(): PackedFile[] {
    return [...this.bytes].map(([digest, content]) => ({ path: blobPath(digest), mode: 0o644, content }));
  }
}

function hash(bytes: Uint8Array): string {
  return `sha256:${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}`;
}

function blobPath(digest: string): string {
  return `blobs/${digest.replace(":", "/")}`;
}

/** Writes the layout and the archives, and returns their paths: the layout first. */
export async function writeImage({
  built,
  out,
  version,
  time,
  libc,
  systems = IMAGE_SYSTEMS,
}: Target): Promise<string[]> {
  const layout = join(out, "image");
  rmSync(layout, { recursive: true, force: true });
  const all = new Blobs();
  const manifests: Descriptor[] = [];
  const archives: string[] = [];
  for (const system of systems) {
    const architecture = ARCHITECTURES[system.cpu];
    const executable = readFileSync(join(built, executableFile(system)));
    const blobs = new Blobs();
    const layers = [
      await makeLayer(
        listBase({ system, executable, libc: libc[architecture], settings: readSettings() }),
        time,
      ),
      await makeLayer(listProgram(executable), time),
    ];
    const config = blobs.add(TYPES.config, makeConfig({ architecture, layers, version, time }));
    const layerDescriptors = layers.map(({ packed }) => blobs.add(TYPES.layer, packed));
    const manifest = blobs.add(TYPES.manifest, {
      schemaVersion: 2,
      mediaType: TYPES.manifest,
      config,
      layers: layerDescriptors,
    });
    const described = { ...manifest, platform: { os: "linux", architecture } };
    const archive = join(out, imageArchive(architecture));
    const files = [
      ...listLayout([named(described, version)]),
      ...blobs.files(),
      {
        path: "manifest.json",
        mode: 0o644,
        content: JSON.stringify([forDocker(config, layerDescriptors, version)]),
      },
    ];
    writeFileSync(archive, await makeTar(withFolders(files), time));
    archives.push(archive);
    manifests.push(described);
    for (const [digest, bytes] of blobs.bytes) all.bytes.set(digest, bytes);
  }
  const index = all.add(TYPES.index, { schemaVersion: 2, mediaType: TYPES.index, manifests });
  for (const { path, content } of [...listLayout([named(index, version)]), ...all.files()]) {
    mkdirSync(join(layout, path, ".."), { recursive: true });
    writeFileSync(join(layout, path), content ?? "");
  }
  return [layout, ...archives];
}

/** Returns the name of the archive of one architecture. */
export function imageArchive(architecture: Architecture): string {
  return `relay-image-${architecture}.tar`;
}

/** Adds the names of the image for the programs that read them from an archive or a layout. */
function named(descriptor: Descriptor, version: string): Descriptor {
  const annotations = {
    "io.containerd.image.name": `docker.io/library/${NAME}:${version}`,
    "org.opencontainers.image.ref.name": version,
  };
  return { ...descriptor, annotations };
}

function listLayout(manifests: readonly Descriptor[]): { path: string; mode: number; content: string }[] {
  const index = { schemaVersion: 2, mediaType: TYPES.index, manifests };
  return [
    { path: "oci-layout", mode: 0o644, content: JSON.stringify({ imageLayoutVersion: "1.0.0" }) },
    { path: "index.json", mode: 0o644, content: JSON.stringify(index) },
  ];
}

/** Describes the image for `docker load` of versions that do not read the OCI layout. */
function forDocker(config: Descriptor, layers: readonly Descriptor[], version: string): object {
  return {
    Config: blobPath(config.digest),
    RepoTags: [`${NAME}:${version}`],
    Layers: layers.map(({ digest }) => blobPath(digest)),
  };
}

interface Layer {
  /** The digest of the archive before its compression. */
  diff: string;
  packed: Uint8Array;
}

async function makeLayer(files: readonly PackedFile[], time: Date): Promise<Layer> {
  const tar = await makeTar(withFolders(files), time);
  return { diff: hash(tar), packed: gzip(tar) };
}

interface ConfigParts {
  architecture: Architecture;
  layers: readonly Layer[];
  version: string;
  time: Date;
}

function makeConfig({ architecture, layers, version, time }: ConfigParts): object {
  const manifest = readManifest();
  const repository = readRepository(manifest);
  const created = time.toISOString();
  const revision = git("rev-parse", "HEAD");
  const labels = {
    "org.opencontainers.image.title": NAME,
    "org.opencontainers.image.description": manifest.description,
    "org.opencontainers.image.version": version,
    "org.opencontainers.image.licenses": manifest.license,
    "org.opencontainers.image.created": created,
    ...(repository === null ? {} : { "org.opencontainers.image.source": repository }),
    ...(revision === null ? {} : { "org.opencontainers.image.revision": revision }),
  };
  return {
    created,
    architecture,
    os: "linux",
    config: { ...readSettings(), Labels: labels },
    rootfs: { type: "layers", diff_ids: layers.map(({ diff }) => diff) },
    history: ["the C library, certificates and users", "the executable"].map((comment) => ({
      created,
      created_by: "npm run image",
      comment,
    })),
  };
}

function readSettings(): ContainerSettings {
  return readContainer(readFileSync(join(PROJECT, "packaging/Dockerfile"), "utf8"));
}
