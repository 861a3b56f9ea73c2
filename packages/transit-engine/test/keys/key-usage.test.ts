import { expect } from 'chai';
import { DamagedRecord, type TransitEngine } from '../../src/index.ts';
import {
  addedUses,
  decodeKeyUsage,
  encodeKeyUsage,
  unusedKey,
  usedVersionsMax,
  type VersionUse,
} from '../../src/keys/key-usage.ts';
import { UseTally } from '../../src/keys/use-tally.ts';
import { anything, base64, fox, newEngine, paths } from '../fixtures.ts';

const use = (more: Partial<VersionUse> = {}): VersionUse => ({
  ...{ encryptions: 1, decryptions: 0, signatures: 0, verifications: 0, firstMs: 5, lastMs: 5 },
  ...more,
});

describe('the recorded uses of a key', () => {
  it('are read as they were written', () => {
    const usage = {
      id: 'a',
      lostMs: 7,
      versions: new Map([
        [1, use()],
        [3, use({ verifications: 2, lastMs: 9 })],
      ]),
    };
    expect(decodeKeyUsage(encodeKeyUsage(usage))).to.deep.equal(usage);
  });

  for (const [title, text] of [
    ['no JSON', 'x'],
    ['another format', '{"format":2,"id":"a","lostMs":0,"versions":[]}'],
    ['no id', '{"format":1,"lostMs":0,"versions":[]}'],
    ['a short row', '{"format":1,"id":"a","lostMs":0,"versions":[[1,2]]}'],
    ['a text in a row', '{"format":1,"id":"a","lostMs":0,"versions":[[1,0,0,0,0,"1",1]]}'],
  ] as const)
    it(`are damaged: ${title}`, () => {
      expect(() => decodeKeyUsage(Buffer.from(text))).to.throw(DamagedRecord);
    });

  it('forget deleted versions, and add up those of the others', () => {
    const before = addedUses(
      unusedKey('a'),
      [
        [1, use()],
        [2, use()],
      ],
      { lowest: 0, nowMs: 9 },
    );
    const { versions, lostMs } = addedUses(before, [[2, use({ firstMs: 3, lastMs: 8, decryptions: 4 })]], {
      lowest: 2,
      nowMs: 9,
    });
    expect([...versions]).to.deep.equal([[2, use({ encryptions: 2, decryptions: 4, firstMs: 3, lastMs: 8 })]]);
    expect(lostMs).to.equal(0);
  });

  it('are bounded; the time at which the lowest versions were forgotten is kept', () => {
    const all = Array.from({ length: usedVersionsMax + 2 }, (_, i) => [i + 1, use()] as const);
    const { versions, lostMs } = addedUses(unusedKey('a'), all, { lowest: 0, nowMs: 9 });
    expect([versions.size, versions.has(2), versions.has(3), lostMs]).to.deep.equal([usedVersionsMax, false, true, 9]);
  });
});

/** What each operation counts, of a key with two versions. */
const operations: readonly (readonly [
  title: string,
  type: string,
  run: (engine: TransitEngine, tally: UseTally) => Promise<unknown>,
  counts: Record<number, Partial<VersionUse>>,
])[] = [
  [
    'encrypt',
    'aes256-gcm96',
    (e, t) => e.ciphertexts.encrypt('k', { ...anything, plaintext: fox }, t),
    { 2: { encryptions: 1 } },
  ],
  [
    'a batch of encryptions, of which one item fails',
    'aes256-gcm96',
    (e, t) => {
      const items = [{ plaintext: fox }, { plaintext: '!' }, { plaintext: fox, keyVersion: 1 }];
      return e.ciphertexts.encrypt('k', { ...anything, items }, t);
    },
    { 1: { encryptions: 1 }, 2: { encryptions: 1 } },
  ],
  [
    'decrypt',
    'aes256-gcm96',
    async (e, t) => e.ciphertexts.decrypt('k', { ciphertext: await old(e) }, t),
    { 1: { decryptions: 1 } },
  ],
  [
    'a decryption that fails',
    'aes256-gcm96',
    async (e, t) =>
      e.ciphertexts.decrypt('k', { ciphertext: `${(await old(e)).slice(0, -8)}AAAAAAA=` }, t).catch(() => undefined),
    {},
  ],
  [
    'rewrap',
    'aes256-gcm96',
    async (e, t) => e.ciphertexts.rewrap('k', { ciphertext: await old(e) }, t),
    { 1: { decryptions: 1 }, 2: { encryptions: 1 } },
  ],
  ['datakey', 'aes256-gcm96', (e, t) => e.ciphertexts.datakey('k', { kind: 'wrapped' }, t), { 2: { encryptions: 1 } }],
  [
    'datakeys',
    'aes256-gcm96',
    (e, t) => e.ciphertexts.datakeys('k', { kind: 'wrapped', count: 3 }, t),
    { 2: { encryptions: 3 } },
  ],
  [
    'encrypt with RSA',
    'rsa-2048',
    (e, t) => e.ciphertexts.encrypt('k', { ...anything, plaintext: fox }, t),
    { 2: { encryptions: 1 } },
  ],
  ['sign', 'ed25519', (e, t) => e.signing.sign('k', { input: fox, keyVersion: 1 }, t), { 1: { signatures: 1 } }],
  ['hmac', 'aes256-gcm96', (e, t) => e.signing.hmac('k', { input: fox }, t), { 2: { signatures: 1 } }],
  ['cmac', 'aes128-cmac', (e, t) => e.signing.cmac('k', { input: fox }, t), { 2: { signatures: 1 } }],
  [
    'verify, whatever the verdict',
    'ed25519',
    async (e, t) => {
      const signed = await e.signing.sign('k', { input: fox, keyVersion: 1 });
      const signature = 'signature' in signed ? signed.signature : '';
      return e.signing.verify(
        'k',
        {
          items: [
            { input: fox, signature },
            { input: base64('other'), signature },
          ],
        },
        t,
      );
    },
    { 1: { verifications: 2 } },
  ],
  [
    'verify an HMAC',
    'aes256-gcm96',
    async (e, t) => {
      const made = await e.signing.hmac('k', { input: fox });
      return e.signing.verify('k', { input: fox, hmac: 'hmac' in made ? made.hmac : '' }, t);
    },
    { 2: { verifications: 1 } },
  ],
  [
    'each version of another key that is wrapped under the key',
    'rsa-2048',
    async (e, t) => {
      await e.createKey('source', { exportable: true });
      await e.rotateKey('source');
      await e.transfers.wrapForTransfer('source', { destination: 'k' }, t);
    },
    { 2: { encryptions: 2 } },
  ],
  ['a certificate request', 'ecdsa-p256', (e, t) => e.certificates.request('k', { version: '1' }, t), { 1: { signatures: 1 } }],
];

/** Returns a ciphertext of version 1. */
async function old(engine: TransitEngine): Promise<string> {
  const made = await engine.ciphertexts.encrypt('k', { ...anything, plaintext: fox, keyVersion: 1 });
  return 'ciphertext' in made ? made.ciphertext : '';
}

describe('the tally of a request', () => {
  for (const [title, type, run, counts] of operations)
    it(`counts ${title}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', { type });
      await engine.rotateKey('k');
      const tally = new UseTally();
      await run(engine, tally);
      const none = { encryptions: 0, decryptions: 0, signatures: 0, verifications: 0 };
      const expected = Object.entries(counts).map(([version, some]) => [Number(version), { ...none, ...some }]);
      expect([...tally.counts].sort(([a], [b]) => a - b)).to.deep.equal(expected);
      const { key } = await engine.usedKey('k');
      if (title !== 'a decryption that fails') expect(tally.keyId).to.equal(key.record.id);
    });

  it('counts an encryption that creates its key', async () => {
    const { engine } = newEngine();
    const tally = new UseTally();
    await engine.ciphertexts.encrypt('new', { ...anything, plaintext: fox }, tally);
    expect(tally.keyId).to.equal((await engine.usedKey('new')).key.record.id);
    expect(tally.counts.get(1)?.encryptions).to.equal(1);
  });
});

describe('the uses of a key in the records', () => {
  const record = async ({ engine, store }: ReturnType<typeof newEngine>, name: string, id: string): Promise<boolean> => {
    const transaction = await engine.addingUses(name, id, [[1, use()]]);
    return transaction !== undefined && (await store.commit(transaction)).outcome === 'committed';
  };

  it('belong to its id: a new key of the same name has none, and late reports do not reach it', async () => {
    const made = newEngine();
    const { engine } = made;
    await engine.createKey('k', {});
    const { id } = (await engine.usedKey('k')).key.record;
    expect(await record(made, 'k', id)).to.equal(true);
    expect((await engine.usedKey('k')).usage.versions.get(1)).to.deep.equal(use());
    await engine.configureKey('k', { deletionAllowed: true });
    await engine.deleteKey('k');
    expect(await record(made, 'k', id)).to.equal(false);
    await engine.createKey('k', {});
    expect((await engine.usedKey('k')).usage.versions.size).to.equal(0);
    expect(await record(made, 'k', id)).to.equal(false);
  });

  it('are not written if the key changed meanwhile', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', {});
    const { id } = (await engine.usedKey('k')).key.record;
    const transaction = await engine.addingUses('k', id, [[1, use()]]);
    await engine.rotateKey('k');
    if (transaction === undefined) throw new Error('the key exists');
    expect((await store.commit(transaction)).outcome).to.equal('conflict');
  });

  it('are deleted with the versions of a deleted key', async () => {
    const made = newEngine();
    const { engine, store } = made;
    await engine.createKey('k', {});
    await record(made, 'k', (await engine.usedKey('k')).key.record.id);
    await engine.configureKey('k', { deletionAllowed: true });
    await engine.deleteKey('k');
    expect(await store.get(paths.usage('k'))).not.to.equal(undefined);
    await engine.sweep(100);
    expect(await store.get(paths.usage('k'))).to.equal(undefined);
  });
});
