// @live
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { root } from '../process/live-server.ts';

const rowsOf = (page: string): readonly (readonly string[])[] =>
  readFileSync(join(root, page), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
const numberIn = (cell = ''): number => Number.parseFloat(cell.replaceAll(',', ''));

describe('docs/sizing.md', () => {
  const sizing = rowsOf('docs/sizing.md');
  const benchmarks = rowsOf('docs/benchmarks.md');
  const measured = (name: string, column: number): string | undefined =>
    benchmarks.find(([first, ...cells]) => first === name && cells.length >= 4)?.[column];

  it('has the CPU times of the benchmark, and the rates that follow from them', () => {
    const begin = sizing.findIndex(([first]) => first === 'request') + 1;
    const rows = sizing.slice(
      begin,
      sizing.findIndex(([first], at) => at > begin && first === ''),
    );
    expect(rows).to.have.length.above(5);
    for (const [name = '', cpu, rate] of rows) {
      expect(cpu, name).to.equal(measured(name, 4)?.split(' / ')[1]);
      expect(numberIn(rate), name).to.be.closeTo(1e6 / numberIn(cpu), 1e4 / numberIn(cpu));
    }
  });

  it('has the memory, the snapshots and the times of the growth benchmark', () => {
    const line = (start: string): string => sizing.find(([first]) => first === start)?.join(' ') ?? '';
    for (const [start, ...figures] of [
      ['one key', measured('memory, MiB', 1), measured('memory without mapped files, MiB', 1)],
      ['100,000 keys', measured('memory, MiB', 3), measured('memory without mapped files, MiB', 3)],
      ['1,000,000 keys', measured('memory, MiB', 4), measured('memory without mapped files, MiB', 4)],
      ['snapshot of 1,000 keys', measured('snapshot, MiB', 2)],
      ['snapshot of 100,000 keys', measured('snapshot, MiB', 3)],
      ['snapshot of 1,000,000 keys', measured('snapshot, MiB', 4)],
    ] as const)
      for (const figure of figures) expect(line(start), start).to.include(`${figure ?? 'missing'}`);
  });
});
