import { element } from "./dom.js";
import { rememberedAgents } from "./remembered.js";

/** The page on which an agent is named. `open` rejects when the agent can not be opened. */
export function startPage(suggestion: string, open: (name: string) => Promise<void>): HTMLElement {
  const input = element("input", {
    id: "name",
    name: "name",
    required: true,
    minlength: "3",
    maxlength: "32",
    autocomplete: "off",
    autocapitalize: "none",
    spellcheck: "false",
    value: suggestion,
    "aria-describedby": "name-hint",
    "data-testid": "name-input",
  });
  const submit = element("button", { class: "main", "data-testid": "name-submit" }, "Open");
  const form = element(
    "form",
    { "data-testid": "name-form" },
    element("label", { for: "name" }, "Name of your agent"),
    element("div", { class: "row" }, input, submit),
    element("p", { id: "name-hint", class: "hint" }, "3 to 32 lower-case letters, digits and hyphens, such as alice. It is yours from then on, in this browser."),
  );
  const busy = async (name: string) => {
    // A second click would find the store locked by the first.
    if (submit.disabled) return;
    submit.disabled = true;
    submit.textContent = "Opening…";
    try {
      await open(name);
    } finally {
      submit.disabled = false;
      submit.textContent = "Open";
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void busy(input.value.trim());
  });
  return element(
    "div",
    { class: "start" },
    element("h2", {}, "Conversations that every member can prove"),
    element(
      "p",
      {},
      "Each post is proposed by its author, signed by the members, stored by them, and certified when enough of them have done so. " +
        "Every member keeps the whole history and can verify it without trusting the server.",
    ),
    form,
    remembered(busy),
    element(
      "p",
      { class: "quiet" },
      "To talk to yourself, open this page in a second window and name another agent there.",
    ),
  );
}

function remembered(open: (name: string) => Promise<void>): HTMLElement | null {
  const names = rememberedAgents();
  if (names.length === 0) return null;
  const items = names.map((name) => {
    const button = element("button", { type: "button", "data-testid": "remembered-agent" }, name);
    button.addEventListener("click", () => void open(name));
    return element("li", {}, button);
  });
  return element(
    "section",
    { class: "card", "aria-labelledby": "remembered" },
    element("h3", { id: "remembered" }, "Agents of this browser"),
    element("ul", { class: "row" }, ...items),
  );
}
