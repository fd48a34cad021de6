// Load: some connections, each sending its next request when the last one was answered, for a while.

import { cpuMs } from "./cpu.mjs";
import { Connection } from "./http.mjs";

/** The middle value of a list. */
export function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** One side of a comparison: connections to a port, and what to send on them. */
export class Side {
  #pid;
  #connections;
  #next;
  #expect;

  /**
   * `inFlight` requests at a time to `port`, each what `next` returns (bytes). `expect` throws for an answer that is not
   * a success. `pid` is the process that serves them.
   */
  static async open({ port, pid, inFlight, next, expect }) {
    const side = new Side();
    side.#pid = pid;
    side.#connections = await Promise.all(Array.from({ length: inFlight }, () => Connection.open(port)));
    side.#next = next;
    side.#expect = expect;
    return side;
  }

  /**
   * Sends for so many milliseconds. Answers per second, bytes of their bodies per second, the median latency in ms, and
   * the CPU time of the serving process per answer in ms.
   */
  async run(milliseconds) {
    const cpuBegin = cpuMs(this.#pid);
    const begin = performance.now();
    const end = begin + milliseconds;
    const latencies = [];
    let bytes = 0;
    const send = async (connection) => {
      for (let sent = performance.now(); sent < end; ) {
        const answer = await connection.send(this.#next());
        const now = performance.now();
        latencies.push(now - sent);
        sent = now;
        this.#expect(answer);
        for (const piece of answer.body) bytes += piece.length;
      }
    };
    await Promise.all(this.#connections.map(send));
    const seconds = (performance.now() - begin) / 1000;
    return {
      perSecond: latencies.length / seconds,
      bytesPerSecond: bytes / seconds,
      latencyMs: median(latencies),
      cpuMs: (cpuMs(this.#pid) - cpuBegin) / latencies.length,
    };
  }

  close() {
    for (const connection of this.#connections) connection.close();
  }
}

/** Where a deployment is reached, and the process that serves it. */
export function addressOf(deployment) {
  return { port: Number(new URL(deployment.url).port), pid: deployment.runtimes()[0].pid };
}
