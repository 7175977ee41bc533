/** The Kubernetes examples fit the types of the Kubernetes API, the program and the image. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json";
import { LIMIT_WORDS } from "../../src/base/limit-text.ts";
import { LEAVE_MS } from "../../src/boot/readiness.ts";
import { findCommand } from "../../src/interfaces/cli/line/parse.ts";
import { COMMANDS } from "../../src/interfaces/cli/registry.ts";
import { END_WITHIN_MS } from "../../src/interfaces/cli/server/serve.ts";
import { checkObjects, type KubernetesObject, readObjects } from "../kit/kubernetes-check.ts";

const ROOT = join(import.meta.dir, "../..");
/** The two kinds of servers. restore.yaml is a job for the first kind. */
const SERVERS = ["sqlite.yaml", "postgres.yaml"];
const FILES = [...SERVERS, "restore.yaml"];
const examples = FILES.map((name) => readObjects(join(ROOT, "packaging/kubernetes", name)));
const dockerfile = readFileSync(join(ROOT, "packaging/Dockerfile"), "utf8");

// biome-ignore lint/suspicious/noExplicitAny: YAML of any shape
type Any = any;
const workloadOf = (objects: readonly KubernetesObject[]): Any => objects.find(({ kind }) => kind === "StatefulSet" || kind === "Deployment");

/** Copies an object and changes the copy. */
function change(object: KubernetesObject, edit: (copy: Any) => void): KubernetesObject {
  const copy = structuredClone(object);
  edit(copy);
  return copy;
}

const set = workloadOf(examples[0] ?? []);
const WRONG: [what: string, object: KubernetesObject, said: string][] = [
  [
    "a misspelled field of a container",
    change(set, (copy) => {
      copy.spec.template.spec.containers[0].readinesProbe = {};
    }),
    "readinesProbe\"' does not exist",
  ],
  [
    "a field at the wrong level",
    change(set, (copy) => {
      copy.spec.securityContext = { runAsNonRoot: true };
    }),
    "securityContext\"' does not exist",
  ],
  [
    "a number as text",
    change(set, (copy) => {
      copy.spec.replicas = "1";
    }),
    "'string' is not assignable to type 'number'",
  ],
  [
    "a missing field",
    change(set, (copy) => {
      delete copy.spec.selector;
    }),
    "'selector' is missing",
  ],
  [
    "a version of the API that does not have the kind",
    change(set, (copy) => {
      copy.apiVersion = "policy/v1";
    }),
    "no exported member 'StatefulSet'",
  ],
];
const errors = checkObjects([...examples, ...WRONG.map(([, object]) => [object])]);

test.each(FILES.map((name, at) => [name, at] as const))("%s has only fields of the Kubernetes API", (_name, at) => {
  expect(examples[at]?.length).toBeGreaterThan(0);
  expect(errors[at]).toEqual([]);
});

test.each(WRONG.map(([what, , said], at) => [what, said, FILES.length + at] as const))("the check finds %s", (_what, said, at) => {
  expect(errors[at]?.join("\n")).toContain(said);
});

describe.each(SERVERS.map((name, at) => [name, examples[at] ?? []] as const))("%s", (_name, objects) => {
  const { template } = workloadOf(objects).spec;
  const pod = template.spec;
  const container = pod.containers[0];
  const env = new Map<string, Any>(container.env.map((one: Any) => [one.name, one]));

  test("sets variables that relay serve reads, and secrets only from the Secret", () => {
    const known = new Set([
      ...(findCommand(["serve"], COMMANDS)?.command.options ?? []).flatMap(({ env: name }) => name ?? []),
      ...Object.values(LIMIT_WORDS).map(({ variable }) => variable),
      "RELAY_MASTER_KEY",
    ]);
    expect([...env.keys()].filter((name) => !known.has(name))).toEqual([]);
    for (const name of ["RELAY_MASTER_KEY", "RELAY_DATABASE"].filter((one) => env.has(one)))
      expect(Object.keys(env.get(name))).toEqual(["name", "valueFrom"]);
    // The server creates this folder for itself, and relay doctor warns of one that others can read.
    expect(env.get("RELAY_DATA_DIR").value).toBe(`${container.volumeMounts[0].mountPath}/relay`);
    // Kubernetes would set RELAY_PORT for a Service named relay.
    expect(pod.enableServiceLinks).toBe(false);
  });

  test("runs as the user of the image, writes only to volumes, and has no rights", () => {
    const [, user, group] = /^USER (\d+):(\d+)$/m.exec(dockerfile) ?? [];
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: Number(user),
      runAsGroup: Number(group),
      fsGroup: Number(group),
      seccompProfile: { type: "RuntimeDefault" },
    });
    expect(container.securityContext).toEqual({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } });
    expect(pod.automountServiceAccountToken).toBe(false);
    expect(container.volumeMounts.map((one: Any) => one.mountPath)).toEqual([/^VOLUME (\S+)$/m.exec(dockerfile)?.[1], "/tmp"]);
    expect(container.command ?? container.args).toBeUndefined();
  });

  test("asks routes of the server on its port, and gives a stop enough time", () => {
    expect(container.ports).toEqual([{ name: "http", containerPort: Number(/^EXPOSE (\d+)$/m.exec(dockerfile)?.[1]) }]);
    const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe].map(({ httpGet }) => httpGet);
    expect(probes).toEqual(["/healthz", "/healthz", "/readyz"].map((path) => ({ path, port: "http" })));
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan((LEAVE_MS + END_WITHIN_MS) / 1_000 + 5);
  });

  test("names the image of this version, and selects its own pods", () => {
    expect(container.image).toEndWith(`/relay-service:${packageJson.version}`);
    const labels = template.metadata.labels;
    const selectors = (objects as Any[]).flatMap(({ spec }) => spec.selector?.matchLabels ?? spec.podSelector?.matchLabels ?? spec.selector ?? []);
    expect(selectors).toEqual(objects.map(() => labels));
  });
});

test("SQLite has one server, and PostgreSQL keeps all nodes during an update", () => {
  expect(set.spec).toMatchObject({ replicas: 1, volumeClaimTemplates: [{ metadata: { name: "data" } }] });
  const { spec } = workloadOf(examples[1] ?? []);
  expect([spec.replicas, spec.strategy.rollingUpdate]).toEqual([2, { maxSurge: 1, maxUnavailable: 0 }]);
  const budget = examples[1]?.find(({ kind }) => kind === "PodDisruptionBudget") as Any;
  expect(budget.spec.minAvailable).toBe(1);
});

test("the restore uses the volume, the user and the variables of the SQLite server", () => {
  const [job] = examples[2] as [Any];
  const server = set.spec.template.spec;
  const pod = job.spec.template.spec;
  const [container, of] = [pod.containers[0], server.containers[0]];
  const nameOf = (image: string): string => image.slice(0, image.lastIndexOf(":"));
  expect([pod.securityContext, container.securityContext, container.volumeMounts, nameOf(container.image)]).toEqual([
    server.securityContext,
    of.securityContext,
    of.volumeMounts,
    nameOf(of.image),
  ]);
  expect(of.env).toEqual(expect.arrayContaining(container.env));
  expect(pod.volumes[0].persistentVolumeClaim.claimName).toBe(`data-${set.metadata.name}-0`);
  const { command, rest } = findCommand(container.args, COMMANDS) ?? {};
  expect([command?.words, rest]).toEqual([["restore"], [expect.stringContaining("/data/relay/backups/before-migration-to-")]]);
  // The Service must not send requests to the job.
  expect(job.spec.template.metadata.labels).not.toMatchObject(set.spec.selector.matchLabels);
});
