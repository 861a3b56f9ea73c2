import { execFileSync } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { isEncrypted, materialFrom } from '../../src/local/key-material.ts';
import { isPkcs12 } from '../../src/local/pkcs12.ts';

describe('a PKCS#12 file', () => {
  let folder: string;
  let pkcs8: Buffer;
  const at = (name: string): string => join(folder, name);
  /** Makes a file with OpenSSL. */
  const made = (name: string, ...options: readonly string[]): Buffer => {
    execFileSync('openssl', ['pkcs12', '-export', '-out', at(name), '-passout', 'pass:the words', ...options], { stdio: 'pipe' });
    return readFileSync(at(name));
  };
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-pkcs12-'));
    const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=x', '-days', '9'];
    execFileSync('openssl', [...request, '-keyout', at('key'), '-out', at('certificate')], { stdio: 'pipe' });
    pkcs8 = createPrivateKey(readFileSync(at('key'))).export({ type: 'pkcs8', format: 'der' });
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('gives its private key, with certificates or without, under new and old ciphers', () => {
    const both = ['-inkey', at('key'), '-in', at('certificate')];
    for (const [name, ...options] of [
      ['new', ...both],
      ['old', ...both, '-legacy'],
      ['key-alone', '-inkey', at('key'), '-nocerts'],
      ['key-unencrypted', ...both, '-keypbe', 'NONE'],
    ] as const) {
      const content = made(name, ...options);
      expect(isEncrypted(content), name).to.equal(true);
      expect(materialFrom(content, { passphrase: 'the words' }), name).to.deep.equal({
        kind: 'private',
        type: 'rsa-2048',
        bytes: pkcs8,
      });
    }
  });

  it('is refused with a wrong passphrase, changed, without a MAC, without a key, and cut off', () => {
    const both = ['-inkey', at('key'), '-in', at('certificate')];
    const content = made('good', ...both);
    const refusal = (bytes: Buffer, passphrase = 'the words'): string => {
      try {
        expect(materialFrom(bytes, { encoding: 'pkcs12', passphrase })).to.deep.include({ bytes: pkcs8 });
      } catch (error) {
        expect(error).to.be.instanceOf(StartError);
        return (error as Error).message;
      }
      return 'accepted';
    };
    expect(refusal(content, 'other words')).to.match(/does not open with this passphrase/);
    expect(refusal(content, '')).to.match(/does not open with this passphrase/);
    const macStart = content.length - 100;
    for (let place = 0; place < content.length; place += 41) {
      const changed = Buffer.from(content);
      changed[place] = (changed[place] ?? 0) ^ 1;
      // The description of the MAC itself has bytes without effect.
      if (refusal(changed) === 'accepted') expect(place, 'a changed byte').to.be.above(macStart);
    }
    expect(refusal(made('no-mac', ...both, '-nomac'))).to.match(/has no MAC/);
    expect(refusal(made('no-key', '-nokeys', '-in', at('certificate')))).to.match(/has 0 private keys/);
    expect(refusal(content.subarray(0, -1))).not.to.equal('accepted');
    expect(refusal(Buffer.alloc(0))).not.to.equal('accepted');
  });

  it('is not mistaken for other material', () => {
    expect(isPkcs12(pkcs8)).to.equal(false);
    expect(isPkcs12(Buffer.alloc(32, 0x30))).to.equal(false);
    expect(isPkcs12(Buffer.from('3080020103', 'hex')), 'indefinite length').to.equal(false);
    expect(isPkcs12(Buffer.alloc(0))).to.equal(false);
  });
});
