import type { Store } from '@transitd/storage-fsm';
import { expect } from 'chai';
import type { ReadRecords } from '../../src/index.ts';
import { decodeVersionRecord } from '../../src/keys/version-record.ts';
import { contextOne, decryptOne, encryptOne, fox, newEngine, paths, refusalOf, startMs, storedKey } from '../fixtures.ts';

/** Reads the records of another state. The values that it returns are kept in `given`. */
function reading(store: Store): { readonly read: ReadRecords; readonly given: Uint8Array[] } {
  const given: Uint8Array[] = [];
  const read: ReadRecords = async (asked) => {
    const found = new Map<string, Uint8Array>();
    for (const path of asked) {
      const record = await store.get(path);
      if (record === undefined) continue;
      const value = Buffer.from(record.value);
      given.push(value);
      found.set(path, value);
    }
    return found;
  };
  return { read, given };
}

describe('salvage', () => {
  it('restores a key of another state under another name, with every version and setting, without its permission', async () => {
    const [lost, present] = [newEngine(), newEngine()];
    await present.engine.createKey('k', {});
    await lost.engine.createKey('k', { derived: true, convergentEncryption: true, autoRotatePeriodS: 7200 });
    const context = contextOne;
    await lost.engine.rotateKey('k');
    const { ciphertext } = await encryptOne(lost.engine, 'k', { plaintext: fox, context });
    await lost.engine.rotateKey('k');
    await lost.engine.configureKey('k', { minDecryptionVersion: 2, minEncryptionVersion: 2 });
    await lost.engine.trimKey('k', { minAvailableVersion: 2 });

    const { read, given } = reading(lost.store);
    await present.engine.transfers.salvageKey('k', 'k-lost', read);
    const { name, revision, ...original } = await lost.engine.readKey('k');
    const { name: _, revision: __, restore, ...salvaged } = await present.engine.readKey('k-lost');
    expect(salvaged).to.deep.equal(original);
    expect(restore).to.deep.equal({ timeMs: startMs, version: 3 });
    expect(await decryptOne(present.engine, 'k-lost', { ciphertext, context })).to.include({ plaintext: fox });
    expect((await present.engine.readKey('k')).latestVersion, 'the present key').to.equal(1);
    const secrets = given.slice(1).flatMap((value) => [...decodeVersionRecord(value).material]);
    expect(secrets, 'two versions of 32 bytes, wiped').to.deep.equal(new Array(64).fill(0));
  });

  it('lets the versions be used that had made all that they may: the uses of the salvaged key are counted from zero', async () => {
    const [lost, present] = [newEngine(), newEngine()];
    await lost.engine.createKey('k', {});
    await lost.engine.configureKey('k', { maxOperations: 1 });
    const { id } = (await lost.engine.usedKey('k')).key.record;
    const use = { encryptions: 1, signatures: 0, decryptions: 0, verifications: 0, firstMs: 1, lastMs: 1 };
    const uses = await lost.engine.addingUses('k', id, [[1, use]]);
    if (uses === undefined) throw new Error('the key is there');
    await lost.store.commit(uses);
    expect(await refusalOf(encryptOne(lost.engine, 'k', { plaintext: fox }))).to.include({ code: 'key_version_unavailable' });
    await present.engine.transfers.salvageKey('k', 'k', reading(lost.store).read);
    await encryptOne(present.engine, 'k', { plaintext: fox });
    expect((await present.engine.readKey('k')).maxOperations).to.equal(1);
  });

  it('is refused for a name that exists, a name that is not valid, and a key that the state lacks', async () => {
    const [lost, present] = [newEngine(), newEngine()];
    await lost.engine.createKey('k', {});
    await present.engine.createKey('taken', {});
    const { read } = reading(lost.store);
    const { transfers } = present.engine;
    expect(await refusalOf(transfers.salvageKey('k', 'taken', read))).to.include({ code: 'invalid_request' });
    expect(await refusalOf(transfers.salvageKey('k', 'a/b', read))).to.include({ code: 'invalid_request' });
    expect(await refusalOf(transfers.salvageKey('../k', 'b', read))).to.include({ code: 'invalid_request' });
    expect(await refusalOf(transfers.salvageKey('other', 'b', read))).to.include({ code: 'key_not_found' });
  });

  it('writes nothing if the state lacks a version', async () => {
    const [lost, present] = [newEngine(), newEngine()];
    await lost.engine.createKey('k', {});
    await lost.engine.rotateKey('k');
    const { id } = await storedKey(lost.store, 'k');
    await lost.store.commit({ conditions: [], writes: [{ path: paths.version({ keyId: id, version: 1 }), value: null }] });
    const before = (await present.store.range({ prefix: paths.mount })).records.length;
    const refusal = await refusalOf(present.engine.transfers.salvageKey('k', 'b', reading(lost.store).read));
    expect(refusal).to.include({ code: 'invalid_request' });
    expect((await present.store.range({ prefix: paths.mount })).records.length).to.equal(before);
  });
});
