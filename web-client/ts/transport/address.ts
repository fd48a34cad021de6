/** Where deployments answer. Depends on nothing. */

/**
 * A deployment's base address, without a trailing slash.
 *
 * @throws TypeError, in words.
 */
export function baseAddress(url: string | URL): string {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch (cause) {
    throw new TypeError("`url` is not an absolute URL", { cause });
  }
  if (parsed.protocol !== "https:" && parsed.protocol !== "http:") {
    throw new TypeError("`url` must begin with https: or http:");
  }
  return parsed.origin + parsed.pathname.replace(/\/+$/, "");
}
