// Every error code of the package, with what it means and what to do about it, written into docs/errors.md.
//
//     node web-client/tools/errors.mjs            writes the tables
//     node web-client/tools/errors.mjs --check    fails when they are stale
//
// They come from the comments above the codes in ts/errors.ts. Such a comment says when the code is met, then `Retryable:` or
// `Final:` and what to do. Retryable: the same call, with the same arguments, can succeed later.

import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { put } from "./generated.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const source = fs.readFileSync(path.join(root, "web-client/ts/errors.ts"), "utf8");

const COMMENT = String.raw`/\*\*((?:[^*]|\*(?!/))*)\*/`;
/** The text of a comment on one line; a link is its name, a bar would end a cell. */
const prose = (comment) =>
  comment
    .replace(/^\s*\*\s?/gm, "")
    .replace(/\{@link (\w+)\}/g, "`$1`")
    .replaceAll("|", "\\|")
    .replace(/\s+/g, " ")
    .trim();

const problems = [];

/** One row: the code, when it is met, whether it is retryable, what to do. */
function row(code, comment) {
  const text = prose(comment);
  const match = /^(.*?)\s*\b(Retryable|Final):\s*(.+)$/.exec(text);
  if (!match) {
    problems.push(`\`${code}\`: say after what it means \`Retryable:\` or \`Final:\`, and what to do; it says "${text}"`);
    return `| \`${code}\` | ${text} | | |`;
  }
  const [, when, kind, advice] = match;
  return `| \`${code}\` | ${when} | ${kind === "Retryable" ? "yes" : "no"} | ${advice[0].toUpperCase()}${advice.slice(1)} |`;
}

/** The classes by their code unions, with what is said of them. */
const classes = [...source.matchAll(new RegExp(String.raw`${COMMENT}\s*export class (\w+) extends ConclaveError<(\w+)>`, "g"))]
  .map(([, comment, name, union]) => ({ name, union, about: prose(comment) }));

const sections = classes.map(({ name, union, about }) => {
  // A comment may hold semicolons, so the union is read comment by comment to its end.
  const start = source.indexOf(`export type ${union} =`);
  const codes = [];
  const next = new RegExp(String.raw`\s*(?:${COMMENT}\s*)?\|?\s*"([a-z-]+)"`, "y");
  next.lastIndex = start + `export type ${union} =`.length;
  for (let match = next.exec(source); match; match = next.exec(source)) codes.push(row(match[2], match[1] ?? ""));
  if (start < 0 || codes.length === 0) problems.push(`${union} has no codes`);
  return `## ${name}\n\n${about}\n\n| code | when | retryable | what to do |\n|---|---|---|---|\n${codes.join("\n")}`;
});
if (classes.length === 0) problems.push("ts/errors.ts has no classes of errors");

for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
put(path.join(root, "docs/errors.md"), "errors", sections.join("\n\n"));
