import { createHash } from 'node:crypto';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { Pkcs11Failure, Pkcs11Tokens, type TokenKey } from '../src/index.ts';
import { Recovery } from '../src/recovery.ts';
import { needsToken, softhsmLibrary, TokenFolder } from './softhsm.ts';

describe('a token that was temporarily unavailable', () => {
  let folder: TokenFolder;
  let tokens: Pkcs11Tokens;
  before(function () {
    needsToken(this);
    folder = new TokenFolder();
    folder.addToken({ label: 'first', pin: '1234' });
    folder.addToken({ label: 'second', pin: '5678' });
    const libraries = [{ name: 'hsm', path: softhsmLibrary ?? '' }];
    tokens = new Pkcs11Tokens({ libraries, reinitializeEveryMs: 10, deadlineMs: 120_000 });
  });
  after(() => {
    tokens?.close();
    folder?.remove();
  });

  const key: TokenKey = { library: 'hsm', tokenLabel: 'first', pin: '1234', keyLabel: 'k', mechanism: 'CKM_ECDSA' };
  const input = { digest: createHash('sha256').update('x').digest(), hash: 'sha256' };
  const outcome = async (asked = key): Promise<string> => {
    try {
      await tokens.sign(asked, input);
      return 'signed';
    } catch (error) {
      if (error instanceof Pkcs11Failure) return error.code;
      throw error;
    }
  };
  const unreachable = ['token_failed', 'token_not_found'];
  const away = (): void => renameSync(join(folder.path, 'tokens'), join(folder.path, 'away'));
  const back = (): void => renameSync(join(folder.path, 'away'), join(folder.path, 'tokens'));

  it('works again as soon as it is available again, after a few failed calls and after many', async () => {
    await tokens.generate(key, {});
    expect(await outcome()).to.equal('signed');
    for (const calls of [1, 2, 3, 20]) {
      away();
      for (let call = 0; call < calls; call++) expect(await outcome()).to.be.oneOf(unreachable);
      back();
      let last: string;
      do last = await outcome();
      while (last !== 'signed');
    }
  });

  it('never gets a refused PIN again, since tokens lock after a few wrong PINs', async () => {
    const wrong = { ...key, pin: 'wrong' };
    expect(await outcome(wrong)).to.equal('pin_refused');
    for (let time = 0; time < 5; time++) {
      away();
      for (let call = 0; call < 5; call++) await outcome();
      back();
      do expect(await outcome(wrong)).to.be.oneOf(['pin_refused', ...unreachable]);
      while ((await outcome()) !== 'signed');
    }
    expect(await outcome({ ...key, tokenLabel: 'second' }), 'the other token').to.equal('pin_refused');
    expect(await outcome()).to.equal('signed');
  });
});

describe('the decision to reinitialize a library', () => {
  const failing = (recovery: Recovery, token: string, atMs: number, times: number): boolean[] =>
    Array.from({ length: times }, () => recovery.isDue(token, 'token_failed', atMs));

  it('is made after three consecutive failures of one token, at most once per interval', () => {
    const recovery = new Recovery(1000);
    expect(failing(recovery, 'a', 0, 7)).to.deep.equal([false, false, true, false, false, false, false]);
    expect(recovery.isDue('a', 'token_not_found', 999)).to.equal(false);
    expect(recovery.isDue('a', 'token_not_found', 1000)).to.equal(true);
  });

  it('does not depend on other tokens or on faults of the request', () => {
    const recovery = new Recovery(1000);
    expect(failing(recovery, 'a', 0, 2)).to.deep.equal([false, false]);
    for (const code of [undefined, 'pin_refused', 'not_possible', 'key_not_found'] as const) {
      for (let time = 0; time < 5; time++) expect(recovery.isDue('b', code, 0)).to.equal(false);
    }
    expect(recovery.isDue('a', 'token_failed', 0)).to.equal(true);
    expect(failing(recovery, 'c', 5000, 2)).to.deep.equal([false, false]);
    recovery.isDue('c', undefined, 5000);
    expect(failing(recovery, 'c', 5000, 3), 'an answer ends the row').to.deep.equal([false, false, true]);
  });
});
