/** Tests `relay login` as a process with an owner's answer in a real browser, the key's use, and its revocation there. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { openDashboard } from "../kit/browser.ts";
import { startCli } from "../kit/cli-process.ts";
import { APP } from "../kit/running-service.ts";

const dashboard = await openDashboard({ config: { mode: "server" }, environments: ["development", "production"] });
const { page, running, at, complaints } = dashboard;
const cwd = mkdtempSync(join(tmpdir(), "relay-login-"));
afterAll(async () => {
  await dashboard[Symbol.asyncDispose]();
  rmSync(cwd, { recursive: true, force: true });
});

const EMAIL = "owner@example.com";
const PASSWORD = "a long enough password";
const { url } = running.service;
const file = join(cwd, ".config", "relay", "profiles.json");

async function relay(...line: string[]): Promise<{ code: number; text: string }> {
  await using ran = startCli(line, { cwd });
  return { code: await ran.exited, text: ran.lines().join("\n") };
}

const codeOf = async (started: ReturnType<typeof startCli>): Promise<string> => /[A-Z]{4}-[A-Z]{4}/.exec(await started.line("    "))?.[0] ?? "";

test("an owner signs in, types the code, sees the caller, chooses, and the command continues", async () => {
  await page.getByLabel("E-mail").fill(EMAIL);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Create the owner and sign in" }).click();
  await page.getByRole("heading", { name: "No relays yet" }).waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();

  await using login = startCli(["login", "--url", url, "--days", "30"], { cwd });
  expect(await login.line("Open")).toContain(`${url}/login`);
  const code = await codeOf(login);
  await page.goto(`${url}/login`);
  await page.getByLabel("E-mail").fill(EMAIL);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Sign in a command" }).waitFor();
  await page.getByLabel("Code").fill("BCDF-GHJK");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("No login waits under this code").waitFor();
  await page.getByLabel("Code").fill(code.toLowerCase());
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { name: "Did you start this login?" }).waitFor();
  const shown = await page.locator("main").innerText();
  for (const words of [code, hostname().slice(0, 40), "127.0.0.1", "same as yours", "30 days", EMAIL]) expect(shown).toContain(words);
  const allow = page.getByRole("button", { name: "Allow login" });
  expect(await allow.isDisabled()).toBe(true);
  await page.getByLabel("App and environment").selectOption(`${APP}/production`);
  await page.getByText("This is production.").waitFor();
  await allow.click();
  await page.getByRole("heading", { name: "The command is signed in" }).waitFor();
  expect(await login.exited).toBe(0);
  expect(login.lines().join("\n")).toContain("This is PRODUCTION");
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("the profile works and shows its owner, and production is announced", async () => {
  const { profiles } = JSON.parse(readFileSync(file, "utf8"));
  const [name = ""] = Object.keys(profiles);
  expect(name).toBe(`${APP}-production`);
  const { key } = profiles[name];
  const who = await relay("whoami", "--json");
  expect(who.code).toBe(0);
  expect(who.text).toContain(EMAIL);
  expect(who.text).not.toContain(key);
  expect((await relay("problems", "list")).text).toContain("from the default profile");
  const unnamed = await relay("alerts", "resolve", "--all");
  expect([unnamed.code, unnamed.text.includes(`write --profile ${name}`)]).toEqual([2, true]);
  const named = await relay("alerts", "resolve", "--all", "--profile", name);
  expect([named.code, named.text.includes("This command changes PRODUCTION")]).toEqual([0, true]);
});

test("the Keys page lists the key with its owner and expiry and revokes it, and the command then says what to do", async () => {
  await page.goto(at("settings?tab=keys").replace("development", "production"));
  await page
    .getByText(`relay login on ${hostname().slice(0, 40)}`)
    .first()
    .waitFor();
  await page.getByRole("table", { name: "Keys" }).getByText(EMAIL).first().waitFor();
  await page.getByRole("button", { name: /^Revoke… relay login on/ }).click();
  await page.getByRole("button", { name: "Revoke key" }).click();
  await page.getByText(/^Revoked relay login/).waitFor();
  const refused = await relay("problems", "list", "--profile", `${APP}-production`);
  expect([refused.code, refused.text.includes(`relay login --profile ${APP}-production`)]).toEqual([1, true]);
  const who = await relay("whoami");
  expect([who.code, who.text.includes("was revoked at")]).toEqual([1, true]);
  const out = await relay("logout");
  expect([out.code, out.text.includes("its key was no longer valid")]).toEqual([0, true]);
  expect((await relay("whoami")).text).toContain("There is no profile yet");
});

test("a denied login ends the command with a sentence, and stores nothing", async () => {
  await using login = startCli(["login", "--url", url], { cwd });
  const code = await codeOf(login);
  await page.goto(`${url}/login`);
  await page.getByLabel("Code").fill(code);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("button", { name: "Deny login" }).click();
  await page.getByRole("heading", { name: "The login is denied" }).waitFor();
  expect(await login.exited).toBe(1);
  expect(login.lines().join("\n")).toContain("access_denied");
  expect((await relay("whoami")).text).toContain("There is no profile yet");
});

test("the pages violate no content policy and log no error", () => {
  expect(complaints).toEqual([]);
});
