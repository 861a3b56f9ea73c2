import { expect } from 'chai';
import { memoryStore } from '../../src/store/memory-store.ts';
import { changeRecords, untilCommitted } from '../../src/store/until-committed.ts';

const conflict = (): Error => new Error('the record changes too often');

describe('a change of records', () => {
  it('is made again from the present record after a conflict', async () => {
    const store = memoryStore();
    let reads = 0;
    const append = async () => {
      const present = await store.get('a');
      reads += 1;
      if (reads === 1) await store.commit({ conditions: [], writes: [{ path: 'a', value: Buffer.from('other') }] });
      const value = Buffer.concat([present?.value ?? Buffer.alloc(0), Buffer.from(' own')]);
      return { conditions: [{ path: 'a', revision: present?.revision ?? 0 }], writes: [{ path: 'a', value }] };
    };
    expect(await changeRecords(store, append, conflict)).to.equal(true);
    expect(Buffer.from((await store.get('a'))?.value ?? []).toString()).to.equal('other own');
  });

  it('writes nothing if there is nothing to change', async () => {
    const store = memoryStore();
    expect(await changeRecords(store, async () => undefined, conflict)).to.equal(false);
    expect(store.status().lastIndex).to.equal(0);
  });

  it('is given up after five conflicts, with the error of its caller', async () => {
    let attempts = 0;
    const attempt = async () => {
      attempts += 1;
      return undefined;
    };
    const failed = await untilCommitted(attempt, conflict).catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(Error).with.property('message', 'the record changes too often');
    expect(attempts).to.equal(5);
  });

  it('may result in any value but undefined', async () => {
    expect(await untilCommitted(async () => false, conflict)).to.equal(false);
  });
});
