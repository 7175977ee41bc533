#!/usr/bin/env node
/**
 * The command `relay` of the npm package. It starts the executable in the package of this system, and ends as the executable ends. It runs with
 * Node and with Bun and needs no other package.
 */
"use strict";
const { spawn } = require("node:child_process");
const { existsSync, readFileSync } = require("node:fs");
const { constants } = require("node:os");
const systems = require("./systems.json");

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];
const { platform, arch, env } = process;

/** Ends this process with a sentence and the exit code that a shell gives for a command that it cannot run. */
function fail(sentence) {
  console.error(`relay: ${sentence}`);
  process.exit(127);
}

/** Returns the path of this system's executable and of the file that starts it, or ends this process with what to do. */
function findExecutable() {
  const mine = systems.filter(({ os, cpu }) => os === platform && cpu === arch);
  if (mine.length === 0) {
    const titles = systems.map(({ title }) => title).join("; ");
    return fail(
      `there is no executable for ${platform} ${arch}. There are executables for: ${titles}. Elsewhere, run the sources with Bun.`,
    );
  }
  const startable = mine.filter(({ loader }) => loader === null || existsSync(loader));
  if (startable.length === 0) {
    const loaders = mine.map(({ loader }) => loader).join(" or ");
    return fail(
      `no executable starts on this system, because ${loaders} is missing. Install the C library that has it. On NixOS, switch on programs.nix-ld.`,
    );
  }
  for (const { package: name, file, loader } of startable) {
    try {
      return { file: require.resolve(`${name}/${file}`), loader };
    } catch {
      // Another C library of this system may have its package.
    }
  }
  const names = startable.map(({ package: name }) => name).join(" or ");
  return fail(
    `the package ${names} is missing. Relay needs optional dependencies: install again without --omit=optional or --no-optional, on this system and with this system's package manager.`,
  );
}

/** Returns the words that start this command again, for the commands that Relay prints. */
function programWord() {
  const agent = env.npm_config_user_agent;
  if (!agent) return "relay";
  return agent.startsWith("bun/") ? "bunx relay-service" : "npx relay-service";
}

/**
 * Stops the executable after the package runner that started this process, which passes no signal on. The runner is the parent process, or the
 * parent of the shell between them. Elsewhere a process may outlive the one that started it.
 */
function stopWithRunner(child) {
  if (env.npm_lifecycle_event === undefined || platform === "win32") return;
  const parent = process.ppid;
  const above = parentOf(parent);
  const watch = setInterval(() => {
    if (process.ppid === parent && parentOf(parent) === above) return;
    clearInterval(watch);
    child.kill("SIGTERM");
  }, 500);
  watch.unref();
}

/** Reads the parent of a process from /proc. Returns null if the system has no such file. */
function parentOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ")[1];
  } catch {
    return null;
  }
}

function start({ file, loader }) {
  const child = spawn(file, process.argv.slice(2), {
    stdio: "inherit",
    // The last compiler of the JavaScript engine makes the first events slower and no later ones faster.
    env: {
      BUN_JSC_useFTLJIT: "0",
      ...env,
      RELAY_PARENT_PID: String(process.pid),
      RELAY_PROGRAM: programWord(),
    },
  });
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      // On Windows the console itself notifies the executable, and a signal from here would end it at once.
      if (platform !== "win32") child.kill(signal);
    });
  }
  stopWithRunner(child);
  child.on("error", ({ code }) => {
    const todo =
      code === "EACCES" ? `Make it executable: chmod +x '${file}'.` : "Install relay-service again.";
    fail(`${file} could not start (${code}). ${todo}`);
  });
  child.on("exit", (code, signal) => {
    // The loader of musl ends so after it named a missing library. Relay has no such exit code.
    if (code === 127 && loader?.includes("musl"))
      fail(`${file} did not start. On Alpine, run: apk add libstdc++`);
    if (signal === null) process.exit(code);
    for (const one of SIGNALS) process.removeAllListeners(one);
    // The exit code counts if this process survives the signal.
    process.exitCode = 128 + constants.signals[signal];
    process.kill(process.pid, signal);
  });
}

start(findExecutable());
