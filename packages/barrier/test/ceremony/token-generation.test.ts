import { randomBytes } from 'node:crypto';
import { memoryStore, type Store, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { clockOf } from '../../../process/test/test-clock.ts';
import type { Barrier } from '../../src/index.ts';
import { codeOf, everything, openBarrier, unsealedBarrier, unsealWith } from '../fixtures.ts';

const token = 's.ABCDEFGHIJKLMNOPQRSTUVWX';
const pad = randomBytes(token.length);
const unmasked = (masked: Buffer): string => Buffer.from(masked.map((byte, at) => byte ^ (pad[at] ?? 0))).toString();

/** Creates the token and counts the calls. */
function maker(failures: readonly Error[] = []) {
  const left = [...failures];
  const made = { times: 0 };
  const make = async (): Promise<string> => {
    const failure = left.shift();
    if (failure !== undefined) throw failure;
    made.times += 1;
    return token;
  };
  return { make, made };
}

const never = async (): Promise<string> => {
  throw new Error('nobody has agreed to a token');
};

describe('a root generation', () => {
  let barrier: Barrier;
  let store: Store;
  let shares: readonly Buffer[];
  let first: Buffer = Buffer.alloc(0);
  let second: Buffer = Buffer.alloc(0);
  beforeEach(async () => {
    ({ barrier, store, shares } = await unsealedBarrier());
    [first = Buffer.alloc(0), second = Buffer.alloc(0)] = shares;
  });

  it('creates one token, readable with the pad, when enough holders have submitted their shares', async () => {
    const { make, made } = maker();
    const { nonce } = await barrier.rootGeneration.start(pad);
    const half = await barrier.rootGeneration.update({ nonce, share: first }, never);
    expect(half).to.deep.equal({ complete: false, status: { started: true, nonce, progress: 1, required: 2 } });
    const whole = await barrier.rootGeneration.update({ nonce, share: second }, make);
    if (!whole.complete) throw new Error('it is not complete');
    expect(whole.status).to.include({ nonce, progress: 2 });
    expect(whole.masked.toString('latin1')).not.to.equal(token);
    expect(unmasked(whole.masked)).to.equal(token);
    expect(made.times).to.equal(1);
    expect(barrier.rootGeneration.status).to.deep.equal({ started: false, nonce: '', progress: 0, required: 0 });
  });

  it('counts each share once, and refuses a wrong one and keeps the progress', async () => {
    const { nonce } = await barrier.rootGeneration.start(pad);
    for (const share of [first, first])
      expect(await barrier.rootGeneration.update({ nonce, share }, never)).to.have.property('complete', false);
    expect(await codeOf(barrier.rootGeneration.update({ nonce, share: randomBytes(33) }, never))).to.equal('invalid_share');
    expect(barrier.rootGeneration.status.progress).to.equal(1);
  });

  it('may be replaced while it has no share: after one minute from another address, after ten by the same caller', async () => {
    const clock = { nowMs: 1_000_000 };
    const { barrier: timed, shares: given } = await unsealedBarrier({ clock: clockOf(() => clock.nowMs) });
    const start = (from: string): Promise<string> =>
      timed.rootGeneration.start(pad, from).then(
        ({ nonce }) => nonce,
        ({ code }) => code,
      );
    const begun = await start('a');
    clock.nowMs += 59_999;
    expect(await start('b')).to.equal('root_generation_in_progress');
    clock.nowMs += 1;
    expect(await start('a')).to.equal('root_generation_in_progress');
    const nonce = await start('b');
    expect(nonce).to.have.lengthOf(begun.length).and.to.not.equal(begun);
    clock.nowMs += 600_000;
    const again = await start('b');
    expect(again).to.have.lengthOf(begun.length).and.to.not.equal(nonce);
    const [share = Buffer.alloc(0)] = given;
    await timed.rootGeneration.update({ nonce: again, share }, never);
    clock.nowMs += 3_600_000;
    expect(await start('a'), 'a holder has given a share').to.equal('root_generation_in_progress');
  });

  it('runs one at a time, and requires its nonce', async () => {
    expect(await codeOf(barrier.rootGeneration.update({ nonce: '', share: first }, never))).to.equal(
      'root_generation_not_started',
    );
    const { nonce } = await barrier.rootGeneration.start(pad);
    expect(await codeOf(barrier.rootGeneration.start(pad))).to.equal('root_generation_in_progress');
    for (const other of ['', 'other'])
      expect(await codeOf(barrier.rootGeneration.update({ nonce: other, share: first }, never))).to.equal(
        'root_generation_nonce',
      );
    expect(await codeOf(barrier.rootGeneration.cancel({ nonce: 'other' }))).to.equal('root_generation_nonce');
    expect(barrier.rootGeneration.status).to.include({ started: true, nonce, progress: 0 });
  });

  for (const by of ['nonce', 'privileged'] as const)
    it(`can be canceled by ${by}`, async () => {
      const { nonce } = await barrier.rootGeneration.start(pad);
      await barrier.rootGeneration.update({ nonce, share: first }, never);
      await barrier.rootGeneration.cancel(by === 'nonce' ? { nonce } : 'privileged');
      expect(barrier.rootGeneration.status.started).to.equal(false);
      const again = await barrier.rootGeneration.start(pad);
      expect(again).to.include({ progress: 0 });
      expect(again.nonce).not.to.equal(nonce);
    });

  it('works with recovery shares, which unseal nothing', async () => {
    const seal = { type: 'static', current: { id: 'a', key: randomBytes(32) } } as const;
    const other = await openBarrier(memoryStore(), { seal });
    const recovery = await other.initialize({ recoveryShares: 2, recoveryThreshold: 2 }, []);
    const { nonce } = await other.rootGeneration.start(pad);
    const [a = Buffer.alloc(0), b = Buffer.alloc(0)] = recovery.shares;
    await other.rootGeneration.update({ nonce, share: a }, never);
    expect(await other.rootGeneration.update({ nonce, share: b }, maker().make)).to.have.property('complete', true);
  });

  it('continues when the token was refused, and ends when the outcome is unknown', async () => {
    const { make } = maker([new StoreError('busy', 'busy'), new StoreError('outcome_unknown', 'who knows')]);
    const { nonce } = await barrier.rootGeneration.start(pad);
    await barrier.rootGeneration.update({ nonce, share: first }, never);
    expect(await codeOf(barrier.rootGeneration.update({ nonce, share: second }, make))).to.equal('busy');
    expect(barrier.rootGeneration.status).to.include({ started: true, progress: 2 });
    expect(await codeOf(barrier.rootGeneration.update({ nonce, share: second }, make))).to.equal('outcome_unknown');
    expect(barrier.rootGeneration.status.started).to.equal(false);
  });

  it('is refused after the shares were replaced', async () => {
    const { nonce } = await barrier.rootGeneration.start(pad);
    const rekey = await barrier.rekey.start({ shares: 1, threshold: 1, requireVerification: false });
    for (const share of [first, second]) await barrier.rekey.update({ nonce: rekey.nonce, share });
    expect(await codeOf(barrier.rootGeneration.update({ nonce, share: first }, never))).to.equal('conflict');
    expect(barrier.rootGeneration.status.started).to.equal(false);
  });

  it('creates no token with shares of another root key, even if the record names them', async () => {
    const other = await unsealedBarrier();
    const value = (await everything(other.store)).get('core/seal') ?? null;
    await store.commit({ conditions: [], writes: [{ path: 'core/seal', value }] });
    const { nonce } = await barrier.rootGeneration.start(pad);
    const [a = first, b = first] = other.shares;
    await barrier.rootGeneration.update({ nonce, share: a }, never);
    expect(await codeOf(barrier.rootGeneration.update({ nonce, share: b }, never))).to.equal('barrier_corrupt');
  });

  it('ends when the barrier is sealed, and cannot begin while it is sealed', async () => {
    await barrier.rootGeneration.start(pad);
    barrier.seal();
    expect(barrier.rootGeneration.status.started).to.equal(false);
    expect(await codeOf(barrier.rootGeneration.start(pad))).to.equal('sealed');
    await unsealWith(barrier, [first, second]);
    expect(barrier.rootGeneration.status.started).to.equal(false);
  });

  it('returns no token that was created while the barrier was being sealed, since the pad is wiped', async () => {
    const { nonce } = await barrier.rootGeneration.start(pad);
    await barrier.rootGeneration.update({ nonce, share: first }, never);
    const makeAndSeal = async (): Promise<string> => {
      barrier.seal();
      return token;
    };
    expect(await codeOf(barrier.rootGeneration.update({ nonce, share: second }, makeAndSeal))).to.equal('sealed');
    expect(barrier.rootGeneration.status.started).to.equal(false);
  });

  it('refuses a pad that is not as long as the token', async () => {
    const { nonce } = await barrier.rootGeneration.start(pad.subarray(1));
    await barrier.rootGeneration.update({ nonce, share: first }, never);
    const failure = await barrier.rootGeneration
      .update({ nonce, share: second }, maker().make)
      .catch((error: unknown) => String(error));
    expect(failure).to.include('the pad is not as long as the token').and.not.include(token);
  });
});
