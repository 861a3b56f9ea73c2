import { expect } from 'chai';
import { type BenchRun, markdown, threeDigits } from '../../../bench/http/report.ts';
import type { Line } from '../../../bench/http/summary.ts';

const line: Line = {
  row: 'hash',
  server: 'ours',
  requestsPerSecond: 12_345.6,
  slowestRound: 9999,
  fastestRound: 13_000,
  toPeer: 1.5,
  p50Ms: 0.5,
  p99Ms: 12.34,
  cpuUsPerRequest: undefined,
  nodeCpuUsPerRequest: [],
  residentMebibytes: undefined,
  generatorCpuUsPerRequest: 40.04,
  generatorBusy: 0.95,
  failed: 0,
  failure: undefined,
};
const run: BenchRun = {
  date: '2026-01-02T03:04:05.678Z',
  machine: 'CPU, 2 cores, 4 GiB, linux, Node v24.0.0',
  loadBefore: 0,
  loadAfter: 1.25,
  settings: { connections: 16, threads: 1, seconds: 3, rounds: 3, listKeys: 10, nodes: 3, tls: true, audit: false },
  servers: [{ name: 'ours', version: '0.1.0' }],
  lines: [
    line,
    { ...line, cpuUsPerRequest: 1070.4, nodeCpuUsPerRequest: [612.4, 231, 227], failed: 2, failure: '503' },
    { row: 'hash', server: 'peer', skipped: 'POST a|b:\n404' },
  ],
};

describe('report of the HTTP benchmark', () => {
  const text = markdown(run);
  const table = text.split('\n').filter((textLine) => textLine.startsWith('|'));

  it('has a table line per row and server, each with as many cells as the heading', () => {
    expect(table.slice(2)).to.deep.equal([
      '| hash | ours | 12,346 | 9,999–13,000 | 1.50 | 0.50 | 12.3 | – | – | 40.0 | 95 % ! | 0 |',
      '| hash | ours | 12,346 | 9,999–13,000 | 1.50 | 0.50 | 12.3 | 1,070: 612 + 231 + 227 | – | 40.0 | 95 % ! | 2 (503) |',
      '| hash | peer | skipped: POST a b: 404 | – | – | – | – | – | – | – | – | – |',
    ]);
    expect(new Set(table.map((textLine) => textLine.split('|').length)).size).to.equal(1);
  });

  it('says when, where and how it was measured', () => {
    expect(text).to.include('- Date: 2026-01-02 03:04 UTC\n- Machine: CPU, 2 cores, 4 GiB, linux, Node v24.0.0\n');
    expect(text).to.include('- Load average (1 min): before 0.0, after 1.3\n- Servers: ours (0.1.0)\n');
    expect(text).to.include(
      '- 16 connections, 1 generator threads, 3 rounds of 3 s, 10 listed keys, a started cluster of 3 nodes, TLS\n',
    );
  });

  for (const { value, expected } of [
    { value: undefined, expected: '–' },
    { value: Number.NaN, expected: '–' },
    { value: 0, expected: '0.00' },
    { value: 9.876, expected: '9.88' },
    { value: 98.76, expected: '98.8' },
    { value: 1234.5, expected: '1,235' },
  ]) {
    it(`writes ${value} as ${expected}`, () => expect(threeDigits(value)).to.equal(expected));
  }
});
