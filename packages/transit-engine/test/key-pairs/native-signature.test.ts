import { constants, generateKeyPairSync, sign, verify } from 'node:crypto';
import { expect } from 'chai';
import {
  type NativeOptions,
  poolSize,
  signaturesAtOnce,
  signNatively,
  verifyNatively,
} from '../../src/key-pairs/native-signature.ts';

const { RSA_PKCS1_PADDING, RSA_PKCS1_PSS_PADDING } = constants;
const input = Buffer.from('input');

describe('native signatures', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const ecdsa = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const cases: readonly { readonly pair: typeof rsa; readonly options: NativeOptions }[] = [
    { pair: rsa, options: { hash: 'sha256', padding: RSA_PKCS1_PSS_PADDING, saltLength: 20 } },
    { pair: rsa, options: { hash: 'sha512', padding: RSA_PKCS1_PADDING } },
    { pair: rsa, options: { hash: 'sha256', padding: RSA_PKCS1_PSS_PADDING, saltLength: 32 } },
    { pair: rsa, options: { hash: 'sha256' } },
    { pair: ecdsa, options: { hash: 'sha256', dsaEncoding: 'ieee-p1363' } },
    { pair: ecdsa, options: { hash: 'sha256' } },
    { pair: ecdsa, options: { hash: 'sha256', dsaEncoding: 'der' } },
  ];

  for (const isSlow of [false, true]) {
    it(`use the options of their own call and none of an earlier one, ${isSlow ? 'on the thread pool' : 'on this thread'}`, async () => {
      const signatures = await Promise.all(
        cases.map(({ pair, options }) => signNatively(pair.privateKey, input, { ...options, isSlow })),
      );
      for (const [at, { pair, options }] of cases.entries()) {
        const { hash, ...others } = options;
        const signature = signatures[at] ?? Buffer.alloc(0);
        expect(verify(hash, input, { key: pair.publicKey, ...others }, signature), `signature ${at}`).to.equal(true);
      }
      const verified = await Promise.all(
        cases.map(({ pair, options: { hash, ...others } }) => {
          const signature = sign(hash, input, { key: pair.privateKey, ...others });
          return verifyNatively(pair.publicKey, input, signature, { hash, ...others, isSlow });
        }),
      );
      expect(verified).to.deep.equal(cases.map(() => true));
    });
  }

  it('use at most half of the thread pool together with other slow cryptography, whatever the number of threads', () => {
    for (const threads of [1, 2, 3, 5, 10]) expect(6 + threads * signaturesAtOnce(32, threads)).to.be.at.most(16);
    expect([1, 2, 5].map((threads) => signaturesAtOnce(32, threads))).to.deep.equal([2, 2, 2]);
    expect(signaturesAtOnce(8, 3)).to.equal(1); // a pool that an operator made small still signs
  });

  it('are made, whatever UV_THREADPOOL_SIZE says', () => {
    expect([undefined, '32', '16 threads', '0', '', 'many', '-1'].map(poolSize)).to.deep.equal([4, 32, 16, 1, 1, 1, 1]);
    expect(signaturesAtOnce(poolSize('many'), 3)).to.equal(1);
  });

  it('of slow keys leave this thread free: no result is ready in the microtasks of the same turn', async () => {
    const events: string[] = [];
    const slow = signNatively(rsa.privateKey, input, { hash: 'sha256', isSlow: true }).then(() => events.push('slow'));
    const quick = signNatively(ecdsa.privateKey, input, { hash: 'sha256' }).then(() => events.push('quick'));
    await quick;
    process.nextTick(() => events.push('next tick'));
    await new Promise((resolve) => setImmediate(resolve));
    expect(events.slice(0, 2)).to.deep.equal(['quick', 'next tick']);
    await slow;
    expect(events).to.include('slow');
  });
});
