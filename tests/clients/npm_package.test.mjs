// The packed npm package, installed into an empty project: what it does in Node, its types, its sizes, what a bundler keeps.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { build } from "esbuild";
import { makeProject, root, tarball, tool } from "../support/project.mjs";

/** What an app with high demands asks of its own types and of those it imports. */
const STRICT = {
  compilerOptions: {
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noPropertyAccessFromIndexSignature: true,
    noImplicitOverride: true,
    verbatimModuleSyntax: true,
    isolatedModules: true,
    skipLibCheck: false,
    noEmit: true,
    target: "es2022",
    lib: ["es2022", "dom", "dom.asynciterable"],
    types: [],
  },
  files: ["program.ts"],
};

const MODULE = "conclave_web_client_bg.wasm";

describe("the npm package", () => {
  let project;
  /** The names after `@conclave/client` that have types: "", "/backend" and so on. */
  let entries;

  before(() => {
    project = makeProject();
    const { exports } = JSON.parse(fs.readFileSync(path.join(project.path, "node_modules/@conclave/client/package.json"), "utf8"));
    entries = Object.entries(exports).filter(([, target]) => typeof target === "object").map(([name]) => name.slice(1));
  });
  after(() => project?.remove());

  const runNode = (script) =>
    spawnSync(process.execPath, ["--input-type=module", "--eval", script], { cwd: project.path, encoding: "utf8" });

  test("importing any entry in Node has no effect but its exports", () => {
    // What a worker runs is no module to import: it speaks at once to whoever started it.
    for (const entry of entries.filter((name) => name !== "/worker")) {
      const { stdout, stderr, status } = runNode(`
        const before = Object.keys(globalThis).length;
        const { ConclaveError } = await import("@conclave/client${entry}");
        if (Object.keys(globalThis).length !== before) throw new Error("a global was added");
        console.log(typeof ConclaveError);
      `);
      assert.equal(status, 0, stderr);
      assert.equal(stdout.trim(), "function", `@conclave/client${entry}`);
    }
  });

  test("the client of the backend runs in Node, and refuses a deployment that is away by a typed error", () => {
    const { stdout, stderr, status } = runNode(`
      const { Backend, BackendError, topics } = await import("@conclave/client/backend");
      console.log(topics.groupMessages(new Uint8Array(16)));
      await Backend.connect({ url: "http://127.0.0.1:1" })
        .catch((error) => console.log(error instanceof BackendError, error.code, error.retryable));
    `);
    assert.equal(status, 0, stderr);
    assert.equal(stdout, `${"00".repeat(17)}\ntrue unavailable true\n`);
  });

  test("opening an endpoint outside a browser is a typed error", () => {
    const { stdout, stderr, status } = runNode(`
      const { Endpoint } = await import("@conclave/client");
      await Endpoint.open({ url: "http://127.0.0.1:1", name: "alice" }).catch((error) => console.log(error.code));
    `);
    assert.equal(status, 0, stderr);
    assert.equal(stdout.trim(), "indexeddb-unavailable");
  });

  test("its types resolve in every kind of ESM project", () => {
    const flags = [tarball(), "--profile", "esm-only", "--exclude-entrypoints", MODULE, "--no-emoji", "--no-color"];
    const { stdout, stderr, status } = spawnSync(tool("attw"), flags, { encoding: "utf8" });
    assert.equal(status, 0, stdout + stderr);
  });

  for (const resolution of [{ module: "nodenext" }, { module: "esnext", moduleResolution: "bundler" }]) {
    test(`its types carry a strict TypeScript program, and refuse a wrong one (module ${resolution.module})`, () => {
      const compile = (source) => {
        project.write("program.ts", source);
        const { files, compilerOptions } = STRICT;
        project.write("tsconfig.json", JSON.stringify({ files, compilerOptions: { ...compilerOptions, ...resolution } }));
        return spawnSync(tool("tsc"), ["--project", "."], { cwd: project.path, encoding: "utf8" });
      };
      const everything = entries.map((entry, at) => `import type * as entry${at} from "@conclave/client${entry}";\nexport type Entry${at} = typeof entry${at};`);
      const right = compile(`
        ${everything.join("\n")}
        import { Endpoint, SendError } from "@conclave/client";
        const endpoint = await Endpoint.open({ url: new URL("https://conclave.example"), name: "alice" });
        try {
          const { postId } = await endpoint.send("agent:bob", "hello", { signal: AbortSignal.timeout(1000) });
          const text: string = postId;
          console.log(text);
        } catch (error) {
          if (error instanceof SendError && error.code === "unknown-agent") console.log(error.retryable);
        }
        for await (const { message, acknowledge } of endpoint.messages()) {
          const sender: \`agent:\${string}\` = message.sender;
          console.log(sender);
          await acknowledge();
        }
        await endpoint.close();
      `);
      assert.equal(right.status, 0, right.stdout);
      const wrong = compile(`
        import { Endpoint } from "@conclave/client";
        const endpoint = await Endpoint.open({ url: "https://conclave.example" });
        await endpoint.send("bob", 1);
      `);
      assert.notEqual(wrong.status, 0);
    });
  }

  /** The files of the package that a bundler keeps of a program. */
  const kept = async (contents) => {
    const { metafile } = await build({
      stdin: { contents, resolveDir: project.path },
      bundle: true,
      format: "esm",
      outdir: "unused",
      write: false,
      metafile: true,
      minify: true,
      logLevel: "error",
    });
    return Object.values(metafile.outputs)
      .flatMap(({ inputs }) => Object.entries(inputs))
      .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .map(([file]) => file)
      .filter((file) => file.includes("@conclave/client"));
  };

  test("what is not used of it is not bundled", async () => {
    const whole = await kept(`import { Endpoint } from "@conclave/client"; console.log(Endpoint);`);
    assert.ok(whole.some((file) => file.endsWith("conclave_web_client.js")), "an endpoint needs the module's glue");
    const error = await kept(`import { ConclaveError } from "@conclave/client"; console.log(ConclaveError);`);
    assert.deepEqual(error.map((file) => path.basename(file)), ["errors.js"]);
    assert.deepEqual(await kept(`import "@conclave/client";`), []);
    for (const entry of ["", "/backend"]) {
      const backend = await kept(`import { Backend } from "@conclave/client${entry}"; console.log(Backend);`);
      assert.ok(backend.length > 0);
      const ofEngine = backend.filter((file) => /conclave_web_client|\/(core|endpoint|seat|history|messages)\.js$|\/tabs\//.test(file));
      assert.deepEqual(ofEngine, [], `@conclave/client${entry}`);
    }
  });

  for (const [page, script] of [["the sizes in its README", "sizes"], ["the table of its errors", "errors"]]) {
    test(`${page} is that of what was built`, () => {
      const file = path.join(root, `web-client/tools/${script}.mjs`);
      const { stderr, status } = spawnSync(process.execPath, [file, "--check"], { encoding: "utf8" });
      assert.equal(status, 0, stderr);
    });
  }
});
