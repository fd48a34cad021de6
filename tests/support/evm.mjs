// A real EVM node, wallets on it, and a proxy that makes it misbehave.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { SOON_MS, until } from "./until.mjs";

const require = createRequire(import.meta.url);

/** The chain of the node. */
export const CHAIN_ID = 31337;

/** A factory that calls CREATE2 with the salt and creation code it is sent; the node brings it along. */
export const FACTORY = "0x4e59b44847b379578588920ca78fbf26c0b4956c";

/** What an ERC-6492 signature ends with. */
const WRAPPER_MAGIC = "6492".repeat(16);

const bare = (hex) => (hex.startsWith("0x") ? hex.slice(2) : hex);
const word = (hex) => bare(hex).padStart(64, "0");
const rightPadded = (hex) => bare(hex).padEnd(Math.ceil(bare(hex).length / 64) * 64, "0");
const lengthOf = (hex) => word((bare(hex).length / 2).toString(16));

/** Bytes of a hexadecimal string. */
export function bytes(hex) {
  return new Uint8Array(Buffer.from(bare(hex), "hex"));
}

function hexOf(array) {
  return `0x${Buffer.from(array).toString("hex")}`;
}

/** A fresh hash, to be signed. */
export function someHash() {
  return hexOf(randomBytes(32));
}

/** An ERC-6492 signature: what to call to make the wallet exist or ready, and the signature it then accepts. */
export function wrapped(factory, message, signature) {
  const messageTail = lengthOf(message) + rightPadded(message);
  const second = 96 + messageTail.length / 2;
  const head = word(factory) + word((96).toString(16)) + word(second.toString(16));
  return `0x${head}${messageTail}${lengthOf(signature)}${rightPadded(signature)}${WRAPPER_MAGIC}`;
}

/** Compiles the wallets of wallets.sol: creation code by name. */
export function compileWallets() {
  const file = new URL("wallets.sol", import.meta.url);
  const compiled = JSON.parse(require("solc").compile(JSON.stringify({
    language: "Solidity",
    sources: { "wallets.sol": { content: fs.readFileSync(file, "utf8") } },
    settings: { evmVersion: "paris", optimizer: { enabled: true }, outputSelection: { "*": { "*": ["evm.bytecode.object"] } } },
  })));
  const errors = (compiled.errors ?? []).filter(({ severity }) => severity === "error");
  if (errors.length > 0) throw new Error(errors.map(({ formattedMessage }) => formattedMessage).join("\n"));
  const contracts = Object.entries(compiled.contracts["wallets.sol"]);
  return Object.fromEntries(contracts.map(([name, { evm }]) => [name, `0x${evm.bytecode.object}`]));
}

function binary() {
  const system = { linux: "linux", darwin: "darwin" }[process.platform];
  const architecture = { x64: "amd64", arm64: "arm64" }[process.arch];
  const root = fileURLToPath(new URL("../../node_modules/@foundry-rs/", import.meta.url));
  return path.join(root, `anvil-${system}-${architecture}`, "bin/anvil");
}

/** A chain with one node on this machine. */
export class Evm {
  #process;

  /** Starts one whose first block is `ageSeconds` old, and whose second is new. Resolves when it answers. */
  static async start({ ageSeconds = 7200 } = {}) {
    const evm = new Evm();
    const now = Math.floor(Date.now() / 1000);
    const flags = ["--host", "127.0.0.1", "--port", "0", "--chain-id", String(CHAIN_ID), "--timestamp", String(now - ageSeconds)];
    evm.#process = spawn(binary(), flags, { stdio: ["ignore", "pipe", "ignore"] });
    const lines = createInterface({ input: evm.#process.stdout });
    lines.on("line", (line) => {
      const match = /Listening on (127\.0\.0\.1:\d+)/.exec(line);
      if (match) evm.url = `http://${match[1]}`;
    });
    await until("the EVM node to listen", () => evm.url ?? evm.#process.exitCode !== null, 2 * SOON_MS);
    if (evm.url === undefined) throw new Error("the EVM node ended before it listened");
    evm.accounts = await evm.rpc("eth_accounts");
    await evm.rpc("evm_setTime", Math.floor(Date.now() / 1000));
    await evm.mine();
    return evm;
  }

  async stop() {
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      this.#process.kill("SIGKILL");
      await ended;
    }
  }

  async rpc(method, ...params) {
    const response = await fetch(this.url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
    const { result, error } = await response.json();
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  keccak(hex) {
    return this.rpc("web3_sha3", hex);
  }

  /** The number of the newest block. */
  async head() {
    return BigInt(await this.rpc("eth_blockNumber"));
  }

  /** Makes a block, now. */
  async mine(blocks = 1) {
    await this.rpc("anvil_mine", `0x${blocks.toString(16)}`);
  }

  /** Sends a transaction and resolves with its receipt once it is in a block. */
  async send(transaction) {
    const hash = await this.rpc("eth_sendTransaction", { from: this.accounts[0], ...transaction });
    const receipt = await until("a receipt", () => this.rpc("eth_getTransactionReceipt", hash));
    if (receipt.status !== "0x1") throw new Error("the transaction failed");
    return receipt;
  }

  /** Creates a contract; `owner`, if there is one, is its constructor's argument. Resolves with its address. */
  async create(code, owner) {
    const { contractAddress } = await this.send({ data: code + (owner ? word(owner) : "") });
    return contractAddress.toLowerCase();
  }

  /** The message to FACTORY that creates a contract, and the address the contract then has. */
  async counterfactual(code, owner, salt = someHash()) {
    const creation = code + (owner ? word(owner) : "");
    const hash = await this.keccak(creation);
    const address = await this.keccak(`0xff${bare(FACTORY)}${bare(salt)}${bare(hash)}`);
    return { address: `0x${address.slice(-40)}`, message: salt + bare(creation) };
  }

  /** The message that calls a function without results. */
  async message(signature, ...words) {
    const selector = (await this.keccak(hexOf(Buffer.from(signature)))).slice(0, 10);
    return selector + words.map(word).join("");
  }

  /** A personal message's hash, and its signature by the key of an account. */
  async sign(account, text = randomBytes(16).toString("hex")) {
    const message = Buffer.from(text);
    const prefix = Buffer.from(`\u0019Ethereum Signed Message:\n${message.length}`);
    const hash = await this.keccak(hexOf(Buffer.concat([prefix, message])));
    const signature = await this.rpc("eth_sign", account, hexOf(message));
    return { hash, signature };
  }
}

/** A node in front of a node, honest until `manner` is set. */
export class Proxy {
  #server;
  #target;
  #waiting = new Set();

  /** How it answers: a function of the request and of what the node behind answers, or undefined for honesty. */
  manner = undefined;

  /** How often each method was asked. */
  asked = {};

  static async start(target) {
    const proxy = new Proxy();
    proxy.#target = target;
    proxy.#server = http.createServer((request, response) => proxy.#answer(request, response));
    await new Promise((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    proxy.url = `http://127.0.0.1:${proxy.#server.address().port}`;
    return proxy;
  }

  async stop() {
    for (const response of this.#waiting) response.destroy();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request, response) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const call = JSON.parse(Buffer.concat(chunks).toString());
    this.asked[call.method] = (this.asked[call.method] ?? 0) + 1;
    const honest = async (changed = call) => {
      const answered = await fetch(this.#target, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(changed),
      });
      return answered.json();
    };
    const answer = this.manner ? await this.manner(call, honest) : { body: await honest() };
    if (answer === HANG) {
      this.#waiting.add(response);
      return;
    }
    const { status = 200, headers = {}, body } = answer;
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  }
}

/** The answer that never comes. */
export const HANG = Symbol("hang");
