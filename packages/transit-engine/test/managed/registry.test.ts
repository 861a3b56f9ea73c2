import { memoryStore, type Store } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { ManagedKeyRegistry, type ManagedKeyRequest } from '../../src/index.ts';
import { decodeManagedKeyRecord } from '../../src/managed/managed-key-record.ts';
import { DamagedRecord } from '../../src/values/errors.ts';
import { refusalOf } from '../fixtures.ts';

const signing: ManagedKeyRequest = {
  library: 'hsm',
  tokenLabel: 'token',
  pin: '1234',
  keyLabel: 'key',
  mechanism: 'CKM_ECDSA',
};
const newRegistry = (store: Store = memoryStore()) => ({
  store,
  registry: new ManagedKeyRegistry({ store, libraries: ['hsm', 'other'] }),
});

describe('managed keys', () => {
  it('are stored under their name with an id, and found by both', async () => {
    const { registry } = newRegistry();
    await registry.write('k', signing);
    const { id, ...record } = await registry.read('k');
    expect(id).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(record).to.deep.equal({ name: 'k', ...signing, allowGenerateKey: false, anyMount: false, usages: ['sign', 'verify'] });
    expect(await registry.byId(id)).to.deep.equal({ id, ...record });
    expect(await registry.byName('k')).to.deep.equal({ id, ...record });
  });

  it('are listed in order', async () => {
    const { registry } = newRegistry();
    expect(await registry.list()).to.deep.equal([]);
    for (const name of ['b', 'a', 'B']) await registry.write(name, signing);
    expect(await registry.list()).to.deep.equal(['B', 'a', 'b']);
  });

  it('are not found by name or id after deletion, and the name can be reused', async () => {
    const { registry, store } = newRegistry();
    await registry.write('k', signing);
    const { id } = await registry.read('k');
    await registry.delete('k');
    await registry.delete('k');
    expect((await refusalOf(registry.read('k'))).code).to.equal('not_found');
    expect(await registry.byId(id)).to.equal(undefined);
    await registry.write('k', signing);
    expect(await registry.byId(id), 'the id was another key’s').to.equal(undefined);
    expect((await store.range({ prefix: 'managed-keys/' })).records).to.have.lengthOf(2);
  });

  it('have separate paths, and unknown ids find nothing', async () => {
    const { registry, store } = newRegistry();
    await registry.write('k', signing);
    expect((await store.range({ prefix: '' })).records.map(({ path }) => path.replace(/[0-9a-f-]{36}$/, '<id>'))).to.deep.equal([
      'managed-keys/id/<id>',
      'managed-keys/pkcs11/k',
    ]);
    for (const id of ['', 'k', '../k', '00000000-0000-4000-8000-000000000000']) {
      expect(await registry.byId(id)).to.equal(undefined);
    }
  });

  it('keep their id and absent fields when they are changed', async () => {
    const { registry } = newRegistry();
    await registry.write('k', { ...signing, keyBits: 0, curve: 'P384', allowGenerateKey: true, usages: ['sign'] });
    const before = await registry.read('k');
    await registry.write('k', { pin: '5678', library: 'other', slot: '0x10', anyMount: true });
    expect(await registry.read('k')).to.deep.equal({ ...before, pin: '5678', library: 'other', slot: 16, anyMount: true });
    await registry.write('k', { allowGenerateKey: false, usages: ['verify', 'sign'] });
    expect(await registry.read('k'))
      .to.include({ allowGenerateKey: false, anyMount: true })
      .and.have.deep.property('usages', ['sign', 'verify']);
  });

  for (const change of [{ mechanism: 'CKM_RSA_PKCS' }, { keyLabel: 'other' }, { keyId: '01' }] satisfies ManagedKeyRequest[]) {
    it(`cannot be changed to refer to another key: ${JSON.stringify(change)}`, async () => {
      const { registry } = newRegistry();
      await registry.write('k', signing);
      const before = await registry.read('k');
      expect((await refusalOf(registry.write('k', change))).message).to.match(
        / of a managed key cannot be changed: create another managed key$/,
      );
      expect(await registry.read('k')).to.deep.equal(before);
    });
  }

  for (const [asked, mechanism] of [
    ['CKM_RSA_PKCS', 'CKM_RSA_PKCS'],
    ['0x0001', 'CKM_RSA_PKCS'],
    ['1', 'CKM_RSA_PKCS'],
    ['0xd', 'CKM_RSA_PKCS_PSS'],
    ['0x1041', 'CKM_ECDSA'],
    ['4231', 'CKM_AES_GCM'],
  ] as const) {
    it(`use ${mechanism} if the request says ${asked}`, async () => {
      const { registry } = newRegistry();
      await registry.write('k', { ...signing, mechanism: asked });
      expect((await registry.read('k')).mechanism).to.equal(mechanism);
    });
  }

  const textRule = 'has to be a text of at most 255 bytes without control characters';
  for (const { change, message } of [
    { change: { library: '' }, message: 'library is required' },
    { change: { library: '/usr/lib/evil.so' }, message: 'no PKCS#11 library is configured under the name /usr/lib/evil.so' },
    { change: { pin: undefined }, message: 'pin is required' },
    { change: { pin: 'x'.repeat(256) }, message: `pin ${textRule}` },
    { change: { pin: '12\n34' }, message: `pin ${textRule}` },
    { change: { mechanism: '' }, message: 'mechanism is required' },
    {
      change: { mechanism: 'CKM_AES_CBC_PAD' },
      message: 'mechanism has to be one of CKM_RSA_PKCS, CKM_RSA_PKCS_PSS, CKM_ECDSA, CKM_AES_GCM',
    },
    {
      change: { mechanism: 'toString' },
      message: 'mechanism has to be one of CKM_RSA_PKCS, CKM_RSA_PKCS_PSS, CKM_ECDSA, CKM_AES_GCM',
    },
    { change: { tokenLabel: undefined }, message: 'one of slot and token_label is required' },
    { change: { slot: '-1' }, message: 'slot is not a number' },
    { change: { slot: '1.5' }, message: 'slot is not a number' },
    { change: { slot: '999999999999999' }, message: 'slot is not a number' },
    { change: { tokenLabel: '\u0000' }, message: `token_label ${textRule}` },
    { change: { keyLabel: undefined }, message: 'one of key_label and key_id is required' },
    { change: { keyId: 'abc' }, message: 'key_id has to be hexadecimal, of 1 to 64 bytes' },
    { change: { keyId: 'zz' }, message: 'key_id has to be hexadecimal, of 1 to 64 bytes' },
    { change: { keyId: 'ab'.repeat(65) }, message: 'key_id has to be hexadecimal, of 1 to 64 bytes' },
    { change: { keyBits: 2048 }, message: 'key_bits 2048 is not supported for CKM_ECDSA' },
    { change: { mechanism: 'CKM_RSA_PKCS', keyBits: 1024 }, message: 'key_bits 1024 is not supported for CKM_RSA_PKCS' },
    { change: { mechanism: 'CKM_AES_GCM', keyBits: 192 }, message: 'key_bits 192 is not supported for CKM_AES_GCM' },
    { change: { curve: 'P224' }, message: 'curve P224 is not supported for CKM_ECDSA' },
    { change: { mechanism: 'CKM_AES_GCM', curve: 'P256' }, message: 'curve P256 is not supported for CKM_AES_GCM' },
    { change: { usages: ['encrypt'] }, message: 'keys for CKM_ECDSA only support the usages sign and verify' },
    {
      change: { mechanism: 'CKM_AES_GCM', usages: ['sign'] },
      message: 'keys for CKM_AES_GCM only support the usages encrypt and decrypt',
    },
  ] satisfies { change: ManagedKeyRequest; message: string }[]) {
    it(`are refused with ${JSON.stringify(change).slice(0, 60)}`, async () => {
      const { registry, store } = newRegistry();
      expect(await refusalOf(registry.write('k', { ...signing, ...change }))).to.deep.equal({ code: 'invalid_request', message });
      expect((await store.range({ prefix: '' })).records).to.have.lengthOf(0);
    });
  }

  for (const name of ['', '.', 'a/b', '-a', 'a-', 'ü', 'x'.repeat(129), '__proto__/x']) {
    it(`cannot have the name ${JSON.stringify(name).slice(0, 20)}`, async () => {
      const { registry } = newRegistry();
      expect((await refusalOf(registry.write(name, signing))).message).to.equal('invalid managed key name');
      expect((await refusalOf(registry.read(name))).code).to.equal('not_found');
    });
  }

  it('are not found by an id whose name now belongs to another key', async () => {
    const { registry, store } = newRegistry();
    await registry.write('k', signing);
    const stale = '00000000-0000-4000-8000-000000000000';
    await store.commit({ conditions: [], writes: [{ path: `managed-keys/id/${stale}`, value: Buffer.from('k') }] });
    expect(await registry.byId(stale)).to.equal(undefined);
  });

  it('are read again after a concurrent change on another node, and neither change is lost', async () => {
    const { registry, store } = newRegistry();
    await registry.write('k', signing);
    let overtaken = false;
    const slow: Store = {
      ...store,
      get: (path) => store.get(path),
      range: (query) => store.range(query),
      watch: (prefix, listener) => store.watch(prefix, listener),
      async commit(transaction) {
        if (!overtaken) await registry.write('k', { anyMount: true });
        overtaken = true;
        return store.commit(transaction);
      },
    };
    await newRegistry(slow).registry.write('k', { allowGenerateKey: true });
    expect(await registry.read('k')).to.include({ anyMount: true, allowGenerateKey: true });
    overtaken = false;
    const { id } = await registry.read('k');
    await newRegistry(slow).registry.delete('k');
    expect([await registry.byName('k'), await registry.byId(id)]).to.deep.equal([undefined, undefined]);
  });

  it('get one id when two callers create the same key at once', async () => {
    const { registry, store } = newRegistry();
    await Promise.all([registry.write('k', signing), registry.write('k', { ...signing, anyMount: true })]);
    const { id } = await registry.read('k');
    expect((await store.range({ prefix: 'managed-keys/id/' })).records.map(({ path }) => path)).to.deep.equal([
      `managed-keys/id/${id}`,
    ]);
  });

  it('are not read from damaged records', () => {
    for (const text of ['', '{}', '{"format":2}', '{"format":1,"id":"x"}', '[]']) {
      expect(() => decodeManagedKeyRecord(Buffer.from(text))).to.throw(DamagedRecord);
    }
  });
});
