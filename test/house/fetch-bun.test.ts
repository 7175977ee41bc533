/** Checks that a lock file has the hash of each Bun that a release contains, and that other bytes are refused. */
import { expect, test } from "bun:test";
import packageJson from "../../package.json";
import { checkIntegrity, requireLockedBun } from "../../scripts/release/fetch-bun.ts";
import { RELEASED } from "../../scripts/release/systems.ts";

test.each(RELEASED.map(({ target }) => target))("a lock file has the hash of %s, in the version of package.json", (target) => {
  const { name, version, integrity } = requireLockedBun(target);
  expect({ name, version }).toEqual({
    name: `@oven/${target.replace("arm64", "aarch64")}`,
    version: packageJson.dependencies.bun,
  });
  expect(Buffer.from(integrity.slice("sha512-".length), "base64")).toHaveLength(64);
});

test("a Bun that no lock file names is refused with what to do", () => {
  expect(() => requireLockedBun("bun-linux-riscv64")).toThrow("scripts/release/bun/package.json");
});

test("the locked bytes pass, and other bytes are refused", () => {
  const bytes = new TextEncoder().encode("the package");
  const integrity = `sha512-${new Bun.CryptoHasher("sha512").update(bytes).digest("base64")}`;
  const locked = { name: "@oven/bun-x", version: "1.0.0", integrity };
  expect(() => checkIntegrity(bytes, locked)).not.toThrow();
  expect(() => checkIntegrity(bytes.slice(1), locked)).toThrow("Do not use this registry");
});
