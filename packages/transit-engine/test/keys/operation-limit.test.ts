import { expect } from 'chai';
import type { TransitEngine } from '../../src/index.ts';
import { nearLimit, operationsMax } from '../../src/keys/operation-limit.ts';
import { encodeBackup } from '../../src/transfers/backup.ts';
import { anything, fox, newEngine, refusalOf } from '../fixtures.ts';

const gcmMax = 2 ** 32;

describe('the operations that a key version may make', () => {
  for (const [title, request, expected] of [
    ['AES-GCM with random nonces', { type: 'aes256-gcm96' }, gcmMax],
    ['AES-GCM with 128 bits', { type: 'aes128-gcm96' }, gcmMax],
    ['a derived key', { type: 'aes256-gcm96', derived: true }, undefined],
    ['a convergent key', { type: 'aes256-gcm96', derived: true, convergentEncryption: true }, undefined],
    ['another cipher', { type: 'chacha20-poly1305' }, undefined],
    ['a key pair', { type: 'ed25519' }, undefined],
  ] as const)
    it(`are ${expected ?? 'not limited'} by default for ${title}, and can be set`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', request);
      const max = async () => operationsMax((await engine.usedKey('k')).key.record);
      expect(await max()).to.equal(expected);
      await engine.configureKey('k', { maxOperations: 5 });
      await engine.configureKey('k', { deletionAllowed: true });
      expect(await max()).to.equal(5);
      expect((await engine.readKey('k')).maxOperations).to.equal(5);
      await engine.configureKey('k', { maxOperations: 0 });
      expect(await max()).to.equal(expected);
      expect(await engine.readKey('k')).not.to.have.property('maxOperations');
    });

  for (const maxOperations of [-1, 0.5, 2 ** 53])
    it(`are refused: ${maxOperations}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', {});
      const { code, message } = await refusalOf(engine.configureKey('k', { maxOperations }));
      expect(code).to.equal('invalid_request');
      expect(message).to.match(/^max_operations must be /);
    });

  /** Records uses of a version, as the active node does. */
  async function record({ engine, store }: ReturnType<typeof newEngine>, version: number, encryptions: number, signatures = 0) {
    const { id } = (await engine.usedKey('k')).key.record;
    const use = { encryptions, signatures, decryptions: 1_000_000, verifications: 1_000_000, firstMs: 1, lastMs: 1 };
    const transaction = await engine.addingUses('k', id, [[version, use]]);
    if (transaction === undefined) throw new Error('the key is there');
    expect((await store.commit(transaction)).outcome).to.equal('committed');
  }
  const encrypts = (engine: TransitEngine, keyVersion = 0) =>
    engine.ciphertexts.encrypt('k', { ...anything, plaintext: fox, keyVersion });
  const spent = { code: 'key_version_unavailable', message: /max_operations allows: rotate the key$/ };
  const expectSpent = async (request: Promise<unknown>): Promise<void> => {
    const { code, message } = await refusalOf(request);
    expect(code).to.equal(spent.code);
    expect(message).to.match(spent.message);
  };

  it('end with a refusal where they were set, of everything that the version would make, until the key is rotated', async () => {
    const made = newEngine();
    const { engine } = made;
    await engine.createKey('k', {});
    const { ciphertext } = (await encrypts(engine)) as { ciphertext: string };
    await engine.configureKey('k', { maxOperations: 10 });
    await record(made, 1, 6, 3);
    await encrypts(engine); // 9 of 10
    await record(made, 1, 1);
    await expectSpent(encrypts(engine));
    await expectSpent(encrypts(engine, 1));
    await expectSpent(engine.signing.hmac('k', { input: fox }));
    await expectSpent(engine.ciphertexts.datakey('k', { kind: 'wrapped' }));
    await expectSpent(engine.ciphertexts.rewrap('k', { ciphertext }));
    expect(await engine.ciphertexts.decrypt('k', { ciphertext })).to.deep.equal({ plaintext: fox });
    await engine.rotateKey('k');
    await encrypts(engine);
    await expectSpent(encrypts(engine, 1));
    expect(await engine.readKey('k')).not.to.have.property('spentVersions');
  });

  it('include the signatures of certificate requests', async () => {
    const made = newEngine();
    await made.engine.createKey('k', { type: 'ecdsa-p256' });
    await made.engine.configureKey('k', { maxOperations: 1 });
    await made.engine.certificates.request('k', {});
    await record(made, 1, 0, 1);
    await expectSpent(made.engine.certificates.request('k', {}));
  });

  it('include the keys that are wrapped under the key', async () => {
    const made = newEngine();
    const wrap = () => made.engine.transfers.wrapForTransfer('source', { destination: 'k' });
    await made.engine.createKey('source', { exportable: true });
    await made.engine.createKey('k', { type: 'rsa-2048' });
    await made.engine.configureKey('k', { maxOperations: 1 });
    await wrap();
    await record(made, 1, 1);
    await expectSpent(wrap());
  });

  it('are judged by the recorded uses when they are set', async () => {
    const made = newEngine();
    const { engine } = made;
    await engine.createKey('k', {});
    await record(made, 1, 10);
    await engine.configureKey('k', { maxOperations: 10 });
    await expectSpent(encrypts(engine));
    await engine.configureKey('k', { maxOperations: 11 });
    await encrypts(engine);
    await engine.configureKey('k', { maxOperations: 10 });
    await engine.configureKey('k', { maxOperations: 0 });
    await encrypts(engine);
  });

  it('are never refused by the default', async () => {
    const made = newEngine();
    await made.engine.createKey('k', {});
    await record(made, 1, 2 * gcmMax);
    await encrypts(made.engine);
  });

  it('are near their end from 80 % on, for the newest version', async () => {
    const made = newEngine();
    const { engine } = made;
    await engine.createKey('k', {});
    const near = async () => {
      const { key, usage } = await engine.usedKey('k');
      expect(await engine.nearLimit('k', key.record.id)).to.deep.equal(nearLimit(key.record, usage));
      return nearLimit(key.record, usage);
    };
    const warned = Math.ceil(0.8 * gcmMax);
    await record(made, 1, warned - 2);
    expect(await near()).to.equal(undefined);
    await record(made, 1, 1, 1);
    expect(await near()).to.deep.equal({ version: 1, made: warned, max: gcmMax });
    await engine.rotateKey('k');
    expect(await near()).to.equal(undefined);
    expect(await engine.nearLimit('k', 'another id')).to.equal(undefined);
  });

  it('stay with a backup; the restored key counts from zero', async () => {
    const made = newEngine();
    const { engine } = made;
    await engine.createKey('k', { exportable: true, allowPlaintextBackup: true });
    await engine.configureKey('k', { maxOperations: 10 });
    await record(made, 1, 10);
    const backup = await engine.transfers.backupKey('k');
    await engine.transfers.restoreKey({ backup: backup.toString('base64'), name: 'copy' });
    expect((await engine.readKey('copy')).maxOperations).to.equal(10);
    await engine.ciphertexts.encrypt('copy', { ...anything, plaintext: fox });
  });

  it('are refused in a backup with a number that a configuration does not store', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { exportable: true, allowPlaintextBackup: true });
    const { record } = (await engine.usedKey('k')).key;
    const version = { version: 1, keyName: 'k', createdMs: 0, material: Buffer.alloc(32), hmacSecret: Buffer.alloc(32) };
    for (const maxOperations of [0, -1, 1.5, 2 ** 53]) {
      const backup = encodeBackup('k', { ...record, maxOperations }, [version]).toString('base64');
      const { message } = await refusalOf(engine.transfers.restoreKey({ backup, name: 'copy' }));
      expect(message, `${maxOperations}`).to.include('max_operations is out of range');
    }
  });
});
