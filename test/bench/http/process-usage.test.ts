import { expect } from 'chai';
import { parseUsage, usageOf } from '../../../bench/http/process-usage.ts';

describe('usage of a process', () => {
  it('sums up user and system time, whatever the command is called', () => {
    const stat = '42 (a) b (c) S 1 42 42 0 -1 4194560 900 0 3 0 250 50 7 8 20 0 11 0 12345 1000000 2000 184467';
    const status = 'Name:\ta) b (c\nVmPeak:\t  999 kB\nVmHWM:\t  700 kB\nVmRSS:\t  512 kB\nRssAnon:\t  256 kB\n';
    expect(parseUsage(stat, status)).to.deep.equal({ cpuUs: 3_000_000, residentBytes: 524_288, ownBytes: 262_144 });
  });

  it('is not known without a process', () => {
    expect(usageOf([])).to.equal(undefined);
    expect(usageOf([process.pid, 2 ** 30])).to.equal(undefined);
  });

  it('is known for this process', () => {
    const usage = usageOf([process.pid]);
    expect(usage?.cpuUs).to.be.above(0);
    expect(usage?.cpuUsEach).to.deep.equal([usage?.cpuUs]);
    expect(usage?.ownBytes).to.be.above(2 ** 20);
    expect(usage?.residentBytes).to.be.above(usage?.ownBytes ?? Number.NaN);
  });
});
