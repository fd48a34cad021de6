// Numbers that look like chance and are the same each time.

/** A generator of whole numbers below a bound. */
export function draws(seed) {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}
