/**
 * A simulated machine that runs the shell lines of the documentation. Its files are below a temporary folder, and sudo decides which user acts.
 * systemctl and docker run the real program as the unit, the compose file and the Dockerfile say. The machine throws where a real one would refuse.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { startService } from "../../src/service.ts";
import { runCommand } from "./cli-io.ts";
import { readShell, runCurl } from "./docs-block.ts";

const REPOSITORY = join(import.meta.dir, "..", "..");
/** Address of a caller, as the proxy in front of the service writes it. */
export const CALLER = "198.51.100.7";

interface Running {
  base: string;
  stop(): Promise<void>;
}

const readVariables = (lines: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    lines.filter((line) => /^[A-Z_]+=/.test(line)).map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );

export class DocsMachine {
  readonly #root = mkdtempSync(join(tmpdir(), "relay-machine-"));
  /** Working directory of the shell lines, with the repository's packaging files and the executable. */
  readonly #desk = join(this.#root, "home/admin");
  readonly #users = new Set(["root", "admin"]);
  readonly #modes = new Map<string, string>();
  #unit: string[] | null = null;
  #server: Running | null = null;
  #container: Running | null = null;
  readonly #told = { relay: "", container: "" };

  constructor() {
    for (const folder of ["usr/local/bin", "usr/lib/sysusers.d", "etc/systemd/system", "var/lib", "volumes/data"])
      mkdirSync(join(this.#root, folder), { recursive: true });
    cpSync(join(REPOSITORY, "packaging"), join(this.#desk, "packaging"), { recursive: true });
    for (const name of ["relay.service", "relay.sysusers", "relay.env"]) cpSync(join(REPOSITORY, "packaging", name), join(this.#desk, name));
    cpSync(join(REPOSITORY, "packaging/litestream.yml"), join(this.#root, "etc/litestream.yml"));
    writeFileSync(join(this.#desk, "relay"), "the executable");
  }

  /** Runs one line as the administrator types it and returns its output. */
  async run(line: string): Promise<string> {
    const [, said, file] = /^echo (\S+) > (\S+)$/.exec(line) ?? [];
    if (said !== undefined && file !== undefined) {
      writeFileSync(this.#at(file, "admin", "write"), `${said}\n`);
      return "";
    }
    const typed = readShell(line, {})[0]?.words ?? [];
    const isSudo = typed[0] === "sudo";
    const isNamed = isSudo && typed[1] === "-u";
    const as = isNamed ? (typed[2] ?? "") : isSudo ? "root" : "admin";
    if (!this.#users.has(as)) throw new Error(`There is no user ${as}.`);
    const [name = "", ...words] = typed.slice(isNamed ? 3 : isSudo ? 1 : 0);
    const command = this.#commands[name];
    if (command === undefined) throw new Error(`${name} is not installed on this machine.`);
    return await command(words, as);
  }

  readonly #commands: Readonly<Record<string, (words: string[], as: string) => string | Promise<string>>> = {
    install: (words, as) => this.#install(words, as),
    "systemd-sysusers": (_words, as) => this.#makeUsers(as),
    systemctl: (words, as) => this.#control(words, as),
    journalctl: ([flag, unit], as) => {
      if (flag !== "-u" || unit !== "relay" || as !== "root") throw new Error("The journal of a unit is root's to read.");
      return this.#told.relay;
    },
    relay: (words, as) => this.#relay(words, as),
    mv: ([from = "", to = ""], as) => {
      renameSync(this.#at(from, as, "write"), this.#at(to, as, "write"));
      this.#modes.set(to, this.#modes.get(from) ?? "");
      return "";
    },
    ls: ([path = ""], as) => readdirSync(this.#at(path, as, "read")).join("\n"),
    rsync: ([flag, from = "", to], as) => {
      if (flag !== "--archive" || to === undefined) throw new Error("rsync takes a folder and a place.");
      return readdirSync(this.#at(from, as, "read")).join("\n");
    },
    litestream: (words, as) => this.#litestream(words, as),
    docker: (words) => this.#docker(words),
    curl: async (words) => {
      const toServer = words.map((word) => word.replace("https://relay.example.com", this.#server?.base ?? "http://nobody.invalid"));
      // The proxy replaces any header that the caller sends.
      const { status, text } = await runCurl(["curl", "-s", ...toServer.map((word) => word.replace(/^(X-Forwarded-For: ).*$/, `$1${CALLER}`))]);
      return `${status} ${text}`;
    },
  };

  /** Returns the path below the machine's folder. Throws if this user does not have the permission. */
  #at(path: string, as: string, act: "read" | "write"): string {
    if (!path.startsWith("/")) return join(this.#desk, path);
    const owner = this.#ownerOf(path);
    if (as !== "root" && owner !== as && (act === "write" || owner !== "root")) throw new Error(`${as} may not ${act} ${path}: Permission denied`);
    return join(this.#root, path);
  }

  #ownerOf(path: string): string {
    const dataDir = this.#unit === null ? null : `/var/lib/${this.#inUnit("StateDirectory")}`;
    if (dataDir !== null && `${path}/`.startsWith(`${dataDir}/`) && this.#inUnit("StateDirectoryMode") === "0700") return this.#inUnit("User");
    return "root";
  }

  #inUnit(key: string): string {
    const line = this.#unit?.find((one) => one.startsWith(`${key}=`));
    if (line === undefined) throw new Error(`The unit says no ${key}.`);
    return line.slice(key.length + 1);
  }

  #install(words: string[], as: string): string {
    const given: Record<string, string> = {};
    const paths: string[] = [];
    for (let at = 0; at < words.length; at++) {
      const word = words[at] ?? "";
      if (word === "-d") given[word] = "";
      else if (/^-[mog]$/.test(word)) given[word] = words[++at] ?? "";
      else paths.push(word);
    }
    for (const name of [given["-o"], given["-g"]]) if (name !== undefined && !this.#users.has(name)) throw new Error(`invalid user or group ${name}`);
    const target = paths.at(-1) ?? "";
    const place = this.#at(target, as, "write");
    if (given["-d"] !== undefined) mkdirSync(place, { recursive: true });
    else {
      if (paths.length !== 2 || !existsSync(dirname(place))) throw new Error(`install: there is no folder ${dirname(target)}`);
      cpSync(this.#at(paths[0] ?? "", as, "read"), place);
    }
    this.#modes.set(target, `${given["-m"]} ${given["-g"] ?? as}`);
    return "";
  }

  #makeUsers(as: string): string {
    const folder = this.#at("/usr/lib/sysusers.d", as, "write");
    const lines = readdirSync(folder).flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n"));
    for (const line of lines) if (line.startsWith("u ")) this.#users.add(line.split(" ")[1] ?? "");
    return "";
  }

  async #control(words: string[], as: string): Promise<string> {
    if (as !== "root") throw new Error("Access denied: systemctl is root's.");
    const [verb = "", name = ""] = words.filter((word) => word !== "--now");
    const file = join(this.#root, "etc/systemd/system/relay.service");
    if (verb === "daemon-reload") {
      this.#unit = existsSync(file) ? readFileSync(file, "utf8").split("\n") : null;
      return "";
    }
    if (name !== "relay" || this.#unit === null) throw new Error(`Unit ${name}.service not found.`);
    if (verb === "stop" || verb === "restart") await this.#server?.stop();
    if (verb === "stop") this.#server = null;
    else if (["start", "restart", "enable"].includes(verb)) this.#server = await this.#startUnit();
    else throw new Error(`Unknown command verb ${verb}.`);
    return "";
  }

  async #startUnit(): Promise<Running> {
    const user = this.#inUnit("User");
    if (!this.#users.has(user) || !this.#users.has(this.#inUnit("Group"))) throw new Error("status=217/USER");
    const [program = "", ...line] = this.#inUnit("ExecStart").split(" ");
    if (!existsSync(join(this.#root, program)) || !this.#modes.get(program)?.startsWith("755 ")) throw new Error("status=203/EXEC");
    const variables = this.#inUnit("EnvironmentFile");
    if (this.#modes.get(variables) !== `640 ${this.#inUnit("Group")}`) throw new Error(`${variables} is not readable by the group alone.`);
    const lines = [...readFileSync(join(this.#root, variables), "utf8").split("\n"), this.#inUnit("Environment")];
    mkdirSync(join(this.#root, "var/lib", this.#inUnit("StateDirectory")), { recursive: true, mode: 0o700 });
    return await this.#serve(line, this.#below(readVariables(lines)), "relay");
  }

  /** Maps absolute paths in variables to the machine's folder. */
  #below(env: Record<string, string>): Record<string, string> {
    return Object.fromEntries(Object.entries(env).map(([key, value]) => [key, value.startsWith("/") ? join(this.#root, value) : value]));
  }

  async #serve(line: readonly string[], env: Record<string, string>, who: "relay" | "container"): Promise<Running> {
    const { promise: isStopped, resolve: stop } = Promise.withResolvers<void>();
    const { promise: isUp, resolve: up } = Promise.withResolvers<void>();
    let base = "";
    const hear = (text: string): void => {
      this.#told[who] += `${text}\n`;
      base ||= /Listening {2}(\S+)/.exec(text)?.[1] ?? "";
      if (text.startsWith("Set-up")) up();
    };
    const given = { ...env, RELAY_PORT: "0", RELAY_HOST: "127.0.0.1" };
    const ended = runCommand(line, { cwd: this.#root, clock: systemClock, env: given, startService, untilStopped: () => isStopped, hear });
    const early = await Promise.race([isUp, ended]);
    if (early !== undefined) throw new Error(`${line.join(" ")}: ${early.told}`);
    return {
      base,
      stop: async () => {
        stop();
        const { code, told } = await ended;
        if (code !== 0) throw new Error(`The server ended with ${code}: ${told}`);
      },
    };
  }

  async #run(words: readonly string[], env: Record<string, string>): Promise<string> {
    const { code, said, told } = await runCommand(words, { cwd: this.#root, clock: systemClock, env });
    if (code !== 0) throw new Error(`relay ${words.join(" ")} ended with ${code}: ${told}`);
    return `${said}\n${told}`;
  }

  async #relay(words: string[], as: string): Promise<string> {
    const at = words.indexOf("--data-dir");
    const dataDir = words[at + 1] ?? "";
    if (at >= 0 && as !== this.#ownerOf(dataDir)) throw new Error(`A command as ${as} makes files in ${dataDir} that the server may not read.`);
    return await this.#run(
      words.map((word) => (word.startsWith("/") ? this.#at(word, as, "write") : word)),
      {},
    );
  }

  #litestream(words: string[], as: string): string {
    const config = Bun.YAML.parse(readFileSync(this.#at(words[2] ?? "", as, "read"), "utf8")) as { dbs: { path: string }[] };
    const database = config.dbs[0]?.path ?? "";
    const place = this.#at(database, as, "write");
    if (words[1] !== "-config" || !existsSync(place)) throw new Error(`${words.join(" ")}: there is no ${database}`);
    if (words[0] === "replicate") return "";
    const [option, output = "", of] = words.slice(3);
    if (words[0] !== "restore" || option !== "-o" || of !== database) throw new Error(`litestream ${words.join(" ")} is not understood.`);
    if (this.#server !== null) throw new Error("The stand-in for a copy is the database of a stopped server.");
    cpSync(place, this.#at(output, as, "write"));
    return "";
  }

  async #docker(words: string[]): Promise<string> {
    const [compose, flag, file = "", verb = "", ...rest] = words;
    if (compose !== "compose" || flag !== "--file") throw new Error(`docker ${words.join(" ")} is not understood.`);
    const text = readFileSync(join(this.#desk, file), "utf8");
    const kept = join(this.#desk, dirname(file), ".env");
    const named = existsSync(kept) ? readVariables(readFileSync(kept, "utf8").split("\n")) : {};
    const whole = text.replaceAll(/\$\{(\w+)(?::\?([^}]*))?\}/g, (_all, name: string, wanted?: string) => {
      if (named[name] === undefined && wanted !== undefined) throw new Error(`required variable ${name} is missing a value: ${wanted}`);
      return named[name] ?? "";
    });
    // biome-ignore lint/suspicious/noExplicitAny: YAML of any shape
    const { relay } = (Bun.YAML.parse(whole) as any).services;
    const image = readFileSync(join(REPOSITORY, "packaging", relay.build.context, relay.build.dockerfile), "utf8").split("\n");
    const inImage = (word: string): string => image.findLast((line) => line.startsWith(`${word} `))?.slice(word.length + 1) ?? "";
    const [program = ""] = JSON.parse(inImage("ENTRYPOINT")) as string[];
    const data = inImage("VOLUME");
    const volume = join(this.#root, "volumes/data");
    const inVolume = (word: string): string => (`${word}/`.startsWith(`${data}/`) ? join(volume, word.slice(data.length)) : word);
    const variables = { ...readVariables(inImage("ENV").split(" ")), ...(relay.environment as Record<string, string>) };
    const env = Object.fromEntries(Object.entries(variables).map(([key, value]) => [key, inVolume(value)]));
    const options = rest.filter((word, at) => word.startsWith("--") && rest.slice(0, at).every((one) => one.startsWith("--")));
    const [service, ...line] = rest.slice(options.length);
    if (service !== undefined && service !== "relay") throw new Error(`no such service: ${service}`);
    if (verb === "up" && options.includes("--detach")) {
      this.#container ??= await this.#serve(JSON.parse(inImage("CMD")) as string[], env, "container");
      return "";
    }
    if (verb === "logs") return this.#told.container;
    if (verb === "stop") {
      await this.#container?.stop();
      this.#container = null;
      return "";
    }
    if (verb === "exec" && (this.#container === null || line.shift() !== basename(program)))
      throw new Error("exec: the service or the program is not there.");
    if (verb !== "exec" && verb !== "run") throw new Error(`docker compose ${verb} is not understood.`);
    return await this.#run(line.map(inVolume), env);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.stop();
    await this.#container?.stop();
    rmSync(this.#root, { recursive: true, force: true });
  }
}
