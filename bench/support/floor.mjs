// The floor object under the same runtime as the deployment it is compared with, persisted to the same disk.

import { spawn } from "node:child_process";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { temporaryFolder } from "../../tests/support/deployment.mjs";
import { post } from "./http.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const workerd = path.join(root, "node_modules/workerd/bin/workerd");
const config = path.join(root, "bench/floor/floor.capnp");

/** Starts the floor. */
export async function startFloor() {
  const state = temporaryFolder();
  const flags = ["serve", config, `--directory-path=state=${state.path}`, "--socket-addr=http=127.0.0.1:0", "--control-fd=3"];
  const runtime = spawn(workerd, flags, { stdio: ["ignore", "inherit", "inherit", "pipe"] });
  const ended = new Promise((resolve) => runtime.once("exit", resolve));
  const port = await new Promise((resolve, reject) => {
    createInterface({ input: runtime.stdio[3] }).on("line", (line) => {
      const event = JSON.parse(line);
      if (event.event === "listen") resolve(event.port);
    });
    ended.then(() => reject(new Error("the floor ended before it was ready")));
  });
  return {
    port,
    pid: runtime.pid,
    /** A request to the object of a name. */
    request: (name, method, body = Buffer.alloc(0)) => post(`/${name}/${method}`, {}, body),
    async stop() {
      runtime.kill("SIGKILL");
      await ended;
      state.remove();
    },
  };
}
