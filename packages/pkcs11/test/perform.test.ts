import { expect } from 'chai';
import type { TokenCall } from '../src/call.ts';
import type { Binding, Constants, Cryptoki } from '../src/cryptoki.ts';
import { Pkcs11Failure } from '../src/failure.ts';
import { perform } from '../src/perform.ts';
import { Sessions } from '../src/sessions.ts';

/** Stands for all constants. Each constant is a number, and the fake token does not check the number. */
const constants = new Proxy({}, { get: (_, name) => String(name).length }) as Constants;
const key = { library: 'l', slot: 0, pin: '1234', keyLabel: 'k', mechanism: 'CKM_ECDSA' } as const;
const signing: TokenCall = { operation: 'sign', key, input: { digest: Buffer.alloc(32), hash: 'sha256' } };
const generation: TokenCall = { operation: 'generate', key, as: { curve: 'P256' } };

/** A fake token with one key. It counts its calls and fails as the test says. */
function fakeToken(failures: Partial<Record<keyof Cryptoki, string[]>>) {
  const calls: string[] = [];
  const called =
    <T>(name: keyof Cryptoki, result: T) =>
    (): T => {
      calls.push(name);
      const failure = failures[name]?.shift();
      if (failure !== undefined) throw new Error(`${failure}:1`);
      return result;
    };
  const cryptoki = {
    C_GetSlotList: called('C_GetSlotList', [Buffer.alloc(8)]),
    C_GetTokenInfo: called('C_GetTokenInfo', { manufacturerID: 'fake', serialNumber: '1' }),
    C_OpenSession: called('C_OpenSession', Buffer.alloc(8)),
    C_Login: called('C_Login', undefined),
    C_Logout: called('C_Logout', undefined),
    C_CloseSession: called('C_CloseSession', undefined),
    C_FindObjectsInit: called('C_FindObjectsInit', undefined),
    C_FindObjects: called('C_FindObjects', [Buffer.of(9)]),
    C_FindObjectsFinal: called('C_FindObjectsFinal', undefined),
    C_GenerateRandom: called('C_GenerateRandom', Buffer.from('drawn')),
    C_SignInit: called('C_SignInit', undefined),
    C_Sign: called('C_Sign', Buffer.from('signature')),
    C_GenerateKeyPair: called('C_GenerateKeyPair', undefined),
  } as unknown as Cryptoki;
  const binding: Binding = { cryptoki, constants };
  const sessions = new Sessions(binding, new Set());
  const run = (call: TokenCall): string => {
    try {
      return Buffer.from((perform(binding, sessions, call) as Uint8Array | undefined) ?? []).toString();
    } catch (error) {
      if (error instanceof Pkcs11Failure) return error.code;
      throw error;
    }
  };
  const timesOf = (name: keyof Cryptoki): number => calls.filter((call) => call === name).length;
  return { run, timesOf };
}

describe('a call to a token', () => {
  it('logs in once and looks up a key once per session', () => {
    const { run, timesOf } = fakeToken({});
    for (let call = 0; call < 3; call++) expect(run(signing)).to.equal('signature');
    expect([timesOf('C_Login'), timesOf('C_FindObjectsInit'), timesOf('C_Sign')]).to.deep.equal([1, 1, 3]);
  });

  for (const value of [
    'CKR_SESSION_HANDLE_INVALID',
    'CKR_USER_NOT_LOGGED_IN',
    'CKR_KEY_HANDLE_INVALID',
    'CKR_TOKEN_NOT_PRESENT',
  ]) {
    it(`is repeated once with a new session after ${value}`, () => {
      const { run, timesOf } = fakeToken({ C_SignInit: [value] });
      expect(run(signing)).to.equal('signature');
      expect([timesOf('C_Login'), timesOf('C_FindObjectsInit')]).to.deep.equal([2, 2]);
      const gone = fakeToken({ C_SignInit: [value, value] });
      expect(gone.run(signing)).to.equal('token_failed');
      expect(gone.run(signing), 'the next one begins again').to.equal('signature');
    });
  }

  it('draws random bytes, or says that the token has no generator', () => {
    const drawing: TokenCall = { operation: 'random', key, bytes: 5 };
    const { run } = fakeToken({ C_GenerateRandom: ['CKR_RANDOM_NO_RNG', 'CKR_SESSION_CLOSED'] });
    expect([run(drawing), run(drawing)]).to.deep.equal(['not_possible', 'drawn']);
  });

  it('is not repeated after any other failure', () => {
    const { run, timesOf } = fakeToken({ C_Sign: ['CKR_DEVICE_ERROR'] });
    expect(run(signing)).to.equal('token_failed');
    expect(timesOf('C_Sign')).to.equal(1);
    expect(run(signing)).to.equal('signature');
  });

  it('logs in with its own PIN if another thread is still logged in', () => {
    const { run, timesOf } = fakeToken({ C_Login: ['CKR_USER_ALREADY_LOGGED_IN'] });
    expect(run(signing)).to.equal('signature');
    expect([timesOf('C_Login'), timesOf('C_Logout')]).to.deep.equal([2, 1]);
    const wrong = fakeToken({ C_Login: ['CKR_USER_ALREADY_LOGGED_IN', 'CKR_PIN_INCORRECT'] });
    expect(wrong.run(signing)).to.equal('pin_refused');
  });

  it('that generates a key is never repeated', () => {
    const { run, timesOf } = fakeToken({ C_GenerateKeyPair: ['CKR_SESSION_CLOSED'] });
    expect(run(generation)).to.equal('token_failed');
    expect(timesOf('C_GenerateKeyPair')).to.equal(1);
  });

  it('is refused as not possible if the token works', () => {
    const { run } = fakeToken({ C_SignInit: ['CKR_MECHANISM_INVALID'], C_Sign: ['CKR_DATA_LEN_RANGE'] });
    expect([run(signing), run(signing), run(signing)]).to.deep.equal(['not_possible', 'not_possible', 'signature']);
  });

  for (const { value, code, attempts } of [
    { value: 'CKR_PIN_INCORRECT', code: 'pin_refused', attempts: 1 },
    { value: 'CKR_PIN_LEN_RANGE', code: 'pin_refused', attempts: 1 },
    { value: 'CKR_PIN_LOCKED', code: 'pin_refused', attempts: 3 },
    { value: 'CKR_DEVICE_ERROR', code: 'token_failed', attempts: 3 },
  ]) {
    it(`whose login ends in ${value} is tried ${attempts === 1 ? 'once' : 'each time'}`, () => {
      const { run, timesOf } = fakeToken({ C_Login: [value, value, value] });
      expect([run(signing), run(signing), run(signing)]).to.deep.equal([code, code, code]);
      expect([timesOf('C_Login'), timesOf('C_CloseSession')]).to.deep.equal([attempts, attempts]);
    });
  }
});
