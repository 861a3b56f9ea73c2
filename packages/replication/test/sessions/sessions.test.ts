import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { sessionLimits } from '../../src/sessions/session-ports.ts';
import type { Frame } from '../../src/stream/frame.ts';
import { decodeFrame, encodeFrame } from '../../src/stream/frame-codec.ts';
import { Link, limits } from './memory-link.ts';
import { epochId, otherId, rootKey, set, successionKey, TestPrimary, TestSecondary, textsOf } from './session-fixtures.ts';

const inSync = (primary: TestPrimary, secondary: TestSecondary) => () => secondary.current?.index === primary.index;
const filled = (count: number, options?: ConstructorParameters<typeof TestPrimary>[0]): TestPrimary => {
  const primary = new TestPrimary(options);
  for (let at = 0; at < count; at++) primary.write(`transit/key-${at}`, `value ${at}`);
  return primary;
};

describe('the sessions of a primary and a secondary', () => {
  it('send the whole state to a secondary without one, and then what is written', async () => {
    const [primary, secondary] = [filled(40), new TestSecondary()];
    const link = new Link(primary, secondary);
    await link.until(inSync(primary, secondary));
    expect(textsOf(secondary.records)).to.deep.equal(textsOf(primary.records));
    expect(secondary.learned).to.have.length(1);
    expect(secondary.keys, 'with the state only').to.deep.equal([rootKey]);
    primary.write('transit/key-7', 'new');
    link.primary.progress();
    await link.until(inSync(primary, secondary));
    expect(textsOf(secondary.records)['transit/key-7']).to.equal('new@51');
    expect(primary.openReaders).to.equal(0);
    expect(link.ends).to.deep.equal({});
  });

  it('resume at the cursor after a cut', async () => {
    const [primary, secondary] = [filled(5), new TestSecondary()];
    const first = new Link(primary, secondary);
    await first.until(inSync(primary, secondary));
    first.cut();
    for (let at = 0; at < 30; at++) primary.write('transit/later', `${at}`);
    const second = new Link(primary, secondary);
    await second.until(inSync(primary, secondary));
    expect(second.seen).to.include('>welcome').and.not.include('>state');
    expect(textsOf(secondary.records)).to.deep.equal(textsOf(primary.records));
  });

  it('end with equal records wherever the connection is cut', async () => {
    const run = async (cutAfter: number): Promise<number> => {
      const [primary, secondary] = [filled(60), new TestSecondary()];
      let link = new Link(primary, secondary);
      let delivered = 0;
      await until(() => {
        if (delivered === cutAfter) {
          link.cut();
          primary.write(`transit/key-${cutAfter}`, 'after the cut');
          link = new Link(primary, secondary);
        }
        if (link.deliver()) delivered++;
        link.primary.progress();
        if (delivered === 12) primary.write('transit/key-3', 'during');
        return delivered >= cutAfter && inSync(primary, secondary)();
      });
      expect(textsOf(secondary.records), `cut after ${cutAfter} frames`).to.deep.equal(textsOf(primary.records));
      expect(primary.openReaders).to.equal(0);
      link.cut();
      return delivered;
    };
    const frames = await run(-1);
    expect(frames).to.be.above(10);
    for (let cutAfter = 0; cutAfter < frames; cutAfter++) await run(cutAfter);
  });

  it('hold a slow secondary to the window while the primary goes on writing', async () => {
    const [primary, secondary] = [filled(1, { bytesMax: 1_000_000 }), new TestSecondary()];
    const link = new Link(primary, secondary);
    await link.until(inSync(primary, secondary));
    let commit: (() => void) | undefined;
    secondary.commit = () => new Promise((resolve) => (commit = () => resolve('committed')));
    for (let at = 0; at < 300; at++) {
      primary.write(`transit/k-${at}`, 'x'.repeat(150));
      link.primary.progress();
    }
    await link.until(() => commit !== undefined);
    expect(link.seen.filter((one) => one === '>outcome')).to.have.length(limits.framesMax);
    expect(link.primary.status().lag.entries).to.equal(300);
    secondary.commit = async () => 'committed';
    commit?.();
    await link.until(inSync(primary, secondary));
    expect(textsOf(secondary.records)).to.deep.equal(textsOf(primary.records));
    await link.until(() => link.primary.status().lag.entries === 0);
    expect(link.ends).to.deep.equal({});
  });

  /** Writes these records while a commit of the secondary is under way. Returns the number of entries in each step from then on. */
  async function writtenDuringCommit(records: readonly (readonly [path: string, value: string])[]) {
    const [primary, secondary] = [filled(3), new TestSecondary()];
    const link = new Link(primary, secondary, 'east', { ...limits, framesMax: 16 });
    await link.until(inSync(primary, secondary));
    const before = secondary.steps.length;
    let finish = (): void => undefined;
    secondary.commit = () =>
      new Promise((resolve) => {
        finish = () => resolve('committed');
      });
    for (const [path, value] of records) {
      primary.write(path, value);
      link.primary.progress();
      while (link.deliver());
    }
    finish();
    secondary.commit = async () => 'committed';
    await link.until(inSync(primary, secondary));
    const steps = secondary.steps.slice(before).map((step) => step.kind === 'follow' && step.to - step.from.index);
    return { primary, secondary, link, steps };
  }

  it('commit the entries that arrive during a commit as one step, with one acknowledgement', async () => {
    const records = Array.from({ length: 10 }, (_, at) => [at === 9 ? 'transit/key-0' : `transit/more-${at}`, `${at}`] as const);
    const { primary, secondary, link, steps } = await writtenDuringCommit(records);
    expect(steps).to.deep.equal([1, 9]);
    expect(textsOf(secondary.records)).to.deep.equal(textsOf(primary.records));
    expect(link.ends).to.deep.equal({});
  });

  it('never commit two changes of the keyring as one step', async () => {
    const paths = ['transit/key', 'core/keyring', 'transit/key', 'core/keyring', 'transit/key'];
    const { steps } = await writtenDuringCommit(paths.map((path) => [path, 'value'] as const));
    expect(steps).to.deep.equal([1, 2, 2]);
  });

  it('begin again with the whole state when the outcomes are no longer kept', async () => {
    const [primary, secondary] = [filled(1, { bytesMax: 2_000 }), new TestSecondary()];
    const first = new Link(primary, secondary);
    await first.until(inSync(primary, secondary));
    for (let at = 0; at < 50; at++) primary.write(`transit/k-${at}`, 'x'.repeat(150));
    first.primary.progress();
    expect(first.ends['primary']).to.deep.equal({ why: 'behind' });
    first.cut();
    const second = new Link(primary, secondary);
    await second.until(inSync(primary, secondary));
    expect(second.seen).to.include('>state');
    expect(textsOf(secondary.records)).to.deep.equal(textsOf(primary.records));
  });

  it('send no more of a state than the window while the secondary stages nothing', async () => {
    const [primary, secondary] = [filled(200), new TestSecondary()];
    const commits: (() => void)[] = [];
    secondary.commit = () => new Promise((resolve) => commits.push(() => resolve('committed')));
    const link = new Link(primary, secondary);
    await link.until(() => link.seen.filter((one) => one === '>records').length === limits.framesMax && commits.length === 1);
    link.primary.tick();
    await link.until(() => true);
    expect(link.seen.filter((one) => one === '>records')).to.have.length(limits.framesMax);
    secondary.commit = async () => 'committed';
    commits[0]?.();
    await link.until(inSync(primary, secondary));
    expect(textsOf(secondary.records)).to.deep.equal(textsOf(primary.records));
  });

  it('end when the secondary stages nothing for too long, also while it answers heartbeats', async () => {
    const [primary, secondary] = [filled(200), new TestSecondary()];
    secondary.commit = () => new Promise(() => undefined);
    const link = new Link(primary, secondary);
    await link.until(() => link.seen.filter((one) => one === '>records').length === limits.framesMax);
    while (link.nowMs < 1_000 + limits.stallMsMax) {
      link.nowMs += 1_000;
      link.primary.tick();
      while (link.deliver());
    }
    expect(link.ends).to.deep.equal({});
    link.nowMs += 1_000;
    link.primary.tick();
    expect(link.ends['primary']).to.deep.equal({ why: 'silent' });
    await until(() => primary.openReaders === 0);
  });

  it('keep the outcomes while a state is sent, and catch up with what was written meanwhile', async () => {
    const primary = filled(60, { bytesMax: 2_000, heldBytesMax: 1_000_000 });
    const secondary = new TestSecondary();
    const link = new Link(primary, secondary);
    await until(() => {
      link.deliver();
      primary.write('transit/hot', `${primary.index}`.repeat(20));
      return link.seen.includes('>end');
    });
    link.primary.progress();
    await link.until(inSync(primary, secondary));
    expect(link.seen.filter((one) => one === '>state')).to.have.length(1);
    expect(textsOf(secondary.records)).to.deep.equal(textsOf(primary.records));
    expect(primary.outcomes.continuesFrom(60 + 10), 'released').to.equal(false);
  });

  it('resynchronize once, and keep up, on a link that carries two thirds of what is written to few of many records', async () => {
    const primary = new TestPrimary({ bytesMax: 64_000_000, heldBytesMax: 64_000_000 });
    const secondary = new TestSecondary();
    const value = 'x'.repeat(500);
    const write = (count: number): void => {
      for (let at = 0; at < count; at++) primary.write(`transit/key-${primary.index % 300}`, value);
    };
    for (let at = 0; at < 4_000; at++) primary.write(`transit/cold-${at}`, value);
    write(300);
    const link = new Link(primary, secondary, 'east', sessionLimits);
    let stateRounds = 0;
    const bytesPerRound = 50_000;
    let budget = 0;
    const lags: number[] = [];
    for (let round = 0; round < 900; round++) {
      write((1.5 * bytesPerRound) / value.length);
      budget = Math.min(budget, 0) + bytesPerRound;
      while (budget > 0 && link.toSecondary.length > 0) {
        budget -= link.toSecondary[0]?.length ?? 0;
        link.deliverDown();
      }
      while (link.deliverUp());
      link.nowMs += 100;
      link.primary.tick();
      await new Promise((resolve) => setImmediate(resolve));
      if (secondary.records.size === 0) stateRounds += 1;
      lags.push(primary.index - (secondary.current?.index ?? 0));
    }
    const [before, after] = [Math.max(...lags.slice(300, 600)), Math.max(...lags.slice(600))];
    expect(stateRounds, 'the state took long to send').to.be.greaterThan(40);
    expect(after, 'the lag does not grow').to.be.at.most(before * 1.1);
    expect(link.ends).to.deep.equal({});
    expect(link.seen.filter((one) => one === '>state')).to.have.length(1);
    await link.until(inSync(primary, secondary));
    expect(textsOf(secondary.records)).to.deep.equal(textsOf(primary.records));
  });

  it('answer heartbeats with their send time, unless a promotion is being decided', async () => {
    const [primary, secondary] = [filled(1), new TestSecondary()];
    const link = new Link(primary, secondary);
    await link.until(inSync(primary, secondary));
    link.nowMs += 250;
    link.primary.tick();
    await link.until(() => primary.answers.length === 1);
    expect(primary.answers).to.deep.equal([{ secondary: 'east', sentMs: 1_250 }]);
    link.nowMs += 250;
    link.primary.tick();
    link.nowMs += 4_000; // the heartbeat and its answer are slow
    await link.until(() => primary.answers.length === 2);
    expect(primary.answers[1], 'the secondary may have been promoted since').to.deep.equal({ secondary: 'east', sentMs: 1_500 });
    secondary.isAnswering = false;
    link.nowMs += 250;
    link.primary.tick();
    await link.until(() => secondary.positions.length === 3);
    expect([primary.answers.length, secondary.answers]).to.deep.equal([2, 2]);
  });

  it('end on both sides when nothing arrives', async () => {
    const [primary, secondary] = [filled(1), new TestSecondary()];
    const link = new Link(primary, secondary);
    await link.until(inSync(primary, secondary));
    link.nowMs += limits.silentMsMax + 1;
    link.primary.tick();
    link.secondary.tick();
    expect(link.ends).to.deep.equal({ primary: { why: 'silent' }, secondary: { why: 'silent' } });
  });

  it('end when the digests differ, and the secondary does not connect again', async () => {
    const [primary, secondary] = [filled(3), new TestSecondary()];
    const link = new Link(primary, secondary);
    await link.until(inSync(primary, secondary));
    secondary.records.delete('transit/key-1');
    link.primary.tick();
    await link.until(() => link.ends['secondary'] !== undefined);
    expect(link.ends['secondary']).to.deep.equal({ why: 'stop', reason: 'digest_differs' });
  });

  it('end when the secondary could not unseal itself with the state, and it does not connect again', async () => {
    const [primary, secondary] = [filled(3), new TestSecondary()];
    secondary.commit = async ({ kind }) => (kind === 'swap' ? 'unusable' : 'committed');
    const link = new Link(primary, secondary);
    await link.until(() => link.ends['secondary'] !== undefined);
    expect(link.ends['secondary']).to.deep.equal({ why: 'stop', reason: 'state_unusable' });
  });

  it('send the whole state again to a secondary that asks for it', async () => {
    const [primary, secondary] = [filled(3), new TestSecondary()];
    const first = new Link(primary, secondary);
    await first.until(inSync(primary, secondary));
    first.cut();
    secondary.records.clear();
    secondary.wantsWholeState = true;
    const second = new Link(primary, secondary);
    const isWhole = () => secondary.records.size === primary.records.size;
    await second.until(isWhole);
    expect(second.seen).to.include('>state').and.not.include('>welcome');
    expect(textsOf(secondary.records)).to.deep.equal(textsOf(primary.records));
  });

  it('end with the epoch', async () => {
    const [primary, secondary] = [filled(3), new TestSecondary()];
    const link = new Link(primary, secondary);
    await link.until(inSync(primary, secondary));
    if (primary.current !== undefined) primary.current = { ...primary.current, role: 'superseded' };
    link.primary.tick();
    expect(link.ends['primary']).to.deep.equal({ why: 'epoch_ended' });
  });

  it('end when the primary is at a higher feature level than its secondary', async () => {
    const [primary, secondary] = [filled(3), new TestSecondary()];
    const link = new Link(primary, secondary);
    await link.until(inSync(primary, secondary));
    primary.featureLevel = 4;
    primary.write('transit/key-1', 'in a later format');
    link.primary.progress();
    await link.until(() => link.ends['secondary'] !== undefined);
    expect(link.ends['secondary']).to.deep.equal({ why: 'refused', reason: 'level' });
    expect(textsOf(secondary.records)['transit/key-1']).to.match(/^value 1@/);

    const early = new Link(primary, secondary);
    await early.until(() => early.ends['secondary'] !== undefined);
    expect(early.ends['secondary']).to.deep.equal({ why: 'refused', reason: 'level' });
    secondary.featureLevel = 4;
    const later = new Link(primary, secondary);
    await later.until(inSync(primary, secondary));
    expect(textsOf(secondary.records)).to.deep.equal(textsOf(primary.records));
  });

  it('send no state that was read after the feature level had risen', async () => {
    const [primary, secondary] = [filled(3), new TestSecondary()];
    const wholeState = () => TestPrimary.prototype.wholeState.call(primary);
    primary.wholeState = async () => {
      primary.featureLevel = 4;
      return wholeState();
    };
    const link = new Link(primary, secondary);
    await link.until(() => link.ends['secondary'] !== undefined);
    expect(link.ends['secondary']).to.deep.equal({ why: 'refused', reason: 'level' });
    expect(link.seen).to.not.include('>records').and.not.include('>key');
    expect(primary.openReaders).to.equal(0);
  });

  it('tell a cluster of another set that it is refused', async () => {
    const [primary, secondary] = [filled(1), new TestSecondary()];
    if (secondary.current !== undefined) secondary.current = { ...secondary.current, set: otherId };
    const link = new Link(primary, secondary);
    await link.until(() => link.ends['secondary'] !== undefined);
    expect(link.ends['secondary']).to.deep.equal({ why: 'refused', reason: 'other_set' });
    expect(primary.registrations).to.deep.equal([]);
  });

  it('bring back a former primary that was ahead, while it answers heartbeats from its own history', async () => {
    const [primary, former] = [filled(60), new TestSecondary()];
    const epochs = [{ number: 1, id: otherId, start: 1 }];
    former.current = { ...{ role: 'secondary', set, local: [], index: 5_000, offset: 0, seen: 1 }, epochs };
    if (primary.current !== undefined)
      primary.current = { ...primary.current, seen: 2, epochs: [...epochs, { number: 2, id: epochId, start: 10 }] };
    const link = new Link(primary, former);
    await link.until(() => {
      link.nowMs += 10;
      link.primary.tick();
      return inSync(primary, former)();
    });
    expect(former.answers).to.be.above(0);
    expect(link.ends).to.deep.equal({});
    expect(textsOf(former.records)).to.deep.equal(textsOf(primary.records));
  });

  it('stop the lower one of two primaries that meet', async () => {
    const [primary, other] = [filled(1), new TestSecondary()];
    other.current = {
      ...{ role: 'primary', set, local: [], index: 30, offset: 0, seen: 2 },
      epochs: [{ number: 2, id: otherId, start: 30 }],
    };
    const link = new Link(primary, other);
    await link.until(() => link.ends['primary'] !== undefined && link.ends['secondary'] !== undefined);
    expect(primary.supersededBy).to.deep.equal([otherId]);
    expect(other.current.role).to.equal('primary');
  });

  for (const { what, key } of [
    { what: 'cannot prove its later epoch', key: undefined },
    { what: 'proves it by the key of another set', key: Buffer.alloc(32, 1) },
  ])
    it(`do not stop a primary for a cluster that ${what}, and report it`, async () => {
      const [primary, other] = [filled(1), new TestSecondary()];
      other.successionKey = key;
      other.current = {
        ...{ role: 'primary', set, local: [], index: 30, offset: 0, seen: 2 },
        epochs: [{ number: 2, id: otherId, start: 30 }],
      };
      const link = new Link(primary, other);
      await link.until(() => link.ends['primary'] !== undefined && link.ends['secondary'] !== undefined);
      expect([primary.supersededBy, primary.unprovenClaims]).to.deep.equal([[], ['east']]);
      expect(primary.current?.role).to.equal('primary');
    });

  it('do not stop a promoted cluster for its former primary, unless that proves a later epoch', async () => {
    for (const key of [undefined, successionKey]) {
      const [former, promoted] = [filled(1), new TestSecondary()];
      former.successionKey = key;
      if (former.current !== undefined) former.current = { ...former.current, epochs: [{ number: 3, id: epochId, start: 10 }] };
      promoted.current = {
        ...{ role: 'primary', set, local: [], index: 30, offset: 0, seen: 2 },
        epochs: [{ number: 2, id: otherId, start: 30 }],
      };
      const link = new Link(former, promoted);
      await link.until(() => link.ends['primary'] !== undefined && link.ends['secondary'] !== undefined);
      const isProven = key !== undefined;
      expect([promoted.current.role, promoted.unprovenClaims]).to.deep.equal(isProven ? ['superseded', 0] : ['primary', 1]);
    }
  });

  it('stop both of two primaries with the same epoch number', async () => {
    const [primary, other] = [filled(1), new TestSecondary()];
    other.current = {
      ...{ role: 'primary', set, local: [], index: 30, offset: 0, seen: 1 },
      epochs: [{ number: 1, id: otherId, start: 30 }],
    };
    const link = new Link(primary, other);
    await link.until(() => link.ends['primary'] !== undefined && link.ends['secondary'] !== undefined);
    expect(primary.supersededBy).to.deep.equal([otherId]);
    expect(other.current.role).to.equal('superseded');
  });

  const at = { number: 1, id: epochId, index: 10 };
  const name = { number: 1, id: epochId };
  for (const [what, frame] of [
    ['an acknowledgement before the hello', { kind: 'ack', at, echoMs: undefined }],
    ['a heartbeat', { kind: 'heartbeat', at, sentMs: 0, demoted: false }],
    ['entries', { kind: 'outcome', epoch: name, from: 10, to: 11, writes: [], valuesWritten: 0 }],
    ['a staged chunk of no transfer', { kind: 'staged', attempt: 'a', chunk: 0 }],
  ] as readonly (readonly [string, Frame])[])
    it(`end at ${what} on the primary`, () => {
      const link = new Link(filled(1), new TestSecondary());
      link.primary.received(frame);
      expect(link.ends['primary']).to.deep.equal({ why: 'unexpected_frame' });
    });

  it('end at a second hello', async () => {
    const [primary, secondary] = [filled(1), new TestSecondary()];
    const link = new Link(primary, secondary);
    await link.until(inSync(primary, secondary));
    link.primary.received({ kind: 'hello', set, cursor: undefined, wantsWholeState: false, level: 3 });
    expect(link.ends['primary']).to.deep.equal({ why: 'unexpected_frame' });
  });

  for (const [what, ack] of [
    ['a position that the primary does not have', { at: { ...at, index: 99 }, echoMs: undefined }],
    ['an echo of a heartbeat that will be sent', { at, echoMs: 5_000 }],
    ['an echo of a heartbeat from before the connection', { at, echoMs: 1 }],
  ] as const)
    it(`end at an acknowledgement with ${what}`, async () => {
      const [primary, secondary] = [filled(1), new TestSecondary()];
      const link = new Link(primary, secondary);
      await link.until(inSync(primary, secondary));
      link.primary.received({ kind: 'ack', ...ack });
      expect(link.ends['primary']).to.deep.equal({ why: 'unexpected_frame' });
      expect(primary.answers).to.deep.equal([]);
    });

  it('end at entries that skip some, and change nothing', async () => {
    const [primary, secondary] = [filled(1), new TestSecondary()];
    const link = new Link(primary, secondary);
    await link.until(inSync(primary, secondary));
    const steps = secondary.steps.length;
    link.secondary.received({ kind: 'outcome', epoch: name, from: 20, to: 21, writes: [], valuesWritten: 0 });
    expect(link.ends['secondary']).to.deep.equal({ why: 'reconnect', reason: 'gap' });
    expect(secondary.steps).to.have.length(steps);
  });

  it('end at a records frame without a state, and at more frames than the window', () => {
    const first = new Link(filled(1), new TestSecondary());
    first.secondary.received({ kind: 'records', attempt: 'a', chunk: 0, records: [] });
    expect(first.ends['secondary']).to.deep.equal({ why: 'reconnect', reason: 'gap' });
    const secondary = new TestSecondary();
    const second = new Link(filled(1), secondary);
    secondary.commit = () => new Promise(() => undefined);
    const epochs = [{ number: 1, id: epochId, start: 0 }];
    second.secondary.received({ kind: 'state', attempt: 'a', epochs, index: 5, valuesWritten: 0 });
    for (let chunk = 0; chunk < 40; chunk++) second.secondary.received({ kind: 'records', attempt: 'a', chunk, records: [] });
    expect(second.ends['secondary']).to.deep.equal({ why: 'reconnect', reason: 'overflow' });
  });

  it('encode the largest list of nodes as a frame that can be decoded', () => {
    const addresses = Array.from({ length: 32 }, () => 'h'.repeat(261));
    const pem = `-----BEGIN CERTIFICATE-----\n${`${'A'.repeat(64)}\n`.repeat(22)}-----END CERTIFICATE-----\n`;
    const frame: Frame = { kind: 'nodes', addresses, authorities: [pem, pem, pem, pem] };
    expect(pem.length).to.be.within(1_400, 1_536);
    expect(decodeFrame(encodeFrame(frame))).to.deep.equal(frame);
  });
});
