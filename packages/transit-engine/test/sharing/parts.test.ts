import { memoryStore, type Store } from '@transitd/storage-fsm';
import { expect } from 'chai';
import type { BatchPart, BatchReply, Columns, TransitEngine } from '../../src/index.ts';
import { anything, base64, fox, newEngine } from '../fixtures.ts';

const count = 450;
const numbers = Array.from({ length: count }, (_, n) => n);

/** An engine that gives parts of its batches to a second engine, as another thread does, and a third one that shares nothing. */
function sharing({ helperStore }: { readonly helperStore?: Store } = {}) {
  const store = memoryStore();
  const helper = newEngine({ store: helperStore ?? store }).engine;
  const parts: BatchPart[] = [];
  const answers: (Columns | undefined)[] = [];
  /** An answer that comes too late for its batch comes all the same. */
  const answered = async (): Promise<readonly (Columns | undefined)[]> => {
    while (answers.length < parts.length) await new Promise(setImmediate);
    return answers;
  };
  const run = async (part: BatchPart): Promise<Columns | undefined> => {
    parts.push(part);
    const answer = structuredClone(await helper.runPart(structuredClone(part)));
    answers.push(answer);
    return answer;
  };
  const { engine } = newEngine({ store, others: () => [{ run }] });
  const { engine: alone } = newEngine({ store });
  return { engine, alone, helper, parts, answered };
}

const resultsOf = <R>(reply: R | BatchReply<R>): BatchReply<R>['results'] => {
  if (typeof reply === 'object' && reply !== null && 'results' in reply) return reply.results;
  throw new Error('the request was a batch');
};

/** Every third item is refused. */
const isWrong = (n: number): boolean => n % 3 === 2;

type Ask = (engine: TransitEngine) => Promise<unknown>;

describe('a part of a batch', () => {
  it('has the same results in another thread as in this one, for every operation', async () => {
    const { engine, alone, parts, answered } = sharing();
    await engine.createKey('aead', { derived: true });
    await engine.createKey('pair', { type: 'ecdsa-p256' });
    await engine.createKey('ed', { type: 'ed25519', derived: true });
    await engine.createKey('cmac', { type: 'aes256-cmac' });
    const context = base64('context');
    const encrypted = resultsOf(
      await alone.encryption.encrypt('aead', {
        ...anything,
        batchInput: numbers.map((n) => ({ plaintext: base64(`text ${n}`), context })),
      }),
    ).map((result) => ('ciphertext' in result ? result.ciphertext : ''));
    const ciphertexts = encrypted.map((ciphertext, n) => ({
      ciphertext: isWrong(n) ? 'vault' : ciphertext,
      context,
      reference: String(n),
    }));
    const inputs = numbers.map((n) => ({ input: isWrong(n) ? '!' : base64(`input ${n}`), reference: String(n) }));
    const macs = resultsOf(await alone.signing.hmac('aead', { batchInput: inputs })).map((result, n) => ({
      ...inputs[n],
      hmac: 'hmac' in result ? result.hmac : 'x',
    }));
    const deterministic: Readonly<Record<string, Ask>> = {
      decrypt: (each) => each.encryption.decrypt('aead', { batchInput: ciphertexts }),
      hmac: (each) => each.signing.hmac('aead', { batchInput: inputs, algorithm: 'sha2-512' }),
      cmac: (each) => each.signing.cmac('cmac', { batchInput: inputs }),
      verify: (each) => each.signing.verify('aead', { batchInput: macs }),
      sign: (each) => each.signing.sign('ed', { batchInput: inputs.map((input) => ({ ...input, context })) }),
    };
    for (const [name, ask] of Object.entries(deterministic)) {
      expect(await ask(engine), name).to.deep.equal(await ask(alone));
      expect(parts.at(-1), name).to.include({ operation: name, first: count / 2 });
    }
    const signatures = resultsOf(await engine.signing.sign('pair', { batchInput: inputs })).map((result, n) => ({
      ...inputs[n],
      signature: 'signature' in result ? result.signature : 'svc:v1:eA==',
    }));
    const verified = resultsOf(await alone.signing.verify('pair', { batchInput: signatures }));
    expect(verified.map((result) => 'valid' in result && result.valid)).to.deep.equal(numbers.map((n) => !isWrong(n)));
    const rewrapped = resultsOf(await engine.encryption.rewrap('aead', { batchInput: ciphertexts.map((item) => ({ ...item })) }));
    const texts = resultsOf(
      await alone.encryption.decrypt('aead', {
        batchInput: rewrapped.map((result) => ({ ciphertext: 'ciphertext' in result ? result.ciphertext : '', context })),
      }),
    );
    expect(texts.map((result) => ('plaintext' in result ? result.plaintext : undefined))).to.deep.equal(
      numbers.map((n) => (isWrong(n) ? undefined : base64(`text ${n}`))),
    );
    expect((await answered()).every((answer) => answer?.count === count / 2)).to.equal(true);
    expect(new Set(parts.map(({ operation }) => operation))).to.deep.equal(
      new Set(['decrypt', 'hmac', 'cmac', 'verify', 'sign', 'rewrap']),
    );
  });

  it('encrypts in another thread under the key and the version that the request names, with nonces of its own', async () => {
    const { engine, alone, answered } = sharing();
    await engine.createKey('k', {});
    await engine.rotateKey('k');
    const batchInput = numbers.map((n) => ({ plaintext: fox, key_version: (n % 3) + 1 })); // there is no version 3
    const results = resultsOf(await engine.encryption.encrypt('k', { ...anything, batchInput }));
    expect(await answered()).to.have.length(1);
    expect(results.map((result) => ('keyVersion' in result ? result.keyVersion : 0))).to.deep.equal(
      numbers.map((n) => (isWrong(n) ? 0 : (n % 3) + 1)),
    );
    const ciphertexts = results.flatMap((result) => ('ciphertext' in result ? [{ ciphertext: result.ciphertext }] : []));
    expect(new Set(ciphertexts.map(({ ciphertext }) => ciphertext)).size).to.equal(ciphertexts.length);
    const texts = resultsOf(await alone.encryption.decrypt('k', { batchInput: ciphertexts }));
    expect(texts).to.deep.equal(ciphertexts.map(() => ({ plaintext: fox, reference: '' })));
  });

  it('names the position in the whole batch in its errors', async () => {
    const { engine, alone } = sharing();
    await engine.createKey('rsa', { type: 'rsa-2048' });
    const batchInput = numbers.map(() => ({ plaintext: fox, padding_scheme: 'other' }));
    const ask: Ask = (each) => each.encryption.encrypt('rsa', { ...anything, batchInput });
    expect(await ask(engine)).to.deep.equal(await ask(alone));
  });

  it('is not processed by a thread that has the key in another state, or not at all', async () => {
    const helperStore = memoryStore();
    const { engine, helper, answered } = sharing({ helperStore });
    await engine.createKey('k', {});
    const batchInput = numbers.map(() => ({ plaintext: fox }));
    const encrypts = async (): Promise<boolean> => {
      const results = resultsOf(await engine.encryption.encrypt('k', { ...anything, batchInput }));
      return results.every((result) => 'ciphertext' in result);
    };
    expect(await encrypts()).to.equal(true);
    await helper.createKey('k', {}); // another key with the same name and revision
    expect(await encrypts()).to.equal(true);
    expect(await answered()).to.deep.equal([undefined, undefined]);
    const part = { mountId: 'm1', prefix: 'svc', operation: 'unknown', first: 0, items: { count: 0, members: [] } };
    expect(await helper.runPart({ ...part, key: { name: 'k', id: '', revision: 1 } })).to.equal(undefined);
  });

  it('is not processed by a thread that has another prefix for ciphertexts, because it has not read a changed mount yet', async () => {
    const { engine, helper, answered } = sharing();
    await engine.createKey('k', {});
    engine.ciphertextPrefix = 'new';
    const encrypted = resultsOf(
      await engine.encryption.encrypt('k', { ...anything, batchInput: numbers.map(() => ({ plaintext: fox })) }),
    ).map((result) => ('ciphertext' in result ? result : { ciphertext: '' }));
    expect(encrypted.filter(({ ciphertext }) => !ciphertext.startsWith('new:v1:'))).to.deep.equal([]);
    const batchInput = encrypted.map(({ ciphertext }) => ({ ciphertext }));
    const decrypted = resultsOf(await engine.encryption.decrypt('k', { batchInput }));
    expect(decrypted.filter((result) => !('plaintext' in result))).to.deep.equal([]);
    expect(await answered()).to.deep.equal([undefined, undefined]);
    helper.ciphertextPrefix = 'new';
    await engine.encryption.decrypt('k', { batchInput });
    expect((await answered())[2]?.count).to.equal(count / 2);
  });

  it('is not given away for a key that is not stored yet', async () => {
    const { engine, parts } = sharing();
    const batchInput = numbers.map(() => ({ plaintext: fox }));
    await engine.encryption.encrypt('new', { ...anything, batchInput });
    expect(parts).to.deep.equal([]);
    await engine.encryption.encrypt('new', { ...anything, batchInput });
    expect(parts).to.have.length(1);
  });

  it('waits for its turn, so parts that arrive together share no turn of the event loop', async () => {
    const { engine, helper, parts } = sharing();
    await engine.createKey('k', {});
    await engine.signing.hmac('k', { batchInput: numbers.map(() => ({ input: fox })) });
    const [part] = parts;
    if (part === undefined) throw new Error('no part was given away');
    const short = { ...part, items: { ...part.items, count: 1 } };
    let done = 0;
    const all = Promise.all([short, short, short].map((each) => helper.runPart(each).then(() => done++)));
    for (let turn = 1; turn <= 3; turn++) {
      expect(done).to.be.below(turn);
      await new Promise(setImmediate);
    }
    await all;
  });

  it('is refused once the keys of its thread are closed', async () => {
    const { engine, helper, parts, answered } = sharing();
    await engine.createKey('k', {});
    await engine.signing.hmac('k', { batchInput: numbers.map(() => ({ input: fox })) });
    const [part] = parts;
    if (part === undefined) throw new Error('no part was given away');
    expect((await answered())[0]?.count).to.equal(part.items.count);
    helper.close();
    expect(await helper.runPart(part).catch((error: { code?: string }) => error.code)).to.equal('sealed');
  });
});
