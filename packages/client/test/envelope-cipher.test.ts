import { randomBytes } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { TransitdClient } from '../src/client.ts';
import { DataKeyCache } from '../src/data-key-cache.ts';
import { RefusedError } from '../src/errors.ts';
import { DamagedStream } from '../src/segment-cipher.ts';
import { Service } from './service.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const failure = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('envelope encryption', () => {
  it('round-trips messages of any size, with one data key and one call for many of them', async () => {
    const service = new Service();
    const [writer, reader] = [service.cipher(), service.cipher()];
    for (const size of [0, 1, 1_000, 2 ** 20 - 56, 2 ** 20, 3_000_000]) {
      const message = randomBytes(size);
      expect(Buffer.from(await reader.decrypt(await writer.encrypt(message))).equals(message)).to.equal(true);
    }
    expect(service.calls).to.deep.equal(['datakey', 'decrypt']);
  });

  it('gives equal messages different ciphertexts', async () => {
    const cipher = new Service().cipher();
    const [one, two] = [await cipher.encrypt(bytes('x')), await cipher.encrypt(bytes('x'))];
    expect(Buffer.from(one).equals(two)).to.equal(false);
  });

  it('notices changes of the message, its length, its associated data and its key', async () => {
    const service = new Service();
    const cipher = service.cipher();
    const message = await cipher.encrypt(bytes('text'), bytes('row 7'));
    expect(Buffer.from(await cipher.decrypt(message, bytes('row 7'))).toString()).to.equal('text');
    const changed = Uint8Array.from(message);
    changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
    for (const work of [
      () => cipher.decrypt(changed, bytes('row 7')),
      () => cipher.decrypt(message, bytes('row 8')),
      () => cipher.decrypt(message),
      () => cipher.decrypt(message.subarray(0, -1), bytes('row 7')),
      () => cipher.decrypt(message.subarray(0, 20), bytes('row 7')),
      () => cipher.decrypt(bytes('no message')),
      () => service.cipher({}, 'other').decrypt(message, bytes('row 7')),
    ])
      expect(await failure(work())).to.be.instanceOf(DamagedStream);
  });

  for (const [limit, limits, messages] of [
    ['messages', { messages: 2 }, 2],
    ['bytes', { bytes: 25 }, 2],
  ] as const)
    it(`replaces the data key at the limit of ${limit}`, async () => {
      const service = new Service();
      const cipher = service.cipher({ limits });
      for (let count = 0; count < 2 * messages; count++) await cipher.encrypt(randomBytes(10));
      expect(service.calls).to.deep.equal(['datakey', 'datakey']);
    });

  it('replaces and forgets data keys at their age', async () => {
    const service = new Service();
    let nowMs = 0;
    const cipher = service.cipher({ limits: { ageMs: 1000 }, nowMs: () => nowMs });
    const message = await cipher.encrypt(bytes('x'));
    await cipher.decrypt(message);
    nowMs = 999;
    await cipher.encrypt(bytes('x'));
    await cipher.decrypt(message);
    expect(service.calls).to.deep.equal(['datakey', 'decrypt']);
    nowMs = 1000;
    await cipher.encrypt(bytes('x'));
    await cipher.decrypt(message);
    expect(service.calls).to.deep.equal(['datakey', 'decrypt', 'datakey', 'decrypt']);
  });

  it('keeps a bounded number of opened keys, and none after it was told to forget them', async () => {
    const service = new Service();
    const cipher = service.cipher({ limits: { messages: 1, entries: 2 } });
    const messages = [await cipher.encrypt(bytes('a')), await cipher.encrypt(bytes('b')), await cipher.encrypt(bytes('c'))];
    for (const message of messages) await cipher.decrypt(message);
    const before = service.calls.length;
    await cipher.decrypt(messages[2] ?? bytes(''));
    expect(service.calls).to.have.length(before);
    await cipher.decrypt(messages[0] ?? bytes(''));
    expect(service.calls).to.have.length(before + 1);
    cipher.forgetKeys();
    await cipher.decrypt(messages[0] ?? bytes(''));
    expect(service.calls).to.have.length(before + 2);
  });

  it('asks once for messages at the same time, and again after a failure', async () => {
    const service = new Service();
    const cipher = service.cipher();
    const messages = await Promise.all([1, 2, 3].map((one) => cipher.encrypt(Uint8Array.of(one))));
    await Promise.all(messages.map((message) => cipher.decrypt(message)));
    expect(service.calls).to.deep.equal(['datakey', 'decrypt']);
    cipher.forgetKeys();
    service.fails = true;
    expect(await failure(cipher.encrypt(bytes('x')))).to.be.instanceOf(RefusedError);
    expect(await failure(cipher.decrypt(messages[0] ?? bytes('')))).to.be.instanceOf(RefusedError);
    service.fails = false;
    await cipher.encrypt(bytes('x'));
    await cipher.decrypt(messages[0] ?? bytes(''));
  });

  it('refuses a data key of another size, on both sides', async () => {
    const service = new Service();
    const message = await service.cipher().encrypt(bytes('x'));
    for (const size of [0, 16, 33]) {
      service.keyBytes = size;
      const sealed = Buffer.from(message).toString('latin1').replace('\nsvc:v1:0\n', `\nsvc:size:${size}\n`);
      expect(await failure(service.cipher().decrypt(Buffer.from(sealed, 'latin1')))).to.be.instanceOf(DamagedStream);
      expect(await failure(service.cipher().encrypt(bytes('x'))), `${size} bytes`).to.be.instanceOf(TypeError);
    }
  });

  it('refuses limits that are not numbers or negative', () => {
    for (const limits of [{ ageMs: Number.NaN }, { messages: -1 }, { bytes: Number.NaN }, { entries: -1 }])
      expect(() => new Service().cipher({ limits })).to.throw(TypeError, /^the limit \w+ must be/);
  });
});

describe('a data key in the memory of an idle process', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;

  it('is gone after its age', async () => {
    const client = new TransitdClient({ addresses: ['http://service'], token: 't', fetch: new Service().fetch });
    const cache = new DataKeyCache(client.transit(), 'orders', { limits: { ageMs: 20 } });
    const { plaintext, wrapped } = await keysOf(cache);
    const started = performance.now();
    while (plaintext.deref() !== undefined || wrapped.deref() !== undefined) {
      expect(performance.now() - started, 'milliseconds in memory').to.be.below(60_000);
      await new Promise((resolve) => setImmediate(resolve));
      collectGarbage();
    }
    expect(() => new DataKeyCache(client.transit(), 'orders', { limits: { ageMs: Number.POSITIVE_INFINITY } })).not.to.throw();
  });

  /** In a function of its own, so that no variable keeps the keys. */
  async function keysOf(cache: DataKeyCache): Promise<Record<'plaintext' | 'wrapped', WeakRef<Uint8Array>>> {
    const created = await cache.forEncryption(1);
    return { plaintext: new WeakRef(created.plaintext), wrapped: new WeakRef(await cache.forDecryption(created.wrapped)) };
  }
});
