// Signatures of smart contract wallets, judged by a real EVM node, and what comes of a node that fails.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { Code, connect, failure, publishError } from "../support/clients.mjs";
import { Deployment } from "../support/deployment.mjs";
import { bytes, CHAIN_ID, compileWallets, Evm, FACTORY, HANG, Proxy, someHash, wrapped } from "../support/evm.mjs";
import { create, ETHEREUM, identityTopic, identityUpdate, inboxId } from "../support/identities.mjs";

/** A chain that is configured, whose node nobody runs. */
const DEAD_CHAIN_ID = 5;

/** Nothing ever listens there. */
const DEAD_URL = "http://127.0.0.1:1";

describe("signatures of smart contract wallets", () => {
  let evm;
  let proxy;
  let deployment;
  let client;
  let wallets;
  let owner;

  before(async () => {
    wallets = compileWallets();
    evm = await Evm.start();
    proxy = await Proxy.start(evm.url);
    owner = evm.accounts[1];
    deployment = await Deployment.start({
      variables: {
        [`CONCLAVE_CHAIN_${CHAIN_ID}_RPC_URL`]: proxy.url,
        [`CONCLAVE_CHAIN_${DEAD_CHAIN_ID}_RPC_URL`]: DEAD_URL,
      },
    });
    client = connect(deployment.url);
  });
  after(async () => {
    await deployment?.stop();
    await proxy?.stop();
    await evm?.stop();
  });
  afterEach(() => {
    proxy.manner = undefined;
  });

  const entry = (address, hash, signature, blockNumber) =>
    ({ accountId: `eip155:${CHAIN_ID}:${address}`, hash: bytes(hash), signature: bytes(signature), blockNumber });
  const verify = async (...signatures) =>
    (await client.identity.verifySmartContractWalletSignatures({ signatures })).responses;
  const verdicts = async (...signatures) => (await verify(...signatures)).map(({ isValid }) => isValid);

  const isBlock = ({ method }) => method === "eth_getBlockByNumber";
  const isCall = ({ method }) => method === "eth_call";
  const raised = (hex) => `0x${(BigInt(hex) + 1n).toString(16)}`;
  const otherwise = (applies, faulty) => async (call, honest) =>
    applies(call) ? faulty(call, honest) : { body: await honest() };

  test("the chains that are asked are published, and the nodes are not", async () => {
    const configuration = await client.configuration.getConfiguration({});
    assert.deepEqual(configuration.smartContractWalletChains, [`eip155:${DEAD_CHAIN_ID}`, `eip155:${CHAIN_ID}`]);
    assert.ok(!JSON.stringify(configuration, (_, value) => String(value)).includes("127.0.0.1"));
  });

  // API-271
  test("each signature gets its own verdict, at its index", async () => {
    const wallet = await evm.create(wallets.OwnedWallet, owner);
    const { hash, signature } = await evm.sign(owner);
    const { signature: stranger } = await evm.sign(evm.accounts[2]);
    assert.deepEqual(
      await verdicts(
        entry(wallet, hash, signature),
        entry(wallet, hash, stranger),
        entry(wallet.toUpperCase().replace("0X", "0x"), hash, signature),
        entry(wallet, someHash(), signature),
        entry(wallet, hash, "0x"),
        entry(wallet, hash, signature),
      ),
      [true, false, true, false, false, true],
    );
    assert.deepEqual(await verdicts(), []);
  });

  // API-271
  test("the verdict is that of the stated block, and of the newest one if none is stated", async () => {
    const wallet = await evm.create(wallets.OwnedWallet, owner);
    const before = await evm.head();
    await evm.send({ to: wallet, data: await evm.message("setOwner(address)", evm.accounts[2]) });
    const after = await evm.head();
    const { hash, signature } = await evm.sign(owner);
    const asked = [before, undefined, after, before - 1n].map((block) => entry(wallet, hash, signature, block));
    const answered = await verify(...asked);
    assert.deepEqual(answered.map(({ isValid }) => isValid), [true, false, false, false]);
    assert.deepEqual(answered.map(({ blockNumber }) => blockNumber), [before, after, after, before - 1n]);
  });

  // API-271
  test("an account without code is judged by its own key", async () => {
    const { hash, signature } = await evm.sign(owner);
    const parity = bytes(signature);
    parity[64] -= 27;
    const lower = `0x${Buffer.from(parity).toString("hex")}`;
    assert.deepEqual(
      await verdicts(
        entry(owner, hash, signature),
        entry(evm.accounts[2], hash, signature),
        entry(owner, hash, `${signature}00`),
        entry(owner, hash, signature.slice(0, -2)),
        entry(owner, hash, lower),
        entry(`0x${"00".repeat(20)}`, hash, `0x${"00".repeat(65)}`),
        entry(`0x${"00".repeat(20)}`, hash, `0x${"00".repeat(64)}1b`),
      ),
      [true, false, false, false, false, false, false],
    );
  });

  // API-271
  test("a wallet that does not exist yet is judged by what its factory would make of it", async () => {
    const { hash, signature } = await evm.sign(owner);
    const { signature: stranger } = await evm.sign(evm.accounts[2]);
    const { address, message } = await evm.counterfactual(wallets.OwnedWallet, owner);
    const cases = [
      entry(address, hash, wrapped(FACTORY, message, signature)),
      entry(address, hash, wrapped(FACTORY, message, stranger)),
      // Not its factory's message, no factory at all, an account the factory does not make.
      entry(address, hash, wrapped(FACTORY, "0x", signature)),
      entry(address, hash, wrapped(evm.accounts[3], message, signature)),
      entry(evm.accounts[4], hash, wrapped(FACTORY, message, signature)),
      // Not wrapped: there is no wallet, and it is not the account's key.
      entry(address, hash, signature),
    ];
    assert.deepEqual(await verdicts(...cases), [true, false, false, false, false, false]);
    assert.equal(await evm.rpc("eth_getCode", address, "latest"), "0x", "nothing was created");

    await evm.send({ to: FACTORY, data: message });
    assert.deepEqual(await verdicts(...cases), [true, false, true, true, false, true]);
  });

  // API-271
  test("a wallet that has to be prepared is asked again once the wrapped message was sent", async () => {
    const { hash, signature } = await evm.sign(owner);
    const { signature: stranger } = await evm.sign(evm.accounts[2]);
    const wallet = await evm.create(wallets.PreparedWallet, owner);
    const prepare = await evm.message("prepare()");
    const fails = await evm.message("no such function");
    assert.deepEqual(
      await verdicts(
        entry(wallet, hash, signature),
        entry(wallet, hash, wrapped(wallet, prepare, signature)),
        entry(wallet, hash, wrapped(wallet, prepare, stranger)),
        entry(wallet, hash, wrapped(wallet, fails, signature)),
      ),
      [false, true, false, false],
    );
  });

  // API-271
  test("a wrapper that cannot be read makes a signature invalid", async () => {
    const { hash, signature } = await evm.sign(owner);
    const { address, message } = await evm.counterfactual(wallets.OwnedWallet, owner);
    const good = wrapped(FACTORY, message, signature);
    const magic = good.slice(-64);
    const withWord = (index, value) => good.slice(0, 2 + 64 * index) + value.padStart(64, "0") + good.slice(66 + 64 * index);
    const length = BigInt((good.length - 2) / 2 - 32);
    const hostile = [
      `0x${magic}`,
      `0x${"00".repeat(95)}${magic}`,
      `0x${"00".repeat(96)}${magic}`,
      withWord(0, `01${"00".repeat(11)}${FACTORY.slice(2)}`),
      withWord(1, (length - 31n).toString(16)),
      withWord(1, "f".repeat(64)),
      withWord(2, "f".repeat(64)),
      withWord(2, (length - 31n).toString(16)),
      withWord(3, "f".repeat(64)),
      withWord(3, (length - 127n).toString(16)),
      good.slice(0, -64),
    ];
    assert.deepEqual(
      await verdicts(entry(address, hash, good), ...hostile.map((signature) => entry(address, hash, signature))),
      [true, ...hostile.map(() => false)],
    );
  });

  // API-271
  test("only the whole value of acceptance, from a wallet that changes nothing, is acceptance", async () => {
    const refusing = [];
    for (const name of ["FailingWallet", "ShortWallet", "MisalignedWallet", "WritingWallet"]) {
      refusing.push(await evm.create(wallets[name]));
    }
    const hash = someHash();
    assert.deepEqual(await verdicts(...refusing.map((wallet) => entry(wallet, hash, "0x01"))), [false, false, false, false]);
  });

  // API-271
  test("a signature of any length reaches its wallet unchanged", async () => {
    const wallet = await evm.create(wallets.HashWallet);
    const entries = [];
    for (const length of [0, 1, 31, 32, 33, 65, 48_000, 50_000, 100_000]) {
      const signature = `0x${Buffer.alloc(length, length).toString("hex")}`;
      entries.push(entry(wallet, await evm.keccak(signature), signature));
    }
    assert.deepEqual(await verdicts(...entries), entries.map(() => true));
  });

  // API-231, API-271
  test("a wallet that never ends refuses where gas is plenty, and gets no verdict where it is short", async () => {
    const endless = await evm.create(wallets.EndlessWallet);
    const wallet = await evm.create(wallets.OwnedWallet, owner);
    const { hash, signature } = await evm.sign(owner);
    proxy.manner = otherwise(isCall, ({ params: [call, ...rest], ...more }, honest) =>
      honest({ ...more, params: [{ ...call, gas: "0x7a1200" }, ...rest] }).then((body) => ({ body })));
    const error = await failure(() => verify(entry(endless, someHash(), "0x01")));
    assert.equal(error.code, Code.Unavailable);
    assert.deepEqual(await verdicts(entry(wallet, hash, signature), entry(wallet, someHash(), signature)), [true, false]);
    proxy.manner = undefined;
    assert.deepEqual(await verdicts(entry(endless, someHash(), "0x01")), [false]);
  });

  // API-271
  test("a malformed account or hash fails the whole request, whatever stands beside it", async () => {
    const { hash, signature } = await evm.sign(owner);
    const good = entry(owner, hash, signature);
    const malformed = [
      { ...good, accountId: "" },
      { ...good, accountId: owner },
      { ...good, accountId: `eip155:${CHAIN_ID}` },
      { ...good, accountId: `eip155:0${CHAIN_ID}:${owner}` },
      { ...good, accountId: `eip155:${CHAIN_ID}:${owner}00` },
      { ...good, hash: bytes(hash).subarray(1) },
      { ...good, hash: new Uint8Array(0) },
      { ...good, hash: new Uint8Array(33) },
    ];
    for (const bad of malformed) {
      const error = await failure(() => verify(good, bad));
      assert.equal(error.code, Code.InvalidArgument, JSON.stringify(bad.accountId));
    }
  });

  test("no more signatures than the published limit are judged in one request", async () => {
    const { limits } = await client.configuration.getConfiguration({});
    const { hash, signature } = await evm.sign(owner);
    const most = Array.from({ length: limits.maxScwSignatures }, () => entry(owner, hash, signature));
    assert.ok((await verdicts(...most)).every((isValid) => isValid));
    const error = await failure(() => verify(...most, most[0]));
    assert.equal(error.code, Code.InvalidArgument);
  });

  // API-271
  test("the node is asked once about a signature at one block", async () => {
    const { hash, signature } = await evm.sign(owner);
    const asked = entry(owner, hash, signature, await evm.head());
    assert.deepEqual(await verdicts(asked), [true]);
    const calls = proxy.asked.eth_call;
    assert.deepEqual(await verdicts(asked), [true]);
    assert.equal(proxy.asked.eth_call, calls);
  });

  // API-231
  test("a chain that cannot be asked gets no verdict, and fails the signatures of others with it", async () => {
    const { hash, signature } = await evm.sign(owner);
    const good = entry(owner, hash, signature);
    for (const chain of [`eip155:${DEAD_CHAIN_ID}`, "eip155:77", "cosmos:hub-3"]) {
      const error = await failure(() => verify(good, { ...good, accountId: `${chain}:${owner}` }));
      assert.equal(error.code, Code.Unavailable, chain);
      assert.ok(!error.message.includes("127.0.0.1"), error.message);
    }
  });

  /** Ways for a node to fail. None of them is a verdict. */
  const FAULTS = {
    "does not answer": () => HANG,
    "answers with HTTP status 500": () => ({ status: 500, body: "{}" }),
    "wants to be paid": async (_, honest) => ({ status: 402, body: await honest() }),
    "sends elsewhere": () => ({ status: 307, headers: { location: evm.url }, body: "" }),
    "answers with a page": () => ({ body: "<html>it works</html>" }),
    "answers with nothing": () => ({ body: "" }),
    "answers with too much": async (_, honest) => ({
      body: JSON.stringify({ ...(await honest()), padding: "x".repeat(5_000_000) }),
    }),
    "answers another request": async (_, honest) => ({ body: { ...(await honest()), id: 2 } }),
    "fails at every call": otherwise(isCall, ({ id }) => ({ body: { id, error: { code: 3, message: "execution reverted" } } })),
    "lacks the block": otherwise(isBlock, ({ id }) => ({ body: { id, result: null } })),
    "answers about a later block": otherwise(isBlock, async (_, honest) => {
      const { id, result } = await honest();
      return { body: { id, result: { ...result, number: raised(result.number) } } };
    }),
    "is on another chain": otherwise(isCall, async (_, honest) => {
      const { id, result } = await honest();
      return { body: { id, result: raised(result) } };
    }),
    "answers with nothing from the call": otherwise(isCall, ({ id }) => ({ body: { id, result: "0x" } })),
    "answers with a bare yes": otherwise(isCall, ({ id }) => ({ body: { id, result: "0x01" } })),
    "forgot the state of the block": otherwise(isCall, ({ id }) => ({
      body: { id, error: { code: -32000, message: "missing trie node" } },
    })),
  };

  for (const [what, manner] of Object.entries(FAULTS)) {
    // API-231
    test(`a node that ${what} gives no verdict, neither on a good signature nor on a bad one`, async () => {
      const { hash, signature } = await evm.sign(owner);
      const block = await evm.head();
      for (const signed of [hash, someHash()]) {
        proxy.manner = manner;
        const error = await failure(() => verify(entry(owner, signed, signature, block)));
        assert.equal(error.code, Code.Unavailable, error.message);
        proxy.manner = undefined;
        assert.deepEqual(await verdicts(entry(owner, signed, signature, block)), [signed === hash]);
        if (manner === FAULTS["does not answer"]) break;
      }
    });
  }

  // API-231
  test("a block that the chain has not reached is no verdict, and is one once it has", async () => {
    const { hash, signature } = await evm.sign(owner);
    const next = (await evm.head()) + 1n;
    const error = await failure(() => verify(entry(owner, hash, signature, next)));
    assert.equal(error.code, Code.Unavailable);
    await evm.mine();
    assert.deepEqual((await verify(entry(owner, hash, signature, next))).map(({ blockNumber }) => blockNumber), [next]);
  });

  // API-271
  test("a node that takes no hash for a block is asked by number", async () => {
    const { hash, signature } = await evm.sign(owner);
    proxy.manner = otherwise(
      (call) => isCall(call) && typeof call.params[1] === "object",
      ({ id }) => ({ body: { id, error: { code: -32602, message: "invalid argument" } } }),
    );
    assert.deepEqual(await verdicts(entry(owner, hash, signature), entry(owner, someHash(), signature)), [true, false]);
  });

  /** What opens the inbox of a wallet, signed by its owner; `wrap` makes an ERC-6492 signature of the owner's. */
  async function opening(address, { by = owner, at, chain = CHAIN_ID, wrap = (signature) => signature } = {}) {
    const blockNumber = at ?? (await evm.head());
    const sign = async (text) => {
      const signature = bytes(wrap((await evm.sign(by, text)).signature));
      return { signature: { case: "erc6492", value: { accountId: `eip155:${chain}:${address}`, blockNumber, signature } } };
    };
    const wallet = { kind: ETHEREUM, text: address, sign };
    return identityUpdate(inboxId(wallet), [create(wallet)]);
  }
  const inboxIdOf = (address) => inboxId({ text: address });
  const publish = (...envelopes) => client.publish.publish({ envelopes });
  const inboxOf = async (identifier) => {
    const { responses } = await client.identity.getInboxIds({ requests: [{ identifier, identifierKind: ETHEREUM }] });
    return responses[0].inboxId;
  };
  const stored = async (address) => {
    const { envelopes } = await client.query.query({ queries: [{ topic: identityTopic(inboxIdOf(address)) }] });
    return envelopes.length;
  };

  // API-230, API-270
  test("a wallet opens its inbox, whether it exists yet or not", async () => {
    const deployed = await evm.create(wallets.OwnedWallet, owner);
    await publish(await opening(deployed));
    assert.equal(await inboxOf(deployed.toUpperCase().replace("0X", "0x")), inboxIdOf(deployed));

    const { address, message } = await evm.counterfactual(wallets.OwnedWallet, owner);
    await publish(await opening(address, { wrap: (signature) => wrapped(FACTORY, message, signature) }));
    assert.equal(await inboxOf(address), inboxIdOf(address));
  });

  /** PublishError.Reason */
  const INVALID_IDENTITY_UPDATE = 3;
  const INVALID_SIGNATURE = 4;

  async function refusal(envelope) {
    const error = await failure(() => publish(envelope));
    assert.equal(error.code, Code.InvalidArgument, error.message);
    const { index, reason } = publishError(error);
    assert.equal(index, 0);
    return reason;
  }

  // API-230
  test("a signature that the wallet refuses opens no inbox", async () => {
    const wallet = await evm.create(wallets.OwnedWallet, owner);
    assert.equal(await refusal(await opening(wallet, { by: evm.accounts[2] })), INVALID_SIGNATURE);
    assert.equal(await stored(wallet), 0);
  });

  // API-230
  test("a signature at a block that is too old or does not exist opens no inbox", async () => {
    const wallet = await evm.create(wallets.OwnedWallet, owner);
    await evm.mine();
    assert.equal(await refusal(await opening(wallet, { at: 0n })), INVALID_IDENTITY_UPDATE);
    assert.equal(await refusal(await opening(wallet, { at: (await evm.head()) + 1n })), INVALID_IDENTITY_UPDATE);
    assert.equal(await stored(wallet), 0);
  });

  /** A node that has heard nothing for two hours. */
  const stuck = otherwise(
    (call) => isBlock(call) && call.params[0] === "latest",
    async (call, honest) => ({ body: await honest({ ...call, params: ["0x0", false] }) }),
  );

  // API-231, API-224
  test("while the node fails an update is neither stored nor refused, and the same bytes are stored afterwards", async () => {
    const wallet = await evm.create(wallets.OwnedWallet, owner);
    const envelope = await opening(wallet);
    const next = await opening(wallet, { at: (await evm.head()) + 1n });
    const faults = [
      [FAULTS["answers with HTTP status 500"], [envelope, next]],
      [FAULTS["lacks the block"], [envelope, next]],
      [stuck, [envelope, next]],
      [FAULTS["is on another chain"], [envelope]],
    ];
    for (const [fault, updates] of faults) {
      proxy.manner = fault;
      for (const update of updates) {
        const error = await failure(() => publish(update));
        assert.equal(error.code, Code.Unavailable, error.message);
      }
    }
    proxy.manner = undefined;
    assert.equal(await stored(wallet), 0);
    const first = await publish(envelope);
    // A duplicate asks no chain.
    proxy.manner = FAULTS["answers with HTTP status 500"];
    assert.deepEqual(await publish(envelope), first);
    assert.equal(await stored(wallet), 1);
  });

  // API-231
  test("a signature of a chain that cannot be asked is no verdict on an update", async () => {
    const wallet = await evm.create(wallets.OwnedWallet, owner);
    const envelope = await opening(wallet, { chain: 77 });
    const error = await failure(() => publish(envelope));
    assert.equal(error.code, Code.Unavailable, error.message);
  });
});
