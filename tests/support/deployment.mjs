// A deployment of the built worker on workerd behind the gateway, started and ended by a test.

import { spawn, execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { SOON_MS, until } from "./until.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const xtask = process.env.CONCLAVE_XTASK ?? path.join(root, "target/debug/xtask");

/** A folder for one test's state, removed with `remove`. */
export function temporaryFolder() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "conclave-test-"));
  return { path: folder, remove: () => fs.rmSync(folder, { recursive: true, force: true }) };
}

/** The processes that `pid` started, by id. */
function childrenOf(pid) {
  const listing = execFileSync("ps", ["-o", "pid=,ppid=,comm=", "-A"], { encoding: "utf8" });
  return listing
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, parent]) => Number(parent) === pid)
    .map(([child, , command]) => ({ pid: Number(child), command }));
}

export class Deployment {
  #process;
  #log = [];

  /**
   * Starts one and resolves when it answers.
   *
   * `shards`: how many topic shards; `state`: a folder that outlives the deployment (a fresh one otherwise);
   * `port`: 0 for a free one; `variables`: worker variables; `testBuild`: the worker with its test-only features;
   * `direct`: without the gateway in front, for a figure of the worker alone.
   */
  static async start({ shards = 16, state, port = 0, variables = {}, testBuild = false, direct = false } = {}) {
    const deployment = new Deployment();
    const where = state ? ["--state", state] : ["--fresh"];
    const flags = ["--port", String(port), "--shards", String(shards), "--no-build", ...where];
    for (const [name, value] of Object.entries(variables)) flags.push("--var", `${name}=${value}`);
    if (testBuild) flags.push("--test-build");
    if (direct) flags.push("--direct");
    await deployment.#start(flags);
    return deployment;
  }

  async #start(flags) {
    this.#process = spawn(xtask, ["dev", ...flags], { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    this.#process.stderr.on("data", (chunk) => this.#log.push(chunk));
    const lines = createInterface({ input: this.#process.stdout });
    let ready;
    lines.on("line", (line) => {
      const match = /^ready (http:\/\/127\.0\.0\.1:\d+)$/.exec(line);
      if (match) ready = match[1];
    });
    const hasEnded = () => this.#process.exitCode !== null || this.#process.signalCode !== null;
    await until("the deployment to be ready", () => ready ?? hasEnded(), 2 * SOON_MS).catch((error) => {
      this.#process.kill("SIGTERM");
      throw new Error(`${error.message}\n${this.log}`);
    });
    if (ready === undefined) throw new Error(`the deployment ended before it was ready\n${this.log}`);
    this.url = ready;
  }

  /** Everything the deployment has written to its log. */
  get log() {
    return Buffer.concat(this.#log).toString();
  }

  /** The process ids of the runtime behind the port. */
  runtimes() {
    return childrenOf(this.#process.pid).filter(({ command }) => command.startsWith("workerd"));
  }

  /** Ends the runtime as a power cut would, and resolves when another one answers in its place. */
  async killRuntime() {
    const before = this.runtimes().map(({ pid }) => pid);
    for (const pid of before) process.kill(pid, "SIGKILL");
    await until("another runtime", () => {
      const now = this.runtimes();
      return now.length > 0 && now.every(({ pid }) => !before.includes(pid));
    });
  }

  /** Ends the deployment and everything it started. */
  async stop() {
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      this.#process.kill("SIGTERM");
      await ended;
    }
  }
}
