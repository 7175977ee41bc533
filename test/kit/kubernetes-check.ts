/**
 * Checks Kubernetes objects against the types of the Kubernetes API. TypeScript refuses an unknown field of an object literal, so a misspelled
 * field is found, which a server without strict validation would ignore.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { PATIENCE_MS } from "./patience.ts";

const PACKAGES = resolve(import.meta.dir, "../../node_modules");
/** The folders of the API's groups in the package with the types. */
const GROUPS: Readonly<Record<string, string>> = { v1: "core/v1", "networking.k8s.io/v1": "networking/v1" };

export interface KubernetesObject {
  apiVersion: string;
  kind: string;
}

/** Reads the objects of a YAML file. */
export function readObjects(file: string): KubernetesObject[] {
  const read = Bun.YAML.parse(readFileSync(file, "utf8"));
  return (Array.isArray(read) ? read : [read]) as KubernetesObject[];
}

/** Returns the errors of each list of objects. They are all checked in one run of the compiler. */
export function checkObjects(lists: readonly (readonly KubernetesObject[])[]): string[][] {
  const folder = mkdtempSync(join(tmpdir(), "relay-kubernetes-"));
  try {
    const names = lists.map((objects, at) => {
      const name = `list${at}.ts`;
      writeFileSync(join(folder, name), objects.map(writeLiteral).join(""));
      return name;
    });
    const options = [
      "--noEmit",
      "--strict",
      "--skipLibCheck",
      "--ignoreConfig",
      "--pretty",
      "false",
      "--moduleResolution",
      "bundler",
      "--module",
      "esnext",
    ];
    const { stdout } = Bun.spawnSync([join(PACKAGES, ".bin/tsc"), ...options, ...names], { cwd: folder, timeout: PATIENCE_MS });
    const lines = stdout.toString().split("\n");
    return names.map((name) => lines.filter((line) => line.startsWith(`${name}(`)).map((line) => line.slice(line.indexOf("error"))));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function writeLiteral(object: KubernetesObject, at: number): string {
  const types = join(PACKAGES, "kubernetes-types", GROUPS[object.apiVersion] ?? object.apiVersion);
  return `export const object${at}: import(${JSON.stringify(types)}).${object.kind} = ${JSON.stringify(object)};\n`;
}
