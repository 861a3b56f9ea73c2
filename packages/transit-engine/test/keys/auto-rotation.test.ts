import { memoryStore, type Store, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { decryptOne, encryptOne, everything, fox, newEngine, paths, startMs, storedKey } from '../fixtures.ts';
import { storeWithWrappingKey, wrapped } from '../transfers/wrapped.ts';

const hourMs = 3_600_000;

const dueIn = async (store: Store) =>
  Object.keys(await everything(store))
    .filter((path) => path.startsWith(paths.rotations.prefix))
    .map((path) => paths.rotations.parse(path));

describe('automatic rotation', () => {
  it('rotates only due keys, and starts a new period', async () => {
    const { engine, store, clock } = newEngine();
    await engine.createKey('hourly', { autoRotatePeriodS: 3600 });
    await engine.createKey('daily', { autoRotatePeriodS: 86_400 });
    await engine.createKey('never', {});
    expect(await dueIn(store)).to.deep.equal([
      { dueMs: startMs + hourMs, name: 'hourly' },
      { dueMs: startMs + 24 * hourMs, name: 'daily' },
    ]);
    clock.nowMs = startMs + hourMs - 1;
    expect(await engine.rotateDue(10)).to.deep.equal({ done: 0, failed: [] });
    clock.nowMs = startMs + 5 * hourMs;
    const { ciphertext } = await encryptOne(engine, 'hourly', { plaintext: fox });
    expect(await engine.rotateDue(10)).to.deep.equal({ done: 1, failed: [] });
    expect(await engine.rotateDue(10), 'once, however many periods have passed').to.deep.equal({ done: 0, failed: [] });
    expect((await engine.readKey('hourly')).latestVersion).to.equal(2);
    expect((await engine.readKey('daily')).latestVersion).to.equal(1);
    expect((await dueIn(store))[0]).to.deep.equal({ dueMs: startMs + 6 * hourMs, name: 'hourly' });
    expect(await decryptOne(engine, 'hourly', { ciphertext })).to.deep.equal({ plaintext: fox });
  });

  it('ends the round when the audit cannot record a rotation, which concerns every key', async () => {
    const { engine, clock } = newEngine();
    for (const name of ['a', 'b', 'c']) await engine.createKey(name, { autoRotatePeriodS: 3600 });
    clock.nowMs += hourMs;
    let asked = 0;
    const failure = Object.assign(new Error('no audit device could write'), { code: 'audit_failed' });
    const round = engine.rotateDue(10, async () => {
      asked += 1;
      throw failure;
    });
    expect(await round.catch((error: unknown) => error)).to.equal(failure);
    expect(asked).to.equal(1);
  });

  it('generates new key pairs, which sign from then on', async () => {
    const { engine, clock } = newEngine();
    for (const type of ['ed25519', 'ecdsa-p256', 'rsa-2048']) await engine.createKey(type, { type, autoRotatePeriodS: 3600 });
    clock.nowMs += hourMs;
    expect(await engine.rotateDue(10)).to.deep.equal({ done: 3, failed: [] });
    for (const type of ['ed25519', 'ecdsa-p256', 'rsa-2048']) {
      expect(await engine.signing.sign(type, { input: fox })).to.include({ keyVersion: 2 });
      const shown = (await engine.readKey(type)).versions.map(({ pair }) => pair?.publicKey);
      expect(new Set(shown).size).to.equal(2);
    }
  });

  it('happens once when several nodes try at the same time', async () => {
    const store = memoryStore();
    const nodes = [newEngine({ store }), newEngine({ store }), newEngine({ store })];
    for (const name of ['a', 'b', 'c']) await nodes[0]?.engine.createKey(name, { autoRotatePeriodS: 3600 });
    for (const { clock } of nodes) clock.nowMs += 2 * hourMs;
    const outcomes = await Promise.all(nodes.map(({ engine }) => engine.rotateDue(10)));
    expect(outcomes.reduce((sum, { done }) => sum + done, 0)).to.equal(3);
    for (const name of ['a', 'b', 'c']) expect((await storedKey(store, name)).latestVersion).to.equal(2);
  });

  it('follows every change of a key: period, manual rotation, deletion', async () => {
    const { engine, store, clock } = newEngine();
    await engine.createKey('k', {});
    expect(await dueIn(store)).to.deep.equal([]);
    await engine.configureKey('k', { autoRotatePeriodS: 7200 });
    expect(await dueIn(store)).to.deep.equal([{ dueMs: startMs + 2 * hourMs, name: 'k' }]);
    clock.nowMs += hourMs;
    await engine.rotateKey('k');
    expect(await dueIn(store)).to.deep.equal([{ dueMs: startMs + 3 * hourMs, name: 'k' }]);
    await engine.configureKey('k', { autoRotatePeriodS: 3600, deletionAllowed: true });
    expect(await dueIn(store)).to.deep.equal([{ dueMs: startMs + 2 * hourMs, name: 'k' }]);
    await engine.deleteKey('k');
    expect(await dueIn(store)).to.deep.equal([]);
  });

  it('passes each rotation to the caller, with the name of the key and its new version, and nothing that is not due', async () => {
    const { engine, store, clock } = newEngine();
    for (const name of ['a', 'b', 'refused']) await engine.createKey(name, { autoRotatePeriodS: 3600 });
    await engine.configureKey('b', { deletionAllowed: true });
    clock.nowMs += hourMs;
    const versions = new Map<string, number | undefined>();
    const outcome = await engine.rotateDue(10, async (name, rotate) => {
      if (name === 'refused') throw new Error('not recorded');
      if (name === 'b') await engine.deleteKey(name);
      versions.set(name, await rotate());
      return versions.get(name);
    });
    expect(outcome.done).to.equal(1);
    expect(outcome.failed.map(({ name, error }) => `${name}: ${error}`)).to.deep.equal(['refused: Error: not recorded']);
    expect([...versions]).to.deep.equal([
      ['a', 2],
      ['b', undefined],
    ]);
    expect((await storedKey(store, 'refused')).latestVersion).to.equal(1);
  });

  it('skips imported keys unless their rotation is allowed', async () => {
    const { engine, store, clock } = newEngine({ store: await storeWithWrappingKey() });
    const ciphertext = wrapped(await engine.transfers.wrappingKey(), Buffer.alloc(32, 1));
    await engine.transfers.importKey('fixed', { ciphertext });
    await engine.configureKey('fixed', { autoRotatePeriodS: 3600 });
    await engine.transfers.importKey('free', { ciphertext, allowRotation: true, autoRotatePeriodS: 3600 });
    clock.nowMs += 2 * hourMs;
    expect(await engine.rotateDue(10)).to.deep.equal({ done: 1, failed: [] });
    expect((await storedKey(store, 'fixed')).latestVersion).to.equal(1);
    expect((await storedKey(store, 'free')).latestVersion).to.equal(2);
  });

  it('continues after a key that cannot be rotated, and stops at its limit', async () => {
    const { engine, store, clock } = newEngine();
    for (const name of ['a', 'b', 'c', 'd']) await engine.createKey(name, { autoRotatePeriodS: 3600 });
    await store.commit({ conditions: [], writes: [{ path: paths.key('a'), value: Buffer.from('damaged') }] });
    clock.nowMs += hourMs;
    for (const done of [2, 1]) {
      const outcome = await engine.rotateDue(2);
      expect(outcome.done).to.equal(done);
      expect(outcome.failed.map(({ name }) => name)).to.deep.equal(['a']);
      clock.nowMs += 10_000;
    }
  });

  it('is tried more and more rarely while it fails, at least each hour, and at once after a success', async () => {
    const { engine, clock } = newEngine();
    await engine.createKey('k', { autoRotatePeriodS: 3600 });
    const failuresIn = async (ms: number, fails = true): Promise<number> => {
      let asked = 0;
      for (const endMs = clock.nowMs + ms; clock.nowMs < endMs; clock.nowMs += 10_000)
        await engine.rotateDue(10, (_, rotate) => {
          asked += 1;
          return fails ? Promise.reject(new Error('no material')) : rotate();
        });
      return asked;
    };
    clock.nowMs += hourMs;
    expect(await failuresIn(hourMs)).to.be.within(7, 10);
    expect(await failuresIn(24 * hourMs)).to.be.within(23, 26);
    clock.nowMs -= 12 * hourMs;
    expect(await failuresIn(10_000), 'after a clock was set back').to.equal(1);
    clock.nowMs += hourMs;
    expect(await failuresIn(10_000, false)).to.equal(1);
    clock.nowMs += hourMs;
    expect(await failuresIn(20_000)).to.equal(2);
  });

  for (const [code, outcome] of [
    ['too_large', 'continues after a key that the store finds too large'],
    ['disk_low', 'stops at a store that does not write'],
  ] as const) {
    it(outcome, async () => {
      const inner = memoryStore();
      const commit: Store['commit'] = async (transaction) => {
        if (failing && transaction.writes.some(({ path }) => path === paths.key('a'))) throw new StoreError(code, 'not written');
        return inner.commit(transaction);
      };
      let failing = false;
      const { engine, clock } = newEngine({ store: { ...inner, commit } });
      for (const name of ['a', 'b']) await engine.createKey(name, { autoRotatePeriodS: 3600 });
      failing = true;
      clock.nowMs += hourMs;
      const result = await engine.rotateDue(10).then(
        ({ done, failed }) => ({ done, failed: failed.map(({ name }) => name) }),
        (error: unknown) => (error instanceof StoreError ? error.code : error),
      );
      expect(result).to.deep.equal(code === 'too_large' ? { done: 1, failed: ['a'] } : code);
    });
  }
});
