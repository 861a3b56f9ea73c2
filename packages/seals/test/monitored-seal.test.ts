import { ProviderError } from '@transitd/barrier';
import { noObserver } from '@transitd/process';
import { expect } from 'chai';
import { MonitoredSeal } from '../src/monitored-seal.ts';
import { keptLog } from './kept-log.ts';

const away = new ProviderError('unreachable', 'it does not answer');

function monitored() {
  const state = {
    nowMs: 0,
    calls: 0,
    kept: 0,
    failure: undefined as Error | undefined,
    change: (key: Buffer) => key,
    draw: async (bytes: number): Promise<Buffer> => Buffer.alloc(bytes),
  };
  const failures: string[] = [];
  const { log, lines } = keptLog();
  const attempt = (): void => {
    state.calls += 1;
    if (state.failure !== undefined) throw state.failure;
  };
  const seal = new MonitoredSeal({
    backend: {
      type: 'transit',
      async wrap(key) {
        attempt();
        return { keyId: 'k:v1', ciphertext: Buffer.from(key).toString('hex') };
      },
      async unwrap({ ciphertext }) {
        attempt();
        return state.change(Buffer.from(ciphertext, 'hex'));
      },
      async random(bytes) {
        attempt();
        return state.draw(bytes);
      },
      async keepAccess() {
        state.kept += 1;
      },
    },
    log,
    observer: { ...noObserver, sealFailed: (failure) => void failures.push(failure) },
    nowMs: () => state.nowMs,
    utcMs: () => 1_000_000 + state.nowMs,
    random: () => 0,
  });
  return { seal, state, failures, lines };
}
const messageOf = (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(
    () => 'it did not fail',
    (error: Error) => error.message,
  );
const key = Buffer.alloc(32, 7);

describe('a monitored seal', () => {
  it('knows the key id of the latest encryption', async () => {
    const { seal } = monitored();
    expect(seal.keyId).to.equal(undefined);
    await seal.wrap(key);
    expect(seal.keyId).to.equal('k:v1');
  });

  it('does not call the provider again before the delay has passed', async () => {
    const { seal, state } = monitored();
    state.failure = away;
    expect(await messageOf(seal.wrap(key))).to.equal('it does not answer');
    expect(await messageOf(seal.wrap(key))).to.equal('it does not answer; this node tries again in 1 s');
    expect(state.calls).to.equal(1);
    state.nowMs = 1000;
    await messageOf(seal.wrap(key));
    expect(state.calls).to.equal(2);
    state.nowMs = 2999;
    await messageOf(seal.unwrap({ keyId: 'k', ciphertext: '' }));
    expect(state.calls).to.equal(2);
  });

  it('draws random bytes; a failure of that delays further draws, but no use of the key, and leaves the health as it is', async () => {
    const { seal, state, failures, lines } = monitored();
    expect([seal.drawsRandom, await seal.random(5)]).to.deep.equal([true, Buffer.alloc(5)]);
    state.failure = new ProviderError('permission', 'it needs another right');
    expect(await messageOf(seal.random(5))).to.equal('it needs another right');
    expect(await messageOf(seal.random(5))).to.equal('it needs another right; this node tries again in 1 s');
    expect([state.calls, failures, lines.length]).to.deep.equal([2, ['permission'], 1]);
    state.failure = undefined;
    await seal.unwrap(await seal.wrap(key));
    expect(seal.health).to.deep.equal({ healthy: true });
    state.nowMs = 1000;
    expect(await seal.random(5)).to.have.lengthOf(5);
  });

  it('draws nothing from a provider that failed otherwise, before that delay has passed', async () => {
    const { seal, state } = monitored();
    state.failure = away;
    await messageOf(seal.wrap(key));
    state.failure = undefined;
    expect(await messageOf(seal.random(5))).to.equal('it does not answer; this node tries again in 1 s');
    expect(state.calls).to.equal(1);
  });

  it('refuses another number of bytes than it asked for', async () => {
    const { seal, state } = monitored();
    state.draw = async (bytes) => Buffer.alloc(bytes - 1);
    expect(await messageOf(seal.random(5))).to.equal('the transit seal returned 4 random bytes instead of 5');
  });

  it('has at most 64 draws at a provider that hangs, and refuses the others at once', async () => {
    const { seal, state } = monitored();
    const hanging = Promise.withResolvers<Buffer>();
    state.draw = () => hanging.promise;
    const draws = Array.from({ length: 64 }, () => seal.random(5));
    expect(await messageOf(seal.random(5))).to.match(/^64 requests of this node already wait/);
    hanging.resolve(Buffer.alloc(5));
    await Promise.all(draws);
    expect(await seal.random(5)).to.have.lengthOf(5);
  });

  it('calls a failing provider at most 70 times an hour, however often it is asked', async () => {
    const { seal, state } = monitored();
    state.failure = away;
    for (; state.nowMs < 3_600_000; state.nowMs += 100) await messageOf(seal.wrap(key));
    expect(state.calls).to.be.within(60, 70);
  });

  it('waits as long as a provider that throttles asks for', async () => {
    const { seal, state } = monitored();
    state.failure = new ProviderError('throttled', 'too many', { retryAfterMs: 30_000 });
    await messageOf(seal.wrap(key));
    state.nowMs = 29_999;
    await messageOf(seal.wrap(key));
    expect(state.calls).to.equal(1);
  });

  it('reports its health: since when, and the kind of the latest failure', async () => {
    const { seal, state, failures } = monitored();
    expect(seal.health).to.deep.equal({ healthy: true });
    state.failure = away;
    await seal.tick();
    state.nowMs = 1000;
    state.failure = new ProviderError('permission', 'no');
    await seal.tick();
    expect(seal.health).to.deep.equal({ healthy: false, unhealthySinceMs: 1_000_000, failure: 'permission' });
    state.failure = undefined;
    state.nowMs = 3000;
    await seal.tick();
    expect(seal.health).to.deep.equal({ healthy: true });
    expect(failures).to.deep.equal(['unreachable', 'permission']);
  });

  it('logs a failure once, another kind of failure again, and the recovery', async () => {
    const { seal, state, lines } = monitored();
    state.failure = away;
    for (; state.nowMs < 60_000; state.nowMs += 1000) await seal.tick();
    state.failure = new ProviderError('permission', 'no');
    for (; state.nowMs < 180_000; state.nowMs += 1000) await seal.tick();
    state.failure = undefined;
    for (; state.nowMs < 300_000; state.nowMs += 1000) await seal.tick();
    expect(lines.map(({ level, fields }) => [level, fields['failure'] ?? 'recovered'])).to.deep.equal([
      ['warn', 'unreachable'],
      ['warn', 'permission'],
      ['info', 'recovered'],
    ]);
  });

  it('probes a healthy provider every ten minutes, and keeps its access valid at each tick', async () => {
    const { seal, state } = monitored();
    for (; state.nowMs <= 1_200_000; state.nowMs += 1000) await seal.tick();
    expect(state.calls).to.equal(3 * 2);
    expect(state.kept).to.equal(1201);
  });

  it('is unhealthy if the provider does not decrypt what it encrypted', async () => {
    const { seal, state } = monitored();
    state.change = () => Buffer.alloc(32);
    await seal.tick();
    expect(seal.health).to.include({ healthy: false, failure: 'malformed' });
    state.change = () => Buffer.alloc(3);
    state.nowMs = 10_000;
    await seal.tick();
    expect(seal.health).to.include({ healthy: false, failure: 'malformed' });
  });

  for (const { what, change } of [
    {
      what: 'encrypts but refuses to decrypt',
      change: () => {
        throw new ProviderError('permission', 'no');
      },
    },
    { what: 'decrypts to another key', change: () => Buffer.alloc(32) },
    { what: 'decrypts to a key that is too short', change: () => Buffer.alloc(31) },
  ])
    it(`calls a provider that ${what} with growing delays, and logs it once`, async () => {
      const { seal, state, lines } = monitored();
      state.change = change;
      for (; state.nowMs < 3_600_000; state.nowMs += 1000) await seal.tick();
      expect(state.calls).to.be.within(2 * 60, 2 * 70);
      expect(lines.map(({ level }) => level)).to.deep.equal(['warn']);
    });

  it('refuses a decrypted key that does not have 32 bytes, and wipes it', async () => {
    const { seal, state } = monitored();
    const short = Buffer.alloc(31, 1);
    state.change = () => short;
    expect(await messageOf(seal.unwrap({ keyId: 'k', ciphertext: '' }))).to.match(/does not have 32 bytes/);
    expect(short).to.deep.equal(Buffer.alloc(31));
    await messageOf(seal.unwrap({ keyId: 'k', ciphertext: '' }));
    expect(state.calls).to.equal(1);
  });

  it('treats an unexpected error as a failure too', async () => {
    const { seal, state } = monitored();
    state.failure = new TypeError('a fault');
    expect(await messageOf(seal.wrap(key))).to.equal('the transit seal failed in an unexpected way');
    await seal.tick();
    expect(seal.health).to.include({ healthy: false });
  });

  it('asks with growing delays for a key that the provider does not open, while its probes succeed', async () => {
    const { seal, state, lines } = monitored();
    let asked = 0;
    const stored = { keyId: 'k:v1', ciphertext: '00' };
    state.change = (opened) => {
      if (opened.length === 32) return opened;
      asked += 1;
      throw new ProviderError('wrong_key', 'it was deleted');
    };
    for (; state.nowMs < 3_600_000; state.nowMs += 1000) {
      await seal.tick();
      expect(await messageOf(seal.unwrap(stored))).to.match(/^it was deleted/);
    }
    expect(asked).to.be.within(60, 70);
    expect(seal.health).to.deep.equal({ healthy: true });
    expect(lines.map(({ fields }) => fields['reason'])).to.deep.equal(['it was deleted']);
  });

  it('logs each new sentence, since callers get only a summary', async () => {
    const { seal, state, lines } = monitored();
    for (const message of ['status 500', 'status 500', 'status 502']) {
      state.failure = new ProviderError('unreachable', message);
      await messageOf(seal.wrap(key));
      state.nowMs += 60_000;
    }
    expect(lines.map(({ fields }) => fields['reason'])).to.deep.equal(['status 500', 'status 502']);
  });
});
