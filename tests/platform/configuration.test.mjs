// Variables as wrangler hands them to the Worker. Their ranges and defaults are those of crates/configuration.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { connect } from "../support/clients.mjs";
import { addressOf, startEmulator } from "../support/emulator.mjs";
import { frame, grpcStatus, request } from "../support/raw.mjs";
import { contractServices } from "../support/wire.mjs";

const UNAVAILABLE = 14;
const NAME = { CONCLAVE_IDENTIFIER: "configured" };

const serve = async (variables, use) => {
  const emulator = startEmulator({ variables });
  try {
    await use(await addressOf(emulator));
  } finally {
    await emulator.dispose();
  }
};

describe("variables", () => {
  test("numbers and booleans may be written without quotes", () =>
    serve({ ...NAME, CONCLAVE_SHARDS: 3, CONCLAVE_MAX_QUERY_LIMIT: 777, CONCLAVE_MLS_COMMIT_LOG_ENABLED: false }, async (url) => {
      const client = connect(url);
      const { limits, mls } = await client.configuration.getConfiguration({});
      assert.equal(limits.maxQueryLimit, 777);
      assert.equal(mls.commitLogEnabled, false);
      assert.equal((await client.operator.getStatus({})).shardCount, 3);
    }));

  for (const [what, variables] of Object.entries({
    "no identifier": {},
    "a value out of its range": { ...NAME, CONCLAVE_SHARDS: "0" },
    "a list in place of a number": { ...NAME, CONCLAVE_SHARDS: [16] },
    "a name that nothing reads": { ...NAME, CONCLAVE_SHARD: "16" },
    "limits that do not fit each other": { ...NAME, CONCLAVE_DEFAULT_QUERY_LIMIT: 1001 },
    "a secret that is none": { ...NAME, CONCLAVE_REGISTRY_ADMISSION_TOKEN: "short" },
  })) {
    // API-281
    test(`with ${what} every call is UNAVAILABLE`, () =>
      serve(variables, async (url) => {
        const contract = contractServices.flatMap(({ typeName, methods }) => methods.map(({ name }) => `/${typeName}/${name}`));
        for (const path of [...contract, "/grpc.health.v1.Health/Check", "/conclave.registry.v1.RegistryService/Register"]) {
          const headers = { "content-type": "application/grpc-web" };
          const { body } = await request(url, path, { headers, body: frame(Buffer.alloc(0)) });
          assert.equal(grpcStatus(body), UNAVAILABLE, path);
        }
      }));
  }
});
