import { expect } from 'chai';
import { leavesCoreFiles } from '../src/core-dumps.ts';

describe('core files', () => {
  for (const { soft, expected } of [
    { soft: '0', expected: false },
    { soft: 'unlimited', expected: true },
    { soft: '1024', expected: true },
  ]) {
    it(`are ${expected ? '' : 'not '}left with the soft limit ${soft}`, () => {
      const limits = `Limit                     Soft Limit           Hard Limit           Units\nMax core file size        ${soft.padEnd(21)}unlimited            bytes\n`;
      expect(leavesCoreFiles(limits)).to.equal(expected);
    });
  }
});
