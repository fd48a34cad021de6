// Static files as Cloudflare's assets serve them, over a folder that workerd reads: names to types, `index.html` for a
// folder, `name.html` for `name`, 404 otherwise. With a WORKER binding it stands before the worker and passes on what
// names no file.

const TYPES = {
  css: "text/css; charset=utf-8",
  gif: "image/gif",
  html: "text/html; charset=utf-8",
  ico: "image/x-icon",
  jpg: "image/jpeg",
  js: "text/javascript; charset=utf-8",
  json: "application/json",
  map: "application/json",
  md: "text/markdown; charset=utf-8",
  mjs: "text/javascript; charset=utf-8",
  png: "image/png",
  svg: "image/svg+xml",
  tgz: "application/gzip",
  ts: "text/plain; charset=utf-8",
  txt: "text/plain; charset=utf-8",
  wasm: "application/wasm",
  webmanifest: "application/manifest+json",
  webp: "image/webp",
  woff2: "font/woff2",
  xml: "application/xml",
};

const typeOf = (path) => TYPES[path.slice(path.lastIndexOf(".") + 1).toLowerCase()] ?? "application/octet-stream";

/** The file for a path, or null. The disk service answers a folder with a list as JSON without a length. */
async function find(site, path) {
  const candidates = path.endsWith("/") ? [`${path}index.html`] : [path, `${path}.html`, `${path}/index.html`];
  for (const candidate of candidates) {
    const response = await site.fetch(`http://site${candidate}`);
    if (response.ok && response.headers.get("content-type") !== "application/json") return { candidate, response };
    await response.body?.cancel();
  }
  return null;
}

export default {
  async fetch(request, env) {
    const path = new URL(request.url).pathname;
    const reads = request.method === "GET" || request.method === "HEAD";
    const file = reads ? await find(env.SITE, path) : null;
    if (!file) return env.WORKER ? env.WORKER.fetch(request) : new Response("Not found\n", { status: 404 });
    const headers = {
      "content-type": typeOf(file.candidate),
      "cache-control": "no-cache",
      "x-content-type-options": "nosniff",
    };
    if (request.method === "HEAD") await file.response.body?.cancel();
    return new Response(request.method === "HEAD" ? null : file.response.body, { headers });
  },
};
