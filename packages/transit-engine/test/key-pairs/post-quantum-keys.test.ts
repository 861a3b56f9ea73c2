import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { ml_dsa44, ml_dsa65, ml_dsa87 } from '@noble/post-quantum/ml-dsa.js';
import { expect } from 'chai';
import type { CreateKeyRequest, TransitEngine } from '../../src/index.ts';
import { decodeHalves, encodeHalves, type Halves } from '../../src/key-pairs/hybrid.ts';
import { base64, fox, newEngine, refusalOf } from '../fixtures.ts';

const noble = { '44': ml_dsa44, '65': ml_dsa65, '87': ml_dsa87 };
const sets = ['44', '65', '87'] as const;
const curves = ['ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521', 'ed25519'] as const;
const message = Buffer.from('the quick brown fox');
const jumps = base64('jumps over the lazy dog');
const hybrid = (parameterSet: string, hybridKeyTypeEc: string): CreateKeyRequest => ({
  type: 'hybrid',
  parameterSet,
  hybridKeyTypePqc: 'ml-dsa',
  hybridKeyTypeEc,
});

type Options = Parameters<TransitEngine['signing']['sign']>[1];
async function sign(engine: TransitEngine, name: string, options: Options = {}): Promise<string> {
  const reply = await engine.signing.sign(name, { input: fox, ...options });
  if ('results' in reply) throw new Error('the request was no batch');
  return reply.signature;
}
async function holds(engine: TransitEngine, name: string, signature: string, options: Options = {}): Promise<boolean> {
  const reply = await engine.signing.verify(name, { input: fox, signature, ...options });
  if ('results' in reply) throw new Error('the request was no batch');
  return reply.valid;
}
const payloadOf = (signature: string): Buffer => Buffer.from(signature.split(':')[2] ?? '', 'base64');
const stringOf = (payload: Uint8Array): string => `svc:v1:${Buffer.from(payload).toString('base64')}`;
function halvesOf(bytes: Uint8Array): Halves {
  const pair = decodeHalves(bytes);
  if (pair === undefined) throw new Error('not a pair');
  return pair;
}
async function publicKeysOf(engine: TransitEngine, name: string, version = 1) {
  const { versions } = await engine.readKey(name);
  const pair = versions.find((each) => each.version === version)?.pair;
  if (pair === undefined) throw new Error('no key pair');
  return pair;
}
const curveKey = (text: string): KeyObject =>
  text.startsWith('-----')
    ? createPublicKey(text)
    : createPublicKey({
        key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(text, 'base64').toString('base64url') },
        format: 'jwk',
      });

describe('keys of type ml-dsa', () => {
  for (const set of sets) {
    it(`${set}: make signatures that another implementation accepts under the shown public key`, async () => {
      const { engine } = newEngine();
      const { key, warnings } = await engine.createKey('k', { type: 'ml-dsa', parameterSet: set });
      expect(warnings).to.deep.equal(['keys of type ml-dsa are experimental and not for use in production']);
      expect(key).to.include({ type: 'ml-dsa', supportsSigning: true, supportsEncryption: false, supportsDerivation: false });
      expect(key.parameters).to.deep.equal({ parameterSet: set });
      const { publicKey, name, hybridPublicKey } = await publicKeysOf(engine, 'k');
      expect([name, hybridPublicKey]).to.deep.equal([`ml-dsa-${set}`, '']);
      const signature = payloadOf(await sign(engine, 'k'));
      expect(noble[set].verify(Uint8Array.from(signature), message, Uint8Array.from(Buffer.from(publicKey, 'base64')))).to.equal(
        true,
      );
    });
  }

  it('may be named mldsa-65', async () => {
    const { engine } = newEngine();
    expect((await engine.createKey('k', { type: 'mldsa-65' })).key.parameters).to.deep.equal({ parameterSet: '65' });
    expect((await engine.createKey('l', { type: 'mldsa-65', parameterSet: '65' })).key.type).to.equal('ml-dsa');
  });

  for (const { request, message: refusal } of [
    { request: { type: 'ml-dsa' }, message: 'invalid parameter set  for key type ml-dsa' },
    { request: { type: 'ml-dsa', parameterSet: '45' }, message: 'invalid parameter set 45 for key type ml-dsa' },
    { request: { type: 'mldsa-65', parameterSet: '44' }, message: 'invalid parameter set 44 for key type ml-dsa' },
    { request: { type: 'mldsa-66' }, message: 'unknown key type mldsa-66' },
    { request: { type: 'ml-dsa-65' }, message: 'unknown key type ml-dsa-65' },
    { request: { type: 'hybrid-ml-dsa-65-ed25519' }, message: 'unknown key type hybrid-ml-dsa-65-ed25519' },
    { request: hybrid('65', 'rsa-2048'), message: 'invalid config for hybrid key: invalid key type for hybrid key: rsa-2048' },
    { request: hybrid('65', ''), message: 'invalid config for hybrid key: invalid key type for hybrid key: ' },
    { request: hybrid('99', 'ed25519'), message: 'invalid config for hybrid key: invalid parameter set 99 for key type ml-dsa' },
    {
      request: { type: 'hybrid', parameterSet: '99', hybridKeyTypeEc: 'x' },
      message: 'invalid config for hybrid key: invalid PQC key type: ',
    },
    {
      request: { type: 'ml-dsa', parameterSet: '44', derived: true },
      message: 'key derivation and convergent encryption not supported for keys of type ml-dsa-44',
    },
    { request: { type: 'ml-dsa', parameterSet: '44', keySize: 32 }, message: 'key_size is not valid for algorithm ml-dsa-44' },
  ] satisfies { request: CreateKeyRequest; message: string }[]) {
    it(`are refused with ${JSON.stringify(request)}`, async () => {
      const { engine } = newEngine();
      expect((await refusalOf(engine.createKey('k', request))).message).to.equal(refusal);
      expect((await refusalOf(engine.readKey('k'))).code).to.equal('not_found');
    });
  }

  it('sign and verify at most 10,000 items in a batch, because the signatures are long', async () => {
    const { engine } = newEngine();
    await engine.createKey('m', { type: 'ml-dsa', parameterSet: '44' });
    await engine.createKey('h', hybrid('44', 'ed25519'));
    const items = Array(10_001).fill({ input: fox, signature: 'x' });
    for (const [name, type] of [
      ['m', 'ml-dsa'],
      ['h', 'hybrid'],
    ] as const) {
      const refused = { message: `batch input holds more than 10000 items, the most for a key of type ${type}` };
      expect(await refusalOf(engine.signing.sign(name, { items }))).to.include(refused);
      expect(await refusalOf(engine.signing.verify(name, { items }))).to.include(refused);
    }
    const most = await engine.signing.verify('m', { items: items.slice(1) });
    expect('results' in most && most.results.length).to.equal(10_000);
  });

  it('that are created again with another request are unchanged, with a warning', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'ml-dsa', parameterSet: '44' });
    const experimental = 'keys of type ml-dsa are experimental and not for use in production';
    expect((await engine.createKey('k', { type: 'mldsa-44' })).warnings).to.deep.equal([experimental]);
    expect((await engine.createKey('k', { type: 'ml-dsa', parameterSet: '87' })).warnings).to.deep.equal([
      experimental,
      'key k already existed; its settings were not changed',
    ]);
  });

  for (const [name, request] of [
    ['ml-dsa', { type: 'ml-dsa', parameterSet: '44' }],
    ['hybrid', hybrid('44', 'ecdsa-p256')],
  ] satisfies [string, CreateKeyRequest][]) {
    it(`${name}: refuses digests and contexts`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', request);
      const signature = await sign(engine, 'k');
      for (const [options, refusal] of [
        [{ prehashed: true }, 'ml-dsa signs whole messages: prehashed input is not supported'],
        [{ signatureContext: base64('context') }, 'signature_context is for ed25519 keys'],
      ] satisfies [Options, string][]) {
        expect((await refusalOf(sign(engine, 'k', options))).message).to.equal(refusal);
        expect((await refusalOf(holds(engine, 'k', signature, options))).message).to.equal(refusal);
      }
    });

    it(`${name}: rotates, and old signatures stay valid under the old version`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', request);
      const first = await sign(engine, 'k');
      await engine.rotateKey('k');
      const second = await sign(engine, 'k');
      expect(second.startsWith('svc:v2:')).to.equal(true);
      expect([await holds(engine, 'k', first), await holds(engine, 'k', second)]).to.deep.equal([true, true]);
      expect(await holds(engine, 'k', first.replace('v1', 'v2'))).to.equal(false);
      expect((await publicKeysOf(engine, 'k', 1)).publicKey).not.to.equal((await publicKeysOf(engine, 'k', 2)).publicKey);
    });

    it(`${name}: signs as before after backup and restore`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', { ...request, exportable: true, allowPlaintextBackup: true });
      const signature = await sign(engine, 'k');
      const backup = (await engine.transfers.backupKey('k')).toString('base64');
      await engine.transfers.restoreKey({ backup, name: 'copy' });
      expect(await holds(engine, 'copy', signature)).to.equal(true);
      expect(await holds(engine, 'k', await sign(engine, 'copy'))).to.equal(true);
      expect((await engine.readKey('copy')).type).to.equal(name);
    });

    it(`${name}: refuses import, and wrapping for another service`, async () => {
      const { engine } = newEngine();
      const refusal = `keys of type ${name} cannot be imported`;
      expect((await refusalOf(engine.transfers.importKey('i', { type: name, ciphertext: 'AAAA' }))).message).to.equal(refusal);
      await engine.createKey('k', { ...request, exportable: true });
      await engine.createKey('d', { type: 'rsa-2048' });
      expect((await refusalOf(engine.transfers.wrapForTransfer('k', { destination: 'd' }))).message).to.equal(
        `keys of type ${name} cannot be wrapped`,
      );
    });
  }

  it('export their seed if exportable, and their public key', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'ml-dsa', parameterSet: '65', exportable: true });
    const [exported] = (await engine.transfers.exportKey('k', { exportType: 'signing-key' })).versions;
    const { publicKey } = await publicKeysOf(engine, 'k');
    const { publicKey: made } = ml_dsa65.keygen(Uint8Array.from(exported?.material ?? []));
    expect(Buffer.from(made).toString('base64')).to.equal(publicKey);
    const shown = await engine.transfers.exportKey('k', { exportType: 'public-key' });
    expect(shown.type).to.equal('ml-dsa');
    expect(Buffer.from(shown.versions[0]?.material ?? []).toString()).to.equal(publicKey);
    await engine.createKey('kept', { type: 'ml-dsa', parameterSet: '65' });
    expect((await refusalOf(engine.transfers.exportKey('kept', { exportType: 'signing-key' }))).message).to.equal(
      'private key material is not exportable',
    );
  });
});

describe('keys of type hybrid', () => {
  for (const set of sets) {
    for (const ec of curves) {
      for (const marshaling of ['asn1', 'jws'] as const) {
        it(`ml-dsa-${set} with ${ec}, ${marshaling}: both halves sign the whole message`, async () => {
          const { engine } = newEngine();
          const { key, warnings } = await engine.createKey('k', hybrid(set, ec));
          expect(warnings).to.deep.equal(['keys of type hybrid are experimental and not for use in production']);
          expect(key.parameters).to.deep.equal({ parameterSet: set, hybridKeyTypePqc: 'ml-dsa', hybridKeyTypeEc: ec });
          const signature = await sign(engine, 'k', { marshalingAlgorithm: marshaling });
          const payload = Buffer.from(signature.split(':')[2] ?? '', marshaling === 'jws' ? 'base64url' : 'base64');
          const parts = halvesOf(payload);
          const { publicKey, hybridPublicKey } = await publicKeysOf(engine, 'k');
          const raw = Uint8Array.from(Buffer.from(publicKey, 'base64'));
          expect(noble[set].verify(Uint8Array.from(parts.pqc), message, raw)).to.equal(true);
          const dsaEncoding = marshaling === 'jws' ? 'ieee-p1363' : 'der';
          const hash = ec === 'ed25519' ? null : 'sha256';
          expect(verify(hash, message, { key: curveKey(hybridPublicKey), dsaEncoding }, parts.ec)).to.equal(true);
          expect(await holds(engine, 'k', signature, { marshalingAlgorithm: marshaling })).to.equal(true);
          expect(await holds(engine, 'k', signature, { marshalingAlgorithm: marshaling, input: jumps })).to.equal(false);
        });
      }
    }
  }

  for (const ec of curves) {
    it(`${ec}: a signature that has one half of another signature is invalid`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', hybrid('65', ec));
      const good = halvesOf(payloadOf(await sign(engine, 'k')));
      const other = halvesOf(payloadOf(await sign(engine, 'k', { input: jumps })));
      const pairHolds = (pair: Halves): Promise<boolean> => holds(engine, 'k', stringOf(encodeHalves(pair)));
      expect(await pairHolds(good)).to.equal(true);
      for (const [name, pair] of Object.entries({
        'the first is of another message': { ...good, pqc: other.pqc },
        'the second is of another message': { ...good, ec: other.ec },
        'the first is missing': { ...good, pqc: Buffer.alloc(0) },
        'the second is missing': { ...good, ec: Buffer.alloc(0) },
        'they are exchanged': { pqc: good.ec, ec: good.pqc },
        'the second is followed by a byte': { ...good, ec: Buffer.concat([good.ec, Buffer.of(0)]) },
      })) {
        expect(await pairHolds(pair), name).to.equal(false);
      }
    });

    it(`${ec}: a modified or truncated signature is invalid`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', hybrid('44', ec));
      const payload = payloadOf(await sign(engine, 'k'));
      const ecAt = 4 + 2420;
      for (const at of [0, 3, 4, ecAt - 1, ecAt, ecAt + 1, ecAt + 3, payload.length - 1]) {
        const altered = Buffer.from(payload);
        altered[at] = (altered[at] ?? 0) ^ 1;
        expect(await holds(engine, 'k', stringOf(altered)), `byte ${at}`).to.equal(false);
      }
      for (const length of [1, 4, ecAt, ecAt + 1, payload.length - 1]) {
        expect(await holds(engine, 'k', stringOf(payload.subarray(0, length))), `${length} bytes`).to.equal(false);
      }
    });
  }

  it('use the hash only for the elliptic-curve half', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', hybrid('44', 'ecdsa-p256'));
    const signature = await sign(engine, 'k', { hashAlgorithm: 'sha2-512' });
    expect(await holds(engine, 'k', signature, { hashAlgorithm: 'sha2-512' })).to.equal(true);
    expect(await holds(engine, 'k', signature)).to.equal(false);
  });

  it('export both halves as one', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { ...hybrid('44', 'ecdsa-p384'), exportable: true });
    const { publicKey, hybridPublicKey } = await publicKeysOf(engine, 'k');
    const [publicExport] = (await engine.transfers.exportKey('k', { exportType: 'public-key' })).versions;
    const shown = halvesOf(Buffer.from(Buffer.from(publicExport?.material ?? []).toString(), 'base64'));
    expect(Buffer.from(shown.pqc).toString('base64')).to.equal(publicKey);
    const spki = createPublicKey({ key: Buffer.from(shown.ec), format: 'der', type: 'spki' });
    expect(spki.equals(createPublicKey(hybridPublicKey))).to.equal(true);
    const [privateExport] = (await engine.transfers.exportKey('k', { exportType: 'signing-key' })).versions;
    const secret = halvesOf(privateExport?.material ?? Buffer.alloc(0));
    expect(Buffer.from(ml_dsa44.keygen(Uint8Array.from(secret.pqc)).publicKey).toString('base64')).to.equal(publicKey);
  });

  it('generate both halves for each key', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', hybrid('44', 'ed25519'));
    await engine.createKey('l', hybrid('44', 'ed25519'));
    const [one, other] = [await publicKeysOf(engine, 'k'), await publicKeysOf(engine, 'l')];
    expect(one.publicKey).not.to.equal(other.publicKey);
    expect(one.hybridPublicKey).not.to.equal(other.hybridPublicKey);
  });

  it('are not restored with damaged or exchanged halves', async () => {
    const { engine } = newEngine();
    for (const [name, request] of [
      ['k', hybrid('44', 'ed25519')],
      ['l', hybrid('44', 'ed25519')],
    ] satisfies [string, CreateKeyRequest][]) {
      await engine.createKey(name, { ...request, exportable: true, allowPlaintextBackup: true });
    }
    const { decodeBackup, encodeBackup } = await import('../../src/transfers/backup.ts');
    const [k, l] = [
      await decodeBackup((await engine.transfers.backupKey('k')).toString('base64')),
      await decodeBackup((await engine.transfers.backupKey('l')).toString('base64')),
    ];
    const [mine, others] = [k.versions[0], l.versions[0]];
    if (mine?.publicKey === undefined || others?.publicKey === undefined) throw new Error('no version');
    const [myHalves, otherHalves] = [halvesOf(mine.publicKey), halvesOf(others.publicKey)];
    const myMaterial = halvesOf(mine.material);
    const whole = Buffer.concat([myMaterial.pqc, myMaterial.ec]);
    const splitAt = (at: number): Buffer => encodeHalves({ pqc: whole.subarray(0, at), ec: whole.subarray(at) });
    const [apart, noPair] = ['key pair does not match', 'it is not a pair of keys'];
    for (const [half, reason] of [
      [{ publicKey: others.publicKey }, apart],
      [{ publicKey: encodeHalves({ ...myHalves, ec: otherHalves.ec }) }, apart],
      [{ publicKey: encodeHalves({ ...myHalves, pqc: otherHalves.pqc }) }, apart],
      [{ publicKey: mine.publicKey.subarray(0, -1) }, apart],
      [{ publicKey: Buffer.of(1) }, noPair],
      ...[0, 31, 33, 64, 95, 96].map((at) => [{ material: splitAt(at) }, noPair] as const),
    ] as const) {
      const version = { ...mine, keyName: 'k', version: 1, ...half };
      const backup = encodeBackup('k', { ...k.record, id: '' }, [version]).toString('base64');
      expect((await refusalOf(engine.transfers.restoreKey({ backup, name: 'copy' }))).message).to.equal(
        `the backup cannot be restored: version 1 is not a key pair of its type: ${reason}`,
      );
    }
  });
});
