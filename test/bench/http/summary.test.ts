import { expect } from 'chai';
import { type RunResult, summarize } from '../../../bench/http/summary.ts';

const round = (requests: number, more: Partial<RunResult> = {}): RunResult => ({
  requests,
  failed: 0,
  failure: undefined,
  elapsedMs: 2000,
  p50Us: 1500,
  p99Us: 9000,
  serverCpuUs: 100 * requests,
  nodeCpuUs: [70 * requests, 30 * requests],
  serverResidentBytes: 2 ** 20 * requests,
  generatorCpuUs: 50 * requests,
  generatorBusy: 0.25,
  ...more,
});

describe('summary of the rounds', () => {
  it('takes medians, the memory of the last round, and the busiest generator', () => {
    const rounds = [round(400, { p99Us: 90_000, generatorBusy: 0.75 }), round(100), round(200)];
    expect(summarize('hash', 'ours', rounds)).to.deep.equal({
      row: 'hash',
      server: 'ours',
      requestsPerSecond: 100,
      slowestRound: 50,
      fastestRound: 200,
      toPeer: undefined,
      p50Ms: 1.5,
      p99Ms: 9,
      cpuUsPerRequest: 100,
      nodeCpuUsPerRequest: [70, 30],
      residentMebibytes: 200,
      generatorCpuUsPerRequest: 50,
      generatorBusy: 0.75,
      failed: 0,
      failure: undefined,
    });
  });

  it('compares each round with the same round of the peer, so that a slow moment of the machine cancels out', () => {
    const ours = [round(200), round(20), round(220)];
    expect(summarize('hash', 'ours', ours, [round(100), round(10), round(100)]).toPeer).to.equal(2);
  });

  it('counts only requests that succeeded, and keeps the first failure', () => {
    const line = summarize('hash', 'ours', [round(100), round(100, { failed: 80, failure: '503' })]);
    expect(line).to.include({ fastestRound: 50, slowestRound: 10, failed: 80, failure: '503' });
  });

  it('leaves out what is not known', () => {
    const unknown = { p50Us: undefined, p99Us: undefined, serverCpuUs: undefined, nodeCpuUs: [], serverResidentBytes: undefined };
    const line = summarize('hash', 'peer', [round(10, { ...unknown, failed: 10, failure: 'ECONNREFUSED' })]);
    expect(line.nodeCpuUsPerRequest).to.deep.equal([]);
    expect(line).to.include({ requestsPerSecond: 0, p50Ms: undefined, p99Ms: undefined });
    expect(line).to.include({ cpuUsPerRequest: undefined, residentMebibytes: undefined });
  });
});
