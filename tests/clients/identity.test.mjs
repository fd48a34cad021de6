// Inboxes, key packages and lookups, by connect-es over gRPC-Web, with signatures of viem, @noble/curves and Node.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Code, connect, failure, publishError } from "../support/clients.mjs";
import { Deployment } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";
import {
  ETHEREUM,
  HANDLE,
  PASSKEY,
  account,
  add,
  claim,
  create,
  identityTopic,
  identityUpdate,
  inboxId,
  installation,
  keyPackage,
  keyPackageTopic,
  passkey,
  revoke,
  wallet,
} from "../support/identities.mjs";

const MALFORMED_PAYLOAD = 1;
const INVALID_KEY_PACKAGE = 2;
const INVALID_IDENTITY_UPDATE = 3;
const INVALID_SIGNATURE = 4;
const HANDLE_TAKEN = 6;
const HANDLE_NOT_ALLOWED = 7;
const HANDLE_TOO_SOON = 8;

for (const shards of [1, 16]) {
  describe(`with ${shards} topic shard(s)`, () => {
    let deployment;
    let client;

    before(async () => {
      deployment = await Deployment.start({
        shards,
        variables: { CONCLAVE_HANDLES_MIN_NAME_LENGTH: "4", CONCLAVE_HANDLES_RESERVED_NAMES: "operator" },
      });
      client = connect(deployment.url);
    });
    after(() => deployment?.stop());

    const publish = (...list) => client.publish.publish({ envelopes: list });
    const read = async (topic) => (await client.query.query({ queries: [{ topic }], limit: 1000 })).envelopes;
    const lookUp = async (...entries) => {
      const requests = entries.map(([identifier, identifierKind]) => ({ identifier, identifierKind }));
      const { responses } = await client.identity.getInboxIds({ requests });
      assert.deepEqual(
        responses.map(({ identifier, identifierKind }) => [identifier, identifierKind]),
        entries,
      );
      return responses.map((response) => response.inboxId);
    };
    const refusal = async (...list) => {
      const error = await failure(() => publish(...list));
      assert.equal(error.code, Code.InvalidArgument, error.message);
      const { index, reason } = publishError(error);
      return [index, reason];
    };

    /** Someone with an account, an inbox and an installation, all published. */
    const register = async () => {
      const [owner, key] = [account(), installation()];
      const inbox = inboxId(owner);
      await publish(await identityUpdate(inbox, [create(owner), add(key, owner)]));
      await publish(keyPackage(key, inbox));
      return { owner, key, inbox };
    };

    // API-230, API-270, API-296, API-299, API-202, API-244
    test("two people open inboxes, find each other, talk, and part", async () => {
      const [alice, bob] = [await register(), await register()];

      // Alice finds Bob by the address he shows, checks his log, and takes his newest key package.
      assert.deepEqual(await lookUp([bob.owner.checksummed, ETHEREUM]), [bob.inbox]);
      const log = await read(identityTopic(bob.inbox));
      assert.equal(log.length, 1);
      assert.equal(log[0].envelope.payload.value.inboxId, bob.inbox);
      const newer = keyPackage(bob.key, bob.inbox);
      await publish(newer);
      const topics = [keyPackageTopic(bob.key.key)];
      const { results } = await client.query.queryNewest({ topics, includeFullEnvelope: true });
      assert.deepEqual(
        results[0].envelope.payload.value.keyPackageTlsSerialized,
        newer.payload.value.keyPackageTlsSerialized,
      );

      // She adds him: the commit and the Welcome travel together.
      const group = envelopes.groupId();
      const added = await publish(envelopes.commit(group, "add Bob"), envelopes.welcome(bob.key.key, "come in"));
      assert.equal(added.envelopeMetas[0].serverNs, added.envelopeMetas[1].serverNs);
      const [welcome] = await read(envelopes.welcomeTopic(bob.key.key));
      assert.deepEqual(welcome.meta, added.envelopeMetas[1]);
      await publish(envelopes.groupMessage(group, "hello Alice"));
      assert.equal(envelopes.textOf((await read(envelopes.groupTopic(group)))[1]), "hello Alice");

      // Bob takes a handle, and is found by it however it is typed.
      const handle = shards === 1 ? "robert" : "robert.42";
      const claimed = await identityUpdate(bob.inbox, [claim(handle, bob.key)]);
      const { envelopeMetas } = await publish(claimed);
      assert.deepEqual(await lookUp([handle.toUpperCase(), HANDLE]), [bob.inbox]);
      assert.deepEqual(
        await refusal(await identityUpdate(alice.inbox, [claim(handle, alice.owner)])),
        [0, HANDLE_TAKEN],
      );

      // He adds a passkey, gives up his account, and stays reachable by the passkey and the handle.
      const own = passkey();
      await publish(await identityUpdate(bob.inbox, [add(own, bob.owner)]));
      await publish(await identityUpdate(bob.inbox, [revoke(bob.owner, bob.owner)]));
      assert.deepEqual(
        await lookUp([bob.owner.text, ETHEREUM], [own.text.toUpperCase(), PASSKEY], [handle, HANDLE]),
        [undefined, bob.inbox, bob.inbox],
      );
      // The installation he had added with the account went with it.
      const byRevoked = await identityUpdate(bob.inbox, [add(account(), bob.key)]);
      assert.deepEqual(await refusal(byRevoked), [0, INVALID_IDENTITY_UPDATE]);

      // A copy of what was stored is that, whatever came after it.
      assert.deepEqual((await publish(claimed)).envelopeMetas, envelopeMetas);
      assert.equal((await read(identityTopic(bob.inbox))).length, 4);
    });

    // API-230, API-223
    test("each failure names its envelope and its reason, and nothing is stored", async () => {
      const { owner, key, inbox } = await register();
      const group = envelopes.groupId();
      const beside = envelopes.groupMessage(group, "beside");
      const wrongText = await identityUpdate(inbox, [add(installation(), owner)]);
      wrongText.payload.value.clientTimestampNs += 1_000_000_000n;
      const now = Math.floor(Date.now() / 1000);
      for (const [envelope, reason] of [
        [keyPackage(key, inbox, { damage: true }), INVALID_KEY_PACKAGE],
        [keyPackage(key, inbox, { notBefore: 0, notAfter: now - 1 }), INVALID_KEY_PACKAGE],
        [{ payload: { case: "keyPackage", value: { keyPackageTlsSerialized: new Uint8Array([0]) } } }, MALFORMED_PAYLOAD],
        [{ payload: { case: "identityUpdate", value: { inboxId: "short" } } }, MALFORMED_PAYLOAD],
        [{ payload: { case: "identityUpdate", value: { inboxId: "00".repeat(32) } } }, INVALID_IDENTITY_UPDATE],
        [wrongText, INVALID_SIGNATURE],
        [await identityUpdate(inbox, [create(owner)]), INVALID_IDENTITY_UPDATE],
        [await identityUpdate(inbox, [claim("bob", owner)]), HANDLE_NOT_ALLOWED],
        [await identityUpdate(inbox, [claim("operator.42", owner)]), HANDLE_NOT_ALLOWED],
      ]) {
        assert.deepEqual(await refusal(beside, envelope), [1, reason]);
      }
      const two = [await identityUpdate(inbox, [add(account(), owner)]), await identityUpdate(inbox, [revoke(key, owner)])];
      assert.deepEqual(await refusal(two[0], beside, two[1]), [2, INVALID_IDENTITY_UPDATE]);
      assert.equal((await read(identityTopic(inbox))).length, 1);
      assert.equal((await read(envelopes.groupTopic(group))).length, 0);
    });

    // API-298
    test("a second claim within seven days is too soon", async () => {
      const { owner, inbox } = await register();
      const name = `soon-${shards}`;
      await publish(await identityUpdate(inbox, [claim(name, owner)]));
      assert.deepEqual(await refusal(await identityUpdate(inbox, [claim(`${name}.77`, owner)])), [0, HANDLE_TOO_SOON]);
    });

    // API-297
    test("the shortest name that may be claimed is published", async () => {
      assert.equal((await client.configuration.getConfiguration({})).handles.minNameLength, 4);
    });

    // API-231
    test("a wallet whose chain is out of reach is unavailable and not invalid", async () => {
      const owner = wallet();
      const error = await failure(async () => publish(await identityUpdate(inboxId(owner), [create(owner)])));
      assert.equal(error.code, Code.Unavailable);
      assert.equal((await read(identityTopic(inboxId(owner)))).length, 0);
    });

    // API-232
    test("of updates of one inbox at once one is stored, and the others abort until they are", async () => {
      const { owner, inbox } = await register();
      let left = await Promise.all(
        Array.from({ length: 6 }, () => identityUpdate(inbox, [add(installation(), owner)])),
      );
      let stored = 1;
      while (left.length > 0) {
        const outcomes = await Promise.allSettled(left.map((update) => publish(update)));
        left = left.filter((_, index) => outcomes[index].status === "rejected");
        for (const { status, reason } of outcomes) {
          if (status === "rejected") assert.equal(reason.code, Code.Aborted);
        }
        const succeeded = outcomes.length - left.length;
        assert.ok(succeeded >= 1);
        stored += succeeded;
        assert.equal((await read(identityTopic(inbox))).length, stored);
      }
    });

    // API-296
    test("a handle that many clients claim at once has one inbox", async () => {
      const contenders = await Promise.all(Array.from({ length: 8 }, register));
      const handle = `contested-${shards}`;
      const updates = await Promise.all(
        contenders.map(({ owner, inbox }) => identityUpdate(inbox, [claim(handle, owner)])),
      );
      const outcomes = await Promise.allSettled(
        updates.map((update) => connect(deployment.url).publish.publish({ envelopes: [update] })),
      );
      const winners = contenders.filter((_, index) => outcomes[index].status === "fulfilled");
      assert.equal(winners.length, 1);
      for (const { status, reason } of outcomes) {
        if (status === "rejected") assert.equal(publishError(reason).reason, HANDLE_TAKEN);
      }
      assert.deepEqual(await lookUp([handle, HANDLE]), [winners[0].inbox]);
    });

    // API-270
    test("the latest live association is found, and revoking it brings back the one before", async () => {
      const owner = account();
      const inboxes = [0n, 1n].map((nonce) => inboxId(owner, nonce));
      for (const nonce of [0n, 1n]) {
        await publish(await identityUpdate(inboxes[Number(nonce)], [create(owner, nonce)]));
        assert.deepEqual(await lookUp([owner.checksummed, ETHEREUM]), [inboxes[Number(nonce)]]);
      }
      await publish(await identityUpdate(inboxes[1], [revoke(owner, owner)]));
      assert.deepEqual(
        await lookUp([owner.text.toUpperCase(), ETHEREUM], [account().text, ETHEREUM], [owner.text, 0]),
        [inboxes[0], undefined, inboxes[0]],
      );
    });

    // API-299, API-281
    test("what is no handle, and more entries than the limit, fail the whole lookup", async () => {
      for (const requests of [
        [{ identifier: "fine", identifierKind: HANDLE }, { identifier: "not fine", identifierKind: HANDLE }],
        Array.from({ length: 251 }, () => ({ identifier: "0x00", identifierKind: ETHEREUM })),
      ]) {
        const error = await failure(() => client.identity.getInboxIds({ requests }));
        assert.equal(error.code, Code.InvalidArgument);
      }
    });
  });
}
