/** Elements without a framework: made by `element`, filled by `replaceChildren`. Text is always text, never markup. */

type Child = Node | string | null | undefined;

/** An element with attributes (a boolean is present or absent) and children. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string | boolean | undefined>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(made, name, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** Sets, or with `false` and `undefined` removes, an attribute. */
export function setAttribute(target: Element, name: string, value: string | boolean | undefined): void {
  if (value === undefined || value === false) target.removeAttribute(name);
  else target.setAttribute(name, value === true ? "" : value);
}

/** The element of this id, which the page's own markup holds. */
export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no element #${id}`);
  return found;
}

/** Sets a text only when it differs, so that a screen reader does not read it again. */
export function setText(target: Element, text: string): void {
  if (target.textContent !== text) target.textContent = text;
}
