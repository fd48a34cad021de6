// A group of three on one page, the history that each member holds, and a file of it that anyone can verify.
// The backend is named by the page's `?url=`.

import { ConclaveError, Endpoint, type GroupAddress } from "@conclave/client";
import { verify } from "@conclave/client/verify";

const url = new URLSearchParams(location.search).get("url") ?? "http://127.0.0.1:8787";

function show(line: string): void {
  const item = document.createElement("li");
  item.textContent = line;
  document.querySelector("ol")?.append(item);
}

/** Acknowledges what a member hears, until it has heard this many messages. */
async function hear(member: Endpoint, messages: number): Promise<void> {
  let heard = 0;
  for await (const { acknowledge } of member.messages()) {
    await acknowledge();
    heard += 1;
    if (heard === messages) return;
  }
}

try {
  // Names belong to the first key that registers them, so each visit founds a group of its own.
  const visit = crypto.randomUUID().slice(0, 8);
  const [ann, ben, cem] = await Promise.all([
    Endpoint.open({ url, name: `ann-${visit}` }),
    Endpoint.open({ url, name: `ben-${visit}` }),
    Endpoint.open({ url, name: `cem-${visit}` }),
  ]);
  await using _ann = ann;
  await using _ben = ben;
  await using _cem = cem;

  // A group is named by its other members; the set of them all is fixed for ever.
  const forAnn: GroupAddress = `group:${ben.name},${cem.name}`;
  const forBen: GroupAddress = `group:${ann.name},${cem.name}`;
  const forCem: GroupAddress = `group:${ann.name},${ben.name}`;
  const heard = Promise.all([hear(ann, 1), hear(ben, 1), hear(cem, 2)]);
  await ann.send(forAnn, "shall we meet on Friday?");
  await ben.send(forBen, [{ type: "text", text: "yes" }, { type: "data", value: { at: "14:00", room: 3 } }]);
  await heard;

  // Read from the member's own store, each post verified as it is read. Iterated it is every post; awaited, a page.
  for await (const post of cem.history(forCem)) {
    const said = post.content.map((part) => (part.type === "text" ? part.text : JSON.stringify(part.value))).join(" ");
    show(`${post.position}. ${post.author} said ${said}, signed by ${post.actionSigners.length} of 3`);
  }

  // The same history as a file. Whoever has the Registry's key can verify it, without the backend, in Node too.
  const file = await cem.export(forCem);
  const result = await verify(file, await cem.registryKey());
  show(result.verified ? `verified: ${result.posts.length} posts of ${result.members.length} members` : `line ${result.line}: ${result.reason}`);
  show("done");
} catch (error) {
  show(error instanceof ConclaveError ? `${error.code}: ${error.message}` : String(error));
}
