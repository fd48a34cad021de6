// `cargo xtask bench verification`: what judging an envelope costs beside its cryptography, in WebAssembly under Node, compiled
// as the Worker is. CONCLAVE_FIGURES names the module of crates/figures.

import fs from "node:fs";

/** Case numbers are those of crates/figures/src/cases.rs. `most`: what the ratio should not exceed. */
const CASES = [
  { number: 0, what: "a group message of 1 KiB, over SHA-256 twice", most: 10 },
  { number: 1, what: "a key package, over its two signatures" },
  { number: 2, what: "an identity update after 1 predecessor, nothing remembered, over all signatures", most: 1.25 },
  { number: 3, what: "the same, the log remembered, over its own signatures" },
  { number: 4, what: "an identity update after 255 predecessors, nothing remembered, over all signatures", most: 1.25 },
  { number: 5, what: "the same, the log remembered, over its own signatures" },
];

const quick = process.argv.includes("--quick");
const TURNS = quick ? 5 : 15;
/** How much CPU a turn should take at least, in milliseconds. */
const TURN_MS = quick ? 20 : 100;

const { instance } = await WebAssembly.instantiate(fs.readFileSync(process.env.CONCLAVE_FIGURES), {});
const { prepare, floor, act } = instance.exports;

/** Microseconds of CPU a round takes: other programs on the machine do not count. */
const timed = (work, rounds) => {
  const start = process.cpuUsage().user;
  work(rounds);
  return (process.cpuUsage().user - start) / rounds;
};
const median = (values) => values.toSorted((one, other) => one - other)[values.length >> 1];
/** How many rounds make a turn. */
const roundsOf = (work) => {
  let rounds = 1;
  while (timed(work, rounds) * rounds < TURN_MS * 1000) rounds *= 2;
  return rounds;
};
const digits = (value) => String(Number(value.toPrecision(3)));

for (const { number, what, most } of CASES) {
  if (!prepare(number)) throw new Error(`there is no case ${number}`);
  const rounds = [floor, act].map(roundsOf);
  const turns = Array.from({ length: TURNS }, () => [timed(floor, rounds[0]), timed(act, rounds[1])]);
  const ratio = median(turns.map(([under, ours]) => ours / under));
  console.log(JSON.stringify({
    what,
    unit: "µs of CPU",
    floor: digits(median(turns.map(([under]) => under))),
    backend: digits(median(turns.map(([, ours]) => ours))),
    ratio: ratio.toFixed(2),
    goal: most === undefined ? undefined : `at most ${most}`,
    is_met: most === undefined ? undefined : ratio <= most,
  }));
}
