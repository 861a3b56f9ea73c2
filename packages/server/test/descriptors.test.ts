import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { clientConnectionsMax, openFilesIn } from '../src/descriptors.ts';

describe('client connections within the open-file limit', () => {
  const connectionsFor = (openFilesMax: number | undefined, { connectionsMax = 4096, clustered = false } = {}): number =>
    clientConnectionsMax({ openFilesMax, connectionsMax, clustered });

  for (const [openFilesMax, options, connections] of [
    [1_048_576, {}, 4096],
    [1_048_576, { clustered: true }, 4096],
    [undefined, { clustered: true }, 4096],
    [3000, {}, 2272],
    [3000, { clustered: true }, 800],
    [3000, { connectionsMax: 100, clustered: true }, 100],
    [1024, {}, 691],
    [256, { connectionsMax: 16 }, 16],
  ] as const)
    it(`are ${connections} of ${openFilesMax ?? 'unknown'} with ${JSON.stringify(options)}`, () => {
      expect(connectionsFor(openFilesMax, options)).to.equal(connections);
    });

  for (const [openFilesMax, options] of [
    [200, {}],
    [1024, { clustered: true }],
  ] as const)
    it(`are too few if the process may open ${openFilesMax} files and has ${JSON.stringify(options)}: the error names the limit`, () => {
      expect(() => connectionsFor(openFilesMax, options)).to.throw(
        StartError,
        new RegExp(`may open ${openFilesMax} files.*ulimit -n`),
      );
    });

  it('follow the soft limit, or are unlimited without one', () => {
    const line = (soft: string) =>
      `Limit Soft Limit Hard Limit Units\nMax open files            ${soft}                4096                 files     \n`;
    expect(openFilesIn(line('1024'))).to.equal(1024);
    expect(openFilesIn(line('unlimited'))).to.equal(undefined);
    expect(openFilesIn('')).to.equal(undefined);
  });
});
