import { type Changes, memoryStore } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { faultyStore } from '../faulty-store.ts';
import { codeOf, everything, openBarrier, put, read, text, unsealedBarrier, unsealWith, write } from '../fixtures.ts';

const failureOf = (attempt: Promise<unknown>): Promise<unknown> =>
  attempt.then(
    () => undefined,
    (error: unknown) => error,
  );

const pathsOf = (changes: Changes): string[] => (changes === 'everything' ? [changes] : changes.map(({ path }) => path));

describe('the plaintext view', () => {
  it('reads the written values, with the revisions of the underlying records', async () => {
    const { barrier, store } = await unsealedBarrier();
    await put(barrier, 'a/b', 'secret');
    expect(await barrier.store.get('a/b')).to.deep.equal({ value: text('secret'), revision: (await store.get('a/b'))?.revision });
    expect(await barrier.store.get('a/c')).to.equal(undefined);
  });

  it('checks conditions, and deletes', async () => {
    const { barrier } = await unsealedBarrier();
    await put(barrier, 'a', '1');
    const revision = (await barrier.store.get('a'))?.revision ?? 0;
    const stale = { conditions: [{ path: 'a', revision: 0 }], writes: [write('a', '2')] };
    expect(await barrier.store.commit(stale)).to.have.property('outcome', 'conflict');
    expect(await read(barrier, 'a')).to.equal('1');
    const removal = { conditions: [{ path: 'a', revision }], writes: [{ path: 'a', value: null }] };
    expect(await barrier.store.commit(removal)).to.have.property('outcome', 'committed');
    expect(await read(barrier, 'a')).to.equal(undefined);
  });

  it('reads a range page by page', async () => {
    const { barrier } = await unsealedBarrier();
    for (const name of ['a', 'b', 'c']) await put(barrier, `list/${name}`, name);
    const first = await barrier.store.range({ prefix: 'list/', limit: 2 });
    expect(first.records.map(({ path, value }) => [path, Buffer.from(value).toString()])).to.deep.equal([
      ['list/a', 'a'],
      ['list/b', 'b'],
    ]);
    const rest = await barrier.store.range({ prefix: 'list/', after: first.next ?? '' });
    expect(rest.records.map(({ path }) => path)).to.deep.equal(['list/c']);
  });

  it("hides the barrier's own records", async () => {
    const { barrier } = await unsealedBarrier();
    const seen: string[] = [];
    barrier.store.watch('', (changes) => seen.push(...pathsOf(changes)));
    await barrier.rotation.rotate();
    await put(barrier, 'core/other', 'x');
    for (const path of ['core/seal', 'core/keyring', 'core/root-key']) {
      expect(await codeOf(barrier.store.get(path))).to.equal('reserved_path');
      expect(await codeOf(barrier.store.commit({ conditions: [], writes: [write(path, 'x')] }))).to.equal('reserved_path');
      expect(await codeOf(barrier.store.commit({ conditions: [{ path, revision: 0 }], writes: [] }))).to.equal('reserved_path');
    }
    expect((await barrier.store.range({ prefix: '' })).records.map(({ path }) => path)).to.deep.equal(['core/other']);
    expect(seen).to.deep.equal(['core/other']);
  });

  it('refuses a value that was moved to another path in the underlying store', async () => {
    const { barrier, store } = await unsealedBarrier();
    await put(barrier, 'a', 'secret');
    const value = (await store.get('a'))?.value ?? null;
    await store.commit({ conditions: [], writes: [{ path: 'b', value }] });
    expect(await codeOf(barrier.store.get('b'))).to.equal('barrier_corrupt');
    expect(await codeOf(barrier.store.range({ prefix: 'b' }))).to.equal('barrier_corrupt');
    expect(await read(barrier, 'a')).to.equal('secret');
  });

  it('refuses a value with any byte changed in the underlying store', async () => {
    const { barrier, store } = await unsealedBarrier();
    await put(barrier, 'a', 'secret');
    const stored = Buffer.from((await store.get('a'))?.value ?? []);
    for (let at = 0; at < stored.length; at += 1) {
      const value = Buffer.from(stored);
      value.writeUInt8(value.readUInt8(at) ^ 0x80, at);
      await store.commit({ conditions: [], writes: [{ path: 'a', value }] });
      expect(await codeOf(barrier.store.get('a')), `byte ${at}`).to.equal('barrier_corrupt');
    }
  });

  for (const found of [true, false])
    it(`fails a read when it is sealed in the middle, ${found ? 'with' : 'without'} a record`, async () => {
      const store = faultyStore(memoryStore());
      const { barrier } = await unsealedBarrier({ store });
      if (found) await put(barrier, 'a', 'secret');
      store.beforeGet = async () => barrier.seal();
      expect(await codeOf(barrier.store.get('a'))).to.equal('sealed');
    });

  it('reports the outcome of a commit that was in flight when it was sealed', async () => {
    const store = faultyStore(memoryStore());
    const { barrier } = await unsealedBarrier({ store });
    store.beforeCommit = async () => barrier.seal();
    expect(await barrier.store.commit({ conditions: [], writes: [write('a', 'b')] })).to.have.property('outcome', 'committed');
  });

  it('reports no conflict to a caller without conditions, even if the keyring changes at each attempt', async () => {
    const store = memoryStore();
    const faulty = faultyStore(store);
    const { barrier } = await unsealedBarrier({ store: faulty });
    await put(barrier, 'a', '1');
    const revision = (await barrier.store.get('a'))?.revision ?? 0;
    faulty.beforeCommit = async () => {
      const keyring = await store.get('core/keyring');
      await store.commit({ conditions: [], writes: [{ path: 'core/keyring', value: keyring?.value ?? null }] });
    };
    expect(await codeOf(barrier.store.commit({ conditions: [], writes: [write('a', '2')] }))).to.equal('busy');
    const conditional = { conditions: [{ path: 'a', revision }], writes: [write('a', '2')] };
    expect(await barrier.store.commit(conditional)).to.have.property('outcome', 'conflict');
    expect(await read(barrier, 'a')).to.equal('1');
  });

  it('refuses restore steps, which consist of ciphertext', async () => {
    const { barrier } = await unsealedBarrier();
    const step = { conditions: [], writes: [], restore: { kind: 'abandon', attempt: 'x' } };
    expect(await failureOf(barrier.store.commit(step))).to.be.instanceOf(TypeError);
  });

  it('passes on the notice that everything may have changed', async () => {
    const store = memoryStore({ reportsEverything: true });
    const { barrier } = await unsealedBarrier({ store });
    const seen: Changes[] = [];
    barrier.store.watch('a/', (changes) => seen.push(changes));
    await store.commit({ conditions: [], writes: [write('core/other', 'x')] });
    expect(seen).to.deep.equal(['everything']);
  });

  it('can be watched while sealed, so that no cache misses a change', async () => {
    const { barrier, store, shares } = await unsealedBarrier();
    barrier.seal();
    const seen: string[] = [];
    barrier.store.watch('a/', (changes) => seen.push(...pathsOf(changes)));
    const other = await openBarrier(store);
    await unsealWith(other, shares.slice(0, 2));
    await put(other, 'a/b', 'x');
    expect(seen).to.deep.equal(['a/b']);
  });

  it('leaves no plaintext in the underlying store: raw, in hex, or in base64 in its three alignments', async () => {
    const { barrier, store } = await unsealedBarrier();
    const planted = 'planted-plaintext-0123456789';
    await put(barrier, 'a', planted);
    await barrier.rotation.rotate();
    await put(barrier, 'b', `x${planted}`);
    await put(barrier, 'c', JSON.stringify({ planted }));
    const forms = [planted, text(planted).toString('hex'), ...[0, 1, 2].map((shift) => base64At(planted, shift))];
    for (const [path, value] of await everything(store))
      for (const form of forms) expect(value.includes(form), `${form} in ${path}`).to.equal(false);
  });
});

/** Returns the base64 characters of the text after `shift` unknown bytes, without those that depend on the neighboring bytes. */
const base64At = (planted: string, shift: number): string =>
  Buffer.concat([Buffer.alloc(shift), text(planted)])
    .toString('base64')
    .slice(shift === 0 ? 0 : 4, -4);
