import { expect } from 'chai';
import { type AcknowledgeSettings, acknowledgementOf } from '../../src/roles/acknowledgement.ts';

const refuse: AcknowledgeSettings = { timeoutMs: 5_000, onTimeout: 'refuse' };
const degrade: AcknowledgeSettings = { timeoutMs: 5_000, onTimeout: 'degrade' };
const at = (secondary: string, acknowledged: number) => ({ secondary, acknowledged, absentMs: 0 });
const absent = (secondary: string, absentMs: number) => ({ secondary, acknowledged: undefined, absentMs });

describe('the acknowledgement of key material', () => {
  it('is that of each secondary, not of the fastest one', () => {
    const decide = (...secondaries: Parameters<typeof acknowledgementOf>[1]) =>
      acknowledgementOf(10, secondaries, { settings: refuse, waitedMs: 0 }).kind;
    expect(decide(at('w', 10))).to.equal('confirmed');
    expect(decide(at('w', 9))).to.equal('wait');
    expect(decide(at('w', 11), at('n', 9))).to.equal('wait');
    expect(decide(at('w', 11), at('n', 10))).to.equal('confirmed');
    expect(decide(at('w', 11), absent('n', 0))).to.equal('wait');
  });

  it('is not needed where no cluster can be promoted', () => {
    expect(acknowledgementOf(10, [], { settings: refuse, waitedMs: 0 })).to.deep.equal({ kind: 'confirmed' });
  });

  it('is waited for until the timeout, and then the settings decide', () => {
    const decide = (settings: AcknowledgeSettings, waitedMs: number) =>
      acknowledgementOf(10, [at('w', 9)], { settings, waitedMs });
    expect(decide(refuse, 4_999)).to.deep.equal({ kind: 'wait' });
    expect(decide(refuse, 5_000)).to.deep.equal({ kind: 'refuse', secondary: 'w' });
    expect(decide(degrade, 5_000)).to.deep.equal({ kind: 'degrade', secondary: 'w' });
  });

  it('is not waited for where a secondary is absent for longer than the timeout', () => {
    const decide = (absentMs: number) =>
      acknowledgementOf(10, [at('w', 9), absent('n', absentMs)], { settings: refuse, waitedMs: 0 });
    expect(decide(4_999)).to.deep.equal({ kind: 'wait' });
    expect(decide(5_000)).to.deep.equal({ kind: 'refuse', secondary: 'n' });
  });
});
