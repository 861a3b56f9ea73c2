import { memoryStore, type Store, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { type BatchReply, batchItemsMax, checkBatchLength } from '../../src/index.ts';
import { runItems } from '../../src/operations/batch.ts';
import { anything, base64, contextOne, encryptOne, fox, newEngine, refusalOf } from '../fixtures.ts';

const dog = base64('jumps over the lazy dog');
/** A few items that take much work, almost none of it for the plaintext. */
const heavyItems = Array.from({ length: 100 }, () => ({
  plaintext: fox,
  context: base64('c'.repeat(120_000)),
  associatedData: base64('a'.repeat(120_000)),
}));

/** Counts turns of the event loop until its result is read. */
function countTurns(): () => number {
  let [turns, asked] = [0, false];
  const count = (): void => {
    turns += 1;
    if (!asked) setImmediate(count);
  };
  setImmediate(count);
  return () => {
    asked = true;
    return turns;
  };
}

const batch = <R>(reply: R | BatchReply<R>): BatchReply<R> => {
  if (typeof reply === 'object' && reply !== null && 'results' in reply) return reply;
  throw new Error('the request was a batch');
};

describe('a batch', () => {
  it('answers in the order of its items, each with its reference', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    await engine.rotateKey('k');
    const made = batch(
      await engine.ciphertexts.encrypt('k', {
        ...anything,
        items: [{ plaintext: fox, reference: 'first' }, { plaintext: dog, keyVersion: 1 }, { plaintext: '' }],
      }),
    );
    expect(made.outcome).to.equal('all_ok');
    expect(made.results.map(({ reference }) => reference)).to.deep.equal(['first', '', '']);
    expect(made.results.map((result) => 'keyVersion' in result && result.keyVersion)).to.deep.equal([2, 1, 2]);
    const items = made.results.map((result) => ({
      ciphertext: 'ciphertext' in result ? result.ciphertext : '',
      reference: 'r',
    }));
    expect(await engine.ciphertexts.decrypt('k', { items })).to.deep.equal({
      outcome: 'all_ok',
      results: [fox, dog, ''].map((plaintext) => ({ plaintext, reference: 'r' })),
    });
  });

  it('ignores the members of a single request', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const reply = batch(
      await engine.ciphertexts.encrypt('k', { ...anything, items: [{ plaintext: fox }], plaintext: '!!', context: '!!' }),
    );
    expect(reply.outcome).to.equal('all_ok');
  });

  it('reports a refused item without a result, and continues', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const reply = batch(
      await engine.ciphertexts.encrypt('k', {
        ...anything,
        items: [
          { plaintext: fox },
          { plaintext: '!!', reference: 'bad' },
          { plaintext: fox, associatedData: '!!' },
          { plaintext: fox, nonce: base64('123456789012') },
          { plaintext: fox, paddingScheme: 'x' },
          { plaintext: fox, keyVersion: 9 },
        ],
      }),
    );
    expect(reply.outcome).to.equal('some_failed');
    expect(reply.results.slice(1)).to.deep.equal([
      { error: 'illegal base64 data at input byte 0', reference: 'bad' },
      {
        error: 'unable to get associated_data/additional_data from factory[2]: illegal base64 data at input byte 0',
        reference: '',
      },
      { error: 'provided nonce not allowed for this key', reference: '' },
      { error: "'[4].padding_scheme' invalid: unknown padding scheme: x", reference: '' },
      { error: 'requested version for encryption is higher than the latest key version', reference: '' },
    ]);
  });

  it('reports if every item failed', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const items = [{ ciphertext: 'a', reference: 'x' }, { ciphertext: 'svc:v9:AAAA' }, { ciphertext: '' }];
    const results = [
      { error: 'invalid ciphertext: no prefix', reference: 'x' },
      { error: 'invalid ciphertext: version is too new', reference: '' },
      { error: 'missing ciphertext to decrypt', reference: '' },
    ];
    expect(await engine.ciphertexts.decrypt('k', { items })).to.deep.equal({ outcome: 'all_failed', results });
    expect(await engine.ciphertexts.rewrap('k', { items })).to.deep.equal({ outcome: 'all_failed', results });
  });

  it('of rewrap refuses only the item without a ciphertext', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
    await engine.rotateKey('k');
    const reply = batch(
      await engine.ciphertexts.rewrap('k', { items: [{ ciphertext }, {}, { ciphertext: '', reference: 'n' }] }),
    );
    expect(reply.outcome).to.equal('some_failed');
    expect(reply.results[0]).to.include({ keyVersion: 2, reference: '' });
    expect(reply.results.slice(1)).to.deep.equal([
      { error: 'missing ciphertext to decrypt', reference: '' },
      { error: 'missing ciphertext to decrypt', reference: 'n' },
    ]);
  });

  it('of encrypt and decrypt refuses only the item without an input', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const made = batch(
      await engine.ciphertexts.encrypt('k', {
        ...anything,
        items: [{ plaintext: fox }, { reference: 'a' }],
      }),
    );
    expect(made.outcome).to.equal('some_failed');
    expect(made.results[0]).to.include({ keyVersion: 1, reference: '' });
    expect(made.results[1]).to.deep.equal({ error: 'missing plaintext to encrypt', reference: 'a' });
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
    const opened = await engine.ciphertexts.decrypt('k', {
      items: [{}, { ciphertext }, { ciphertext: '', reference: 'n' }],
    });
    expect(opened).to.deep.equal({
      outcome: 'some_failed',
      results: [
        { error: 'missing ciphertext to decrypt', reference: '' },
        { plaintext: fox, reference: '' },
        { error: 'missing ciphertext to decrypt', reference: 'n' },
      ],
    });
  });

  it('whose items all lack an input creates no key', async () => {
    const { engine } = newEngine();
    const reply = batch(await engine.ciphertexts.encrypt('unmade', { ...anything, items: [{}] }));
    expect(reply.outcome).to.equal('all_failed');
    expect((await refusalOf(engine.readKey('unmade'))).code).to.equal('not_found');
  });

  it('requires a context in each item of a derived key', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { derived: true });
    const reply = batch(await engine.ciphertexts.encrypt('k', { ...anything, items: [{ plaintext: fox }, { plaintext: dog }] }));
    expect(reply.outcome).to.equal('all_failed');
    const good = batch(await engine.ciphertexts.encrypt('k', { ...anything, items: [{ plaintext: fox, context: contextOne }] }));
    expect(good.outcome).to.equal('all_ok');
  });

  it('yields to the event loop every few milliseconds, even with short items', async () => {
    const busyMs = async (): Promise<object> => {
      for (const endMs = performance.now() + 1; performance.now() < endMs; );
      return {};
    };
    let turns = 0;
    const countTurn = (): void => {
      turns += 1;
    };
    const items = Array.from({ length: 40 }, () => ({ reference: '' }));
    await runItems(items, { operation: busyMs, onResume: countTurn });
    expect(turns).to.be.at.least(9);
  });

  it('yields to the event loop also for long contexts and associated data', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { derived: true });
    const turns = countTurns();
    await engine.ciphertexts.encrypt('k', { ...anything, items: heavyItems });
    expect(turns()).to.be.at.least(3);
  });

  it('ends with an error when the engine is closed meanwhile', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { derived: true });
    await engine.ciphertexts.encrypt('k', { ...anything, items: heavyItems.slice(0, 1) });
    setImmediate(() => engine.close());
    const [result] = await Promise.allSettled([engine.ciphertexts.encrypt('k', { ...anything, items: heavyItems })]);
    const reason: unknown = result?.status === 'rejected' && result.reason;
    expect(reason).to.be.instanceOf(StoreError).with.property('code', 'sealed');
  });

  it('reads the key once, and each version once', async () => {
    const inner = memoryStore();
    const reads: string[] = [];
    const store: Store = {
      ...inner,
      get: (path) => {
        reads.push(path);
        return inner.get(path);
      },
    };
    await newEngine({ store: inner }).engine.createKey('k', {});
    const { engine } = newEngine({ store });
    await engine.ciphertexts.encrypt('k', { ...anything, items: Array.from({ length: 50 }, () => ({ plaintext: fox })) });
    expect(reads).to.have.lengthOf(2);
    await engine.ciphertexts.encrypt('k', { ...anything, items: [{ plaintext: fox }] });
    expect(reads, 'a hit asks the store for nothing').to.have.lengthOf(2);
  });
});

describe('a batch is refused as a whole', () => {
  for (const operation of ['encrypt', 'decrypt', 'rewrap'] as const)
    it(`if only some of its items have a context: ${operation}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', {});
      const context = contextOne;
      for (const items of [
        [{ context }, {}],
        [{}, { context }],
        [{ context: '' }, { context }],
      ])
        expect(await refusalOf(engine.ciphertexts[operation]('k', { ...anything, items }))).to.deep.equal({
          code: 'invalid_request',
          message: 'context should be set either in all the request blocks or in none',
        });
    });

  it('with no items, or with more than one request may have', () => {
    expect(() => checkBatchLength(0)).to.throw('missing batch input to process');
    expect(() => checkBatchLength(batchItemsMax + 1)).to.throw('batch input holds more than 100000 items');
    checkBatchLength(1);
    checkBatchLength(batchItemsMax);
  });
});
