// CPU time of a runtime's process: what a request costs, whoever else has the machine meanwhile. Linux only.

import fs from "node:fs";

/** What the kernel counts the time of processes in, in milliseconds: USER_HZ is 100 on every Linux. */
const TICK_MS = 10;

/** User and system time of a process so far, in milliseconds, or `undefined` where the kernel does not say. */
export function cpuMs(pid) {
  try {
    const fields = fs.readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1].split(" ");
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  } catch {
    return undefined;
  }
}
