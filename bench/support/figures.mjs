// A figure: the same work on the floor and on the backend, in turns, so that whatever else the machine does meets both.
// Each turn is short; what counts are the medians. Figures go to standard output, one JSON object a line, for
// `cargo xtask bench`.

import { Side, median } from "./load.mjs";

/** Whether this run is to be short, and so less exact. */
export const isQuick = process.argv.includes("--quick");

// A warm-up is long because WebAssembly is first compiled for speed of compiling, and again while it runs.
const TURNS = isQuick ? 3 : 9;
const TURN_MS = isQuick ? 600 : 1_500;
const WARM_UP_MS = isQuick ? 1_000 : 4_000;

/** What of a run counts: name of the field, unit, how it is shown, and whether more is better. */
export const MEASURES = {
  requests: { of: (run) => run.perSecond, unit: "requests/s", digits: 0, isMoreBetter: true },
  rows: (rows) => ({ of: (run) => run.perSecond * rows, unit: "rows/s", digits: 0, isMoreBetter: true }),
  bytes: { of: (run) => run.bytesPerSecond / 1e6, unit: "MB/s", digits: 1, isMoreBetter: true },
  /** CPU time of the serving process for each of the messages in a request. */
  cpu: (messages) => ({
    of: (run) => (run.cpuMs * 1000) / messages, unit: "us of CPU a message", digits: 1, isMoreBetter: false,
  }),
  latency: { of: (run) => run.latencyMs, unit: "ms, p50", digits: 2, isMoreBetter: false },
};

/**
 * Writes a figure. `goal` is a ratio, or `null` where the figure is for information; `cpuRatio` is the CPU time of a
 * request of the backend over that of the floor.
 */
export function report({ what, floor, backend, ratio, cpuRatio, goal, isMoreBetter, unit, digits }) {
  const figure = {
    what,
    unit,
    floor: floor.toFixed(digits),
    backend: backend.toFixed(digits),
    ratio: ratio.toFixed(2),
    cpu_ratio: Number.isFinite(cpuRatio) ? cpuRatio.toFixed(1) : null,
    goal: goal === null ? null : `${isMoreBetter ? "at least" : "at most"} ${goal}`,
    is_met: goal === null ? null : isMoreBetter ? ratio >= goal : ratio <= goal,
  };
  console.log(JSON.stringify(figure));
}

/** Measures floor and backend in turns, A B A B …, and reports the medians. Both are what `Side.open` takes. */
export async function compare(what, { measure, goal = null, floor, backend }) {
  const sides = [await Side.open(floor), await Side.open(backend)];
  const turns = [];
  try {
    for (const side of sides) await side.run(WARM_UP_MS);
    for (let turn = 0; turn < TURNS; turn += 1) {
      turns.push([await sides[0].run(TURN_MS), await sides[1].run(TURN_MS)]);
    }
  } finally {
    for (const side of sides) side.close();
  }
  const { of, ...shown } = measure;
  report({
    what,
    ...shown,
    goal,
    floor: median(turns.map(([run]) => of(run))),
    backend: median(turns.map(([, run]) => of(run))),
    // The ratio of each pair of neighbouring turns: a load that lasts longer than a turn falls on both of a pair.
    ratio: median(turns.map(([floorRun, run]) => of(run) / of(floorRun))),
    cpuRatio: median(turns.map(([floorRun, run]) => run.cpuMs / floorRun.cpuMs)),
  });
}
