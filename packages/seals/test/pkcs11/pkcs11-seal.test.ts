import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { ProviderError } from '@transitd/barrier';
import { type GcmInput, Pkcs11Failure, type Pkcs11FailureCode, type TokenKey } from '@transitd/pkcs11';
import { expect } from 'chai';
import { Pkcs11Seal } from '../../src/pkcs11/pkcs11-seal.ts';
import { describeContract } from '../contract/contract.ts';
import { providerErrorOf } from '../contract/provider-error-of.ts';

/** A token in memory with one AES key. */
function token() {
  const material = randomBytes(32);
  const state = {
    failure: undefined as Pkcs11FailureCode | undefined,
    keys: [] as TokenKey[],
    ivs: [] as string[],
    unsuitable: false,
  };
  const refuse = (key: TokenKey): void => {
    state.keys.push(key);
    if (state.failure !== undefined) throw new Pkcs11Failure(state.failure, `it says ${state.failure}`);
  };
  const tokens = {
    async requireAes256() {
      if (state.unsuitable) throw new Pkcs11Failure('key_unsuitable', 'the key in the token has 128 bits');
    },
    async encrypt(key: TokenKey, { input, iv, associatedData }: GcmInput) {
      refuse(key);
      state.ivs.push(Buffer.from(iv).toString('hex'));
      const cipher = createCipheriv('aes-256-gcm', material, iv).setAAD(associatedData);
      return Buffer.concat([cipher.update(input), cipher.final(), cipher.getAuthTag()]);
    },
    async random(key: TokenKey, bytes: number) {
      refuse(key);
      return randomBytes(bytes);
    },
    async decrypt(key: TokenKey, { input, iv, associatedData }: GcmInput) {
      refuse(key);
      const decipher = createDecipheriv('aes-256-gcm', material, iv).setAAD(associatedData).setAuthTag(input.subarray(-16));
      try {
        return Buffer.concat([decipher.update(input.subarray(0, -16)), decipher.final()]);
      } catch {
        throw new Pkcs11Failure('not_authentic', 'the token does not authenticate the ciphertext');
      }
    },
  };
  const seal = new Pkcs11Seal({
    tokens,
    pin: async () => 'the-pin',
    key: { library: 'hsm', tokenLabel: 'transitd', keyLabel: 'unseal' },
  });
  return { seal, state };
}
const key = randomBytes(32);

describeContract('pkcs11', async () => {
  const [one, other] = [token(), token()];
  return {
    seal: one.seal,
    otherKey: other.seal,
    secrets: ['the-pin'],
    behave: (behavior) => {
      one.state.failure = (
        { serves: undefined, away: 'token_not_found', refuses: 'pin_refused', throttles: 'busy', garbles: undefined } as const
      )[behavior];
    },
    close: async () => undefined,
  };
}, ['garbles', 'rotates']);

describe('a pkcs11 seal', () => {
  it('draws from a token without the key, and says if the token has no generator', async () => {
    const { seal, state } = token();
    state.unsuitable = true;
    expect(await seal.random(20)).to.have.lengthOf(20);
    state.failure = 'not_possible';
    const { failure, message } = await providerErrorOf(seal.random(20));
    expect([failure, message]).to.deep.equal([
      'unsupported',
      'the pkcs11 seal with the key transitd/unseal: it says not_possible',
    ]);
  });

  it('encrypts and decrypts in the token, with a new initialization vector each time', async () => {
    const { seal, state } = token();
    const [one, other] = [await seal.wrap(key), await seal.wrap(key)];
    expect(one.keyId).to.equal('transitd/unseal');
    expect(new Set(state.ivs).size).to.equal(2);
    for (const wrapped of [one, other]) expect(await seal.unwrap(wrapped)).to.deep.equal(key);
    expect(state.keys[0]).to.include({ mechanism: 'CKM_AES_GCM', pin: 'the-pin', keyLabel: 'unseal' });
  });

  it('says in one sentence why the token fails, with the kind of failure and without the PIN', async () => {
    for (const [code, failure] of [
      ['pin_refused', 'permission'],
      ['token_not_found', 'unreachable'],
      ['timeout', 'unreachable'],
      ['binding_missing', 'unreachable'],
      ['key_not_found', 'wrong_key'],
      ['ambiguous', 'wrong_key'],
      ['not_authentic', 'wrong_key'],
      ['busy', 'throttled'],
    ] as const) {
      const { seal, state } = token();
      state.failure = code;
      const error: unknown = await seal.wrap(key).catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(ProviderError).with.property('failure', failure);
      expect(error).to.have.property('message', `the pkcs11 seal with the key transitd/unseal: it says ${code}`);
    }
  });

  it('refuses what another kind of seal encrypted, without a call of the token', async () => {
    const { seal, state } = token();
    const error: unknown = await seal.unwrap({ keyId: 'seal/unseal:v1', ciphertext: 'v:1' }).catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(ProviderError).with.property('failure', 'wrong_key');
    expect(state.keys).to.deep.equal([]);
  });

  it('neither encrypts nor decrypts with a key of another length', async () => {
    const { seal, state } = token();
    const wrapped = await seal.wrap(key);
    state.unsuitable = true;
    for (const attempt of [() => seal.wrap(key), () => seal.unwrap(wrapped)]) {
      const error: unknown = await attempt().catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(ProviderError).with.property('failure', 'wrong_key');
    }
    expect(state.keys).to.have.lengthOf(1);
  });
});
