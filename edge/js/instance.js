// Keeps a lost WebAssembly instance from being used again.
//
// The Worker and every Durable Object of an isolate share one WebAssembly instance. An exception that leaves a WebAssembly
// function (a Rust panic, a trap, an exhausted stack, a JavaScript error nobody caught on the way) leaves its frames
// unfinished: cells stay borrowed, futures are never polled again, memory cannot be trusted. The instance is lost, and
//
//   1. nothing enters it again;
//   2. before the turn ends a fresh instance takes its place. The generated glue numbers its instances, and an object or a
//      callback of an earlier one throws instead of touching the new one;
//   3. everyone whose state lived in it is told, each in its own context (`InstanceWatch`), to fail or to start again.
//
// The glue hands the exports of each new instance through `guardExports`; xtask/src/build/glue.rs sees to that.

let generation = 0;
let lost = false;
let losingTurn = false;
let replaceInstance;

const watches = new Set();
const forgotten = new FinalizationRegistry((reference) => watches.delete(reference));

/** Names the function that replaces the instance. Called once, before the first instance exists. */
export function replaceInstanceWith(replace) {
  replaceInstance = replace;
}

/** Counts the instances, from 0. To be read after `ensureInstance`. */
export function instanceGeneration() {
  return generation;
}

/** Whether the code that runs now is the rest of the very turn in which the last instance was lost. */
export function isLosingTurn() {
  return losingTurn;
}

/** Called before WebAssembly is entered from outside: replaces a lost instance whose own turn failed to. */
export function ensureInstance() {
  if (lost) replace();
}

/**
 * `lost` resolves with the error when the present instance is lost, after another took its place, in the context that made
 * the watch. Whoever wants to know keeps the watch; one that is not kept is forgotten.
 */
export class InstanceWatch {
  #reference = new WeakRef(this);
  #resolve;

  constructor() {
    const { promise, resolve } = Promise.withResolvers();
    this.lost = promise;
    this.#resolve = resolve;
    watches.add(this.#reference);
    forgotten.register(this, this.#reference, this);
  }

  /** Ends the watch: `lost` stays unresolved. */
  end() {
    watches.delete(this.#reference);
    forgotten.unregister(this);
  }

  tell(error) {
    this.#resolve(error);
  }
}

function replace() {
  lost = false;
  try {
    replaceInstance();
    generation += 1;
  } catch (error) {
    lost = true;
    throw error;
  }
}

function lose(error) {
  lost = true;
  console.error("the WebAssembly instance is lost:", error?.stack ?? error);
  // A microtask, because then no frame of the lost instance is on the stack, and the turn's writes are still held back.
  queueMicrotask(() => {
    const watching = [...watches].map((reference) => reference.deref()).filter(Boolean);
    watches.clear();
    losingTurn = true;
    try {
      ensureInstance();
    } finally {
      for (const watch of watching) watch.tell(error);
      // Microtasks run in order: those that `tell` caused in this context run before this one.
      queueMicrotask(() => {
        losingTurn = false;
      });
    }
  });
}

function guard(enter) {
  return (...args) => {
    if (lost) throw new Error("the WebAssembly instance is lost");
    try {
      return enter(...args);
    } catch (error) {
      if (!lost) lose(error);
      throw error;
    }
  };
}

/** The exports of a new instance, every function of it watched. */
export function guardExports(exports) {
  const guarded = {};
  for (const [name, value] of Object.entries(exports)) {
    guarded[name] = typeof value === "function" ? guard(value) : value;
  }
  return guarded;
}
