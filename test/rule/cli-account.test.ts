/** The apps, keys and admin commands on a data directory: what they print to stdout for scripts, and secrets they print once. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { requireMode } from "../../src/boot/open-data.ts";
import { createApp } from "../../src/platform/account/app.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { makeAuthority } from "../kit/certificate.ts";
import { type CommandResult, runCommand } from "../kit/cli-io.ts";
import { refusalOf } from "../kit/fresh-store.ts";
import { startMailServer } from "../kit/mail-server.ts";
import { type OidcDouble, startOidcProvider } from "../kit/oidc-provider.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

const cwd = mkdtempSync(join(tmpdir(), "relay-cli-"));
afterAll(() => rmSync(cwd, { recursive: true }));

const run = (line: string, input = ""): Promise<CommandResult> => runCommand(line.split(" "), { cwd, input });

test("without a data directory, the message says how to name one", async () => {
  const { code, said, told } = await run("keys list");
  expect({ code, said }).toEqual({ code: 1, said: "" });
  expect(told).toMatch(/There is no data directory at .*--data-dir/);
});

test("refuses a data directory that is a file, in one sentence", async () => {
  writeFileSync(join(cwd, "a-file"), "");
  const { code, told } = await run("apps create Shop --data-dir a-file");
  expect(code).toBe(1);
  expect(told).toMatch(/a-file is a file, but the data directory must be a folder: move the file away, or name another folder/);
});

describe("members", () => {
  const data = ["--data-dir", join(cwd, "members")];
  const command = (line: string) => runCommand([...line.split(" "), ...data], { cwd });
  beforeAll(async () => {
    await command("apps create Shop");
    await command("admin create --email ann@example.com");
  });

  test("are invited with a role in a place, changed and removed", async () => {
    const invited = await command("members invite kim@example.com --role support:shop/production --payloads");
    expect(invited.said).toMatch(/\/reset#/);
    const list = async () => JSON.parse((await command("members list --json")).said).items as { email: string; memberships: object[] }[];
    expect((await list())[1]).toMatchObject({
      email: "kim@example.com",
      memberships: [{ app: "shop", environment: "production", role: "support", payloads: true }],
    });
    expect((await command("members change kim@example.com --role developer:shop --role viewer")).told).toContain(
      "kim@example.com is now: developer:shop, viewer.",
    );
    expect((await command("members list")).said).toContain("viewer, developer:shop");
    expect((await command("members remove kim@example.com")).told).toContain("kim@example.com is not a member any more.");
    expect(await list()).toHaveLength(1);
  });

  test("get their link by mail, which the command does not print, and a new one with resend", async () => {
    const mails = await startMailServer({ security: "none", authority: makeAuthority("members") });
    const mailUrl = `smtp://127.0.0.1:${mails.port}?from=relay@example.com`;
    const mailed = (line: string, ...more: string[]) =>
      runCommand([...line.split(" "), ...data, ...more], { cwd, clock: systemClock, env: { RELAY_MAIL_URL: mailUrl } });
    const invite = "members invite max@example.com --role viewer";
    const sent = await mailed(invite, "--allow-private", "127.0.0.1");
    expect([sent.code, sent.said]).toEqual([0, ""]);
    expect(sent.told).toContain("The link went to max@example.com by mail. It works once, until ");
    expect(mails.taken[0]?.raw).toContain("An owner invites you");
    const list = async () => (await mailed("members list")).said;
    expect(await list()).toContain("invited, mail sent");
    const failed = await mailed("members resend max@example.com");
    expect([failed.code, failed.told.includes("its address is not public")]).toEqual([0, true]);
    expect(failed.said).toMatch(/\/reset#/);
    expect(await list()).toContain("invited, mail failed");
    const printed = await mailed("members resend max@example.com", "--no-mail", "--json");
    expect(JSON.parse(printed.said)).toMatchObject({ email: "max@example.com", link: expect.stringContaining("/reset#"), mail: null });
    expect(mails.taken).toHaveLength(1);
    const known = await mailed("members resend nobody@example.com");
    expect(known.told).toContain("There is no member nobody@example.com");
    await command("members remove max@example.com");
  });

  const REFUSED: readonly [line: string, told: string][] = [
    ["members invite kim@example.com", "--role is missing"],
    ["members invite kim@example.com --role admin", "no known role"],
    ["members invite lee@example.com --role viewer:none", "memberships names none, which does not exist"],
    ["members invite ann@example.com --role viewer", "exists"],
    ["members change ann@example.com --role viewer", "the last owner of everything"],
    ["members remove ann@example.com", "the last owner of everything"],
    ["members remove nobody@example.com", "There is no member nobody@example.com"],
    ["keys create --app shop --environment development --scope approve", "no key can have"],
    ["keys create --app shop --environment development --scope nothing", "is no permission"],
  ];
  test.each(REFUSED)("%s is refused", async (line, told) => {
    const result = await command(line);
    expect(result.code).not.toBe(0);
    expect(result.told).toContain(told);
  });
});

describe("the OpenID provider", () => {
  const data = ["--data-dir", join(cwd, "provider")];
  const SECRET = "s3cr3t-0f-the-c1ient";
  const command = (line: string, env: Record<string, string> = {}) => runCommand([...line.split(" "), ...data], { cwd, env, clock: systemClock });
  let provider: OidcDouble;
  beforeAll(async () => {
    provider = await startOidcProvider({ redirectUrl: "http://127.0.0.1:1/signin/oidc", after: "http://127.0.0.1:1/" });
    await command("apps create Shop");
    await command("admin create --email ann@example.com");
  });
  afterAll(() => provider[Symbol.asyncDispose]());
  const shown = async () => JSON.parse((await command("oidc provider --json")).said).provider;

  test("is set, kept, tested and removed", async () => {
    expect((await command("oidc provider")).told).toContain("No OpenID provider is set");
    const set = `oidc provider ${provider.issuer} --client-id relay-dashboard --role relay-admins=owner --role support=support:shop/production`;
    const result = await command(set, { RELAY_OIDC_CLIENT_SECRET: SECRET });
    expect([result.code, result.told]).toEqual([0, ""]);
    expect(result.said).toContain("groups from the claim groups: relay-admins=owner, support=support:shop/production");
    expect(result.said).not.toContain(SECRET);
    await command("oidc provider --name Example --domain example.com --trust-email on");
    expect(await shown()).toMatchObject({
      name: "Example",
      issuer: provider.issuer,
      clientId: "relay-dashboard",
      hasSecret: true,
      domains: ["example.com"],
      trustsEmail: true,
      passwords: true,
      roles: [
        { group: "relay-admins", app: "*", environment: "*", role: "owner", payloads: true },
        { group: "support", app: "shop", environment: "production", role: "support", payloads: false },
      ],
    });
    await command("oidc provider --trust-email off");
    expect(await shown()).toMatchObject({ name: "Example", trustsEmail: false });
    expect((await command("oidc provider --trust-email maybe")).told).toContain("--trust-email maybe is no state: write on or off.");
    expect((await command("oidc provider --test --allow-private 127.0.0.1")).told).toContain("The provider answers. A sign-out of Relay also ends");
    const doctor = await command("doctor --quick --json");
    expect(doctor.said).toContain("127.0.0.1 is a loopback address");
    expect((await command("oidc passwords on")).told).toContain("Members can sign in with their passwords.");
    expect((await command("oidc provider --remove")).told).toContain("Example is removed.");
    expect(await shown()).toBeNull();
    expect((await command("oidc passwords on")).code).toBe(0);
    const audit = (await command("admin audit --json")).said;
    for (const action of ["oidc.provider_set", "oidc.provider_removed"]) expect(audit).toContain(action);
    expect(audit).not.toContain(SECRET);
  });

  const REFUSED: readonly [line: string, told: string][] = [
    ["oidc provider --client-id relay", "No provider is set"],
    ["oidc provider https://id.example.com", "--client-id is missing"],
    ["oidc provider http://id.example.com --client-id relay", "is not the issuer URL"],
    ["oidc provider https://id.example.com --client-id relay --role owner", "names no group"],
    ["oidc provider https://id.example.com --client-id relay --role a=boss", "no known role"],
    ["oidc provider --remove --test", "--remove changes nothing else"],
    ["oidc provider --test", "No OpenID provider is set"],
    ["oidc passwords off", "This server has no OpenID provider"],
    ["oidc passwords maybe", "maybe is no state"],
  ];
  test.each(REFUSED)("%s is refused", async (line, told) => {
    const result = await command(line);
    expect(result.code).not.toBe(0);
    expect(result.told).toContain(told);
  });

  test("takes no password off before an owner has signed in there", async () => {
    await command(`oidc provider ${provider.issuer} --client-id relay-dashboard --role relay-admins=owner`);
    const off = await command("oidc passwords off");
    expect([off.code === 0, off.told]).toEqual([false, expect.stringContaining("No owner of everything has signed in")]);
  });
});

describe("local development and a server", () => {
  const clock = new VirtualClock(Date.now());
  const places: [string, "local" | "server", { id: string; environments: ("local" | "production")[] }][] = [
    ["a server does not start on local development's directory", "local", { id: "local", environments: ["local"] }],
    ["local development does not start on a server's directory", "server", { id: "shop", environments: ["production"] }],
    ["an app with the id local on a server is a server's", "server", { id: "local", environments: ["production"] }],
  ];
  test.each(places)("%s", async (_rule, mode, app) => {
    const dataDir = mkdtempSync(join(cwd, "mode-"));
    const store = await openSqlite(join(dataDir, "relay.db"), { clock });
    await store.write("app", (tx) => createApp(tx, { ...app, name: "App", nowMs: clock.now() }));
    await store.read((tx) => requireMode(tx, { mode, dataDir }));
    const other = mode === "local" ? "server" : "local";
    expect((await refusalOf(() => store.read((tx) => requireMode(tx, { mode: other, dataDir })))).code).toBe("database_refused");
    await store.close();
    const { code, told } = await run(`apps create Shop --data-dir ${dataDir}`);
    expect({ code, isRefused: told.includes("belongs to local development") }).toEqual(
      mode === "local" ? { code: 1, isRefused: true } : { code: 0, isRefused: false },
    );
  });
});

const MAKERS = [
  ["apps", "create", "Shop"],
  ["admin", "create", "--email", "ann@example.com"],
];
test.each(MAKERS)("%s %s creates no server database in a project folder before relay dev has started there", async (...line) => {
  const folder = mkdtempSync(join(cwd, "project-"));
  mkdirSync(join(folder, "service", "relays"), { recursive: true });
  const create = (...more: string[]) => runCommand([...line, ...more], { cwd: folder });
  const { code, told } = await create();
  expect([code, existsSync(join(folder, ".relay"))]).toEqual([1, false]);
  expect(told).toMatch(/\.relay belongs to local development \(relay dev\).* run relay dev in another folder\. .*--data-dir \/var\/lib\/relay/);
  expect((await create("--data-dir", join(folder, "server"))).code).toBe(0);
});

test.each(MAKERS)("%s %s reports a data directory that it creates, and does not mention one that exists", async (...line) => {
  const folder = mkdtempSync(join(cwd, "elsewhere-"));
  const { code, told } = await runCommand(line, { cwd: folder });
  expect({ code, told }).toEqual({
    code: 0,
    told: expect.stringContaining(`The command created a new data directory at ${join(folder, ".relay")}.`),
  });
  const second = await runCommand(["admin", "create", "--email", "ben@example.com"], { cwd: folder });
  expect({ code: second.code, isTold: second.told.includes("A new data directory") }).toEqual({ code: 0, isTold: false });
});

describe("with an app", () => {
  beforeAll(async () => {
    expect(await run("apps create Shop --id app_test")).toMatchObject({ code: 0, said: "app_test" });
  });

  test("apps list --json shows both environments", async () => {
    const { said } = await run("apps list --json");
    expect(JSON.parse(said).items).toMatchObject([{ id: "app_test", name: "Shop", environments: ["development", "production"] }]);
  });

  test("apps rename changes the name and not the id, with one audit row", async () => {
    expect(await run("apps rename app_test Store")).toMatchObject({
      code: 0,
      told: "The app app_test has the name Store now. Its old name was Shop. Its id is still app_test.",
    });
    expect((await run("apps rename app_test Store")).told).toBe("The app app_test already has the name Store: nothing changed.");
    const back = await run("apps rename app_test Shop --json");
    expect(JSON.parse(back.said)).toEqual({ id: "app_test", name: "Shop", before: "Store", changed: true });
    expect(JSON.parse((await run("admin audit --json")).said).items.slice(0, 2)).toMatchObject([
      { actor: "command line", action: "app.renamed", target: "app:app_test", before: { name: "Store" }, after: { name: "Shop" } },
      { action: "app.renamed", before: { name: "Shop" }, after: { name: "Store" } },
    ]);
    const none = await run("apps rename app_tset Store");
    expect([none.code, none.told]).toEqual([1, expect.stringContaining("There is no app app_tset on this server. Did you mean app_test?")]);
    expect((await run(`apps rename app_test ${"x".repeat(300)}`)).told).toContain("name is not valid: write 1 to");
  });

  test("refuses a second app with the same id, in one sentence", async () => {
    const { code, said, told } = await run("apps create Shop --id app_test");
    expect({ code, said }).toEqual({ code: 1, said: "" });
    expect(told).toMatch(/exists/);
  });

  test("keys create prints only the key to stdout, and no list shows it again", async () => {
    const { code, said: token } = await run("keys create --name backend");
    expect(code).toBe(0);
    expect(token).toMatch(/^relay_dev_[A-Za-z0-9]{32}$/);
    const list = await run("keys list --json");
    expect(list.said).not.toContain(token);
    expect(JSON.parse(list.said).items[0]).toMatchObject({
      name: "backend",
      kind: "secret",
      revokedAt: null,
    });
  });

  test("--environment chooses the environment of the key", async () => {
    const { said } = await run("keys create --environment production --json");
    expect(JSON.parse(said)).toMatchObject({
      app: "app_test",
      environment: "production",
      key: expect.stringMatching(/^relay_live_/),
    });
  });

  test("keys revoke ends the key, once", async () => {
    const { said } = await run("keys create --json");
    const { id } = JSON.parse(said);
    expect((await run(`keys revoke ${id}`)).code).toBe(0);
    expect(await run(`keys revoke ${id}`)).toMatchObject({
      code: 1,
      told: expect.stringMatching(/no active key/),
    });
  });

  test("refuses an app or environment that does not exist, and lists the ones that do", async () => {
    expect(await run("keys list --app other")).toMatchObject({
      code: 1,
      told: expect.stringMatching(/no app with the id other/),
    });
    expect(await run("keys list --environment local")).toMatchObject({
      code: 1,
      told: expect.stringMatching(/name one of development, production/),
    });
  });

  test("with several apps, requires --app", async () => {
    await run("apps create Second --id second");
    expect(await run("keys list")).toMatchObject({
      code: 1,
      told: expect.stringMatching(/There are 2 apps.*app_test, second/),
    });
    expect((await run("keys list --app second")).code).toBe(0);
  });
});

describe("owners", () => {
  test("admin create prints a one-time link under the base URL", async () => {
    const { code, said } = await run("admin create --email ada@example.com --base-url https://relay.example.com");
    expect(code).toBe(0);
    expect(said).toMatch(/^https:\/\/relay\.example\.com\/reset#[A-Za-z0-9]{32}$/);
  });

  test("reads a password from stdin and prints it nowhere", async () => {
    const result = await run("admin create --email bob@example.com --password-stdin", "correct horse battery\n");
    expect(result).toMatchObject({ code: 0, said: "bob@example.com" });
    expect(result.told).not.toContain("correct horse");
  });

  test("refuses a short password", async () => {
    expect(await run("admin reset --email bob@example.com --password-stdin", "short\n")).toMatchObject({
      code: 1,
      said: "",
    });
  });

  test("admin list shows the owners, sign-out ends their sessions, and remove deletes any owner but the last", async () => {
    const emails = async (): Promise<string[]> => {
      const { said } = await run("admin list --json");
      return JSON.parse(said).items.map(({ email }: { email: string }) => email);
    };
    expect(await emails()).toEqual(["ada@example.com", "bob@example.com"]);
    expect(await run("admin sign-out bob@example.com")).toMatchObject({ code: 0, told: expect.stringContaining("0 sessions ended") });
    expect((await run("admin audit --limit 1")).said).toMatch(/command line +owner\.signed_out_everywhere +owner:bob@example\.com/);
    expect(await run("admin remove eve@example.com")).toMatchObject({ code: 1, told: expect.stringContaining("relay admin list") });
    expect(await run("admin create --email cleo@example.com")).toMatchObject({ code: 0 });
    expect(await run("admin remove cleo@example.com")).toMatchObject({ code: 0, told: expect.stringContaining("is not an owner any more") });
    expect(await run("admin remove bob@example.com")).toMatchObject({ code: 0 });
    expect(await run("admin remove ada@example.com")).toMatchObject({ code: 1, told: expect.stringContaining("is the last owner") });
    expect(await emails()).toEqual(["ada@example.com"]);
  });

  test("admin reset names the keys and owners that stay valid, and the commands that end them", async () => {
    await run("admin create --email eve@example.com");
    const key = JSON.parse((await run("keys create --app app_test --environment production --name server --json")).said);
    const reset = await run("admin reset --email ada@example.com");
    expect(reset.said).toMatch(/reset#/);
    expect(reset.told).toContain("Earlier sessions and keys of relay login stay valid until then");
    expect(reset.told).toMatch(/Still valid: \d+ keys: .*app_test\/production relay_live_….{4} "server"/);
    expect(reset.told).toContain("Still valid: 1 other owner: eve@example.com.");
    expect(reset.told).toContain("To end them, run this command again with --end-keys and --end-owners.");
    const shown = JSON.parse((await run("admin reset --email ada@example.com --json")).said);
    expect(shown.keys).toContainEqual({
      id: key.id,
      app: "app_test",
      environment: "production",
      kind: "secret",
      name: "server",
      hint: expect.stringMatching(/^relay_live_…/),
      ended: false,
    });
    expect(shown.owners).toEqual([{ email: "eve@example.com", ended: false }]);
    const ended = await run("admin reset --email ada@example.com --password-stdin --end-keys --end-owners", "correct horse battery\n");
    expect(ended.told).toMatch(/Revoked: \d+ keys: /);
    expect(ended.told).toContain("Removed: 1 other owner: eve@example.com.");
    expect(ended.told).not.toContain("To end them");
    expect(await run(`keys revoke ${key.id} --app app_test --environment production`)).toMatchObject({ code: 1 });
    expect((await run("admin audit --limit 5")).said).toMatch(/owner\.removed +owner:eve@example\.com/);
    const after = await run("admin reset --email ada@example.com");
    expect(after.told).not.toMatch(/Still valid|To end them/);
  });

  test("admin reset refuses an address without an owner", async () => {
    expect(await run("admin reset --email eve@example.com")).toMatchObject({
      code: 1,
      told: expect.stringMatching(/no owner eve@example\.com/),
    });
  });
});
