// Text between two marks of a page, written by a program and checked by a test.

import fs from "node:fs";

/**
 * Replaces what stands in `page` between `<!-- begin NAME -->` and `<!-- end NAME -->`, or with `--check` fails when it
 * is another. `isCurrent` says whether what stands there is near enough; equal by default.
 */
export function put(page, name, text, isCurrent = (held, wanted) => held === wanted) {
  const [begin, end] = [`<!-- begin ${name} -->\n`, `\n<!-- end ${name} -->`];
  const content = fs.readFileSync(page, "utf8");
  const from = content.indexOf(begin) + begin.length;
  const to = content.indexOf(end);
  if (from < begin.length || to < from) throw new Error(`${page} has no lines "${begin.trim()}" and "${end.trim()}"`);
  const held = content.slice(from, to);
  if (isCurrent(held, text)) return;
  if (process.argv.includes("--check")) {
    console.error(`${page} is not current: run \`cargo xtask docs\`\n--- it says\n${held}\n--- it should say\n${text}`);
    process.exitCode = 1;
    return;
  }
  fs.writeFileSync(page, content.slice(0, from) + text + content.slice(to));
  console.error(`${page} is written`);
}
