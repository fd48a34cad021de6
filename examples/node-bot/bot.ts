// A bot in Node, on the backend client alone: it keeps a journal of topics, a line for every envelope.
//
//     node node-bot/bot.ts URL JOURNAL TOPIC...
//
// Started again it goes on where its journal ends: no envelope is missed and none is written twice.

import { appendFile, readFile } from "node:fs/promises";
import { argv, exit, stderr } from "node:process";
import { Backend, BackendError, type TopicCursor } from "@conclave/client/backend";

const [url, journal, ...topics] = argv.slice(2);
if (url === undefined || journal === undefined || topics.length === 0) {
  stderr.write("usage: node node-bot/bot.ts URL JOURNAL TOPIC...\n");
  exit(2);
}

/** A line of the journal. Sequence ids are larger than what JSON's numbers hold for sure, so they are texts. */
interface Line {
  readonly topic: string;
  readonly sequenceId: string;
  readonly kind: string;
  readonly storedAt: string;
}

/** The last sequence id of each topic in the journal. */
async function positions(path: string): Promise<Map<string, bigint>> {
  const text = await readFile(path, "utf8").catch(() => "");
  const lines = text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as Line);
  return new Map(lines.map(({ topic, sequenceId }) => [topic, BigInt(sequenceId)]));
}

const stop = new AbortController();
process.once("SIGINT", () => stop.abort());
process.once("SIGTERM", () => stop.abort());

try {
  const known = await positions(journal);
  const backend = await Backend.connect({ url });
  const cursors: TopicCursor[] = topics.map((topic) => ({ topic, after: known.get(topic) ?? 0n }));
  console.log(`following ${topics.length} topics of ${backend.configuration.identifier}`);
  for await (const { meta, envelope } of backend.subscribe(cursors, { signal: stop.signal })) {
    const line: Line = {
      topic: meta.topic,
      sequenceId: String(meta.sequenceId),
      kind: envelope?.kind ?? "unknown",
      storedAt: new Date(Number(meta.serverNs / 1_000_000n)).toISOString(),
    };
    await appendFile(journal, `${JSON.stringify(line)}\n`);
    console.log(`${line.kind} ${line.sequenceId}`);
  }
  console.log(backend.statisticsSummary());
} catch (error) {
  if (!(error instanceof BackendError)) throw error;
  console.error(`${error.code}: ${error.message}`);
  exit(1);
}
