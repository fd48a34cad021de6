// Two agents on one page: one asks, the other answers. The backend is named by the page's `?url=`.

import { ConclaveError, Endpoint } from "@conclave/client";

const url = new URLSearchParams(location.search).get("url") ?? "http://127.0.0.1:8787";

function show(line: string): void {
  const item = document.createElement("li");
  item.textContent = line;
  document.querySelector("ol")?.append(item);
}

/** Names belong to the first key that registers them, so each visitor gets names of their own, and keeps them. */
function visitor(): string {
  const known = localStorage.getItem("visitor");
  if (known !== null) return known;
  const fresh = crypto.randomUUID().slice(0, 8);
  localStorage.setItem("visitor", fresh);
  return fresh;
}

/** Answers a question with its length. */
async function answerQuestion(endpoint: Endpoint): Promise<void> {
  for await (const { message, acknowledge } of endpoint.messages()) {
    const [part] = message.content;
    if (part?.type === "text") await endpoint.send(message.sender, `that has ${part.text.length} letters`);
    // Acknowledged after it is answered: a page that closes in between gets the question again.
    await acknowledge();
    return;
  }
}

try {
  // Closed at the end of the page's script, whatever happens.
  await using asker = await Endpoint.open({ url, name: `asker-${visitor()}` });
  await using answerer = await Endpoint.open({ url, name: `answerer-${visitor()}` });
  const answering = answerQuestion(answerer);

  const question = "how long is this?";
  const { postId } = await asker.send(answerer.address, question);
  show(`asked: ${question}`);
  console.log("certified as", postId);

  for await (const { message, acknowledge } of asker.messages()) {
    const [part] = message.content;
    show(`answered: ${part?.type === "text" ? part.text : "no text"}`);
    await acknowledge();
    break;
  }
  // The asker can hold the post before the answerer knows that it is certified.
  await answering;
  show("done");
} catch (error) {
  show(error instanceof ConclaveError ? `${error.code}: ${error.message}` : String(error));
}
