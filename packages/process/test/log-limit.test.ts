import { expect } from 'chai';
import { LogLimit } from '../src/log-limit.ts';
import type { Logger } from '../src/logger.ts';
import { TestClock } from './test-clock.ts';

function limited() {
  const clock = new TestClock();
  const lines: object[] = [];
  const write = (fields: object, message: string) => lines.push({ ...fields, message });
  const log = { info: write, warn: write, error: write } as unknown as Logger;
  return { clock, lines, limit: new LogLimit({ log, clock, everyMs: 1_000 }) };
}

describe('LogLimit', () => {
  it('writes one line in an interval, and the number of omitted lines with the next', () => {
    const { clock, lines, limit } = limited();
    for (; clock.ms < 1_000; clock.ms += 100) limit.write('warn', 'a', { at: clock.ms }, 'away');
    limit.write('warn', 'a', { at: clock.ms }, 'away');
    expect(lines).to.deep.equal([
      { at: 0, message: 'away' },
      { at: 1_000, omitted: 9, message: 'away' },
    ]);
  });

  it('limits each kind on its own', () => {
    const { lines, limit } = limited();
    for (const kind of ['a', 'b', 'a', 'b']) limit.write('info', kind, { kind }, 'away');
    expect(lines.length).to.equal(2);
  });

  it('writes a line at once when its condition had ended in between, ten times at most', () => {
    const { lines, limit } = limited();
    expect(limit.ended('a')).to.equal(false);
    for (let i = 0; i < 50; i++) {
      limit.write('warn', 'a', {}, 'away');
      limit.write('warn', 'a', {}, 'away');
      expect(limit.ended('a')).to.equal(true);
    }
    expect(lines.length).to.equal(10);
  });

  it('remembers a bounded number of kinds', () => {
    const { lines, limit } = limited();
    for (let i = 0; i < 600; i++) limit.write('warn', `${i}`, {}, 'away');
    limit.write('warn', '0', {}, 'away');
    expect(lines.length).to.equal(601);
  });
});
