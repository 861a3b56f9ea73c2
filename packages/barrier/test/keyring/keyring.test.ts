import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { closeKeyring, newKeyring, openKeyring, wipeKeyring, withNewTerm } from '../../src/keyring/keyring.ts';

const rootKey = randomBytes(32);
const first = () => newKeyring({ installedMs: 1_700_000_000_000, valuesAtInstall: 3 });

describe('a keyring', () => {
  it('begins with one random key, term 1', () => {
    const { newest, terms } = first();
    expect([...terms.keys()]).to.deep.equal([1]);
    expect(newest).to.deep.include({ term: 1, installedMs: 1_700_000_000_000, valuesAtInstall: 3 });
    expect(newest.key).to.have.lengthOf(32).and.not.deep.equal(first().newest.key);
  });

  it('keeps the old keys in a separate copy when a term is added', () => {
    const old = first();
    const key = Buffer.from(old.newest.key);
    const next = withNewTerm(old, { installedMs: 5, valuesAtInstall: 2 ** 40 });
    wipeKeyring(old);
    expect(next.terms.get(1)?.key).to.deep.equal(key);
    expect(next.newest).to.deep.include({ term: 2, installedMs: 5, valuesAtInstall: 2 ** 40 });
    expect(next.newest.key).not.to.deep.equal(key);
  });

  it('is decrypted from its record with every term', () => {
    const keyring = withNewTerm(first(), { installedMs: 5, valuesAtInstall: 9 });
    expect(openKeyring(rootKey, closeKeyring(rootKey, keyring))).to.deep.equal(keyring);
  });

  it('cannot be decrypted under another root key or with any bit changed', () => {
    const stored = closeKeyring(rootKey, first());
    expect(openKeyring(randomBytes(32), stored)).to.equal(undefined);
    for (let at = 1; at < stored.length; at += 1) {
      const damaged = Buffer.from(stored);
      damaged.writeUInt8(damaged.readUInt8(at) ^ 1, at);
      expect(openKeyring(rootKey, damaged), `byte ${at}`).to.equal(undefined);
    }
  });

  it('has a format, and an unknown format is reported', () => {
    const stored = closeKeyring(rootKey, first());
    stored.writeUInt8(2);
    expect(() => openKeyring(rootKey, stored)).to.throw(/core\/keyring has an unknown format/);
  });

  it('is all zero once wiped, including the keys taken from it', () => {
    const keyring = withNewTerm(first(), { installedMs: 5, valuesAtInstall: 9 });
    const keys = [...keyring.terms.values()].map(({ key }) => key);
    wipeKeyring(keyring);
    for (const key of keys) expect(key.every((byte) => byte === 0)).to.equal(true);
  });
});
