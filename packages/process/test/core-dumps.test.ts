import { expect } from 'chai';
import { leavesCoreFiles } from '../src/core-dumps.ts';

describe('leavesCoreFiles', () => {
  for (const { soft, expected } of [
    { soft: '0', expected: false },
    { soft: 'unlimited', expected: true },
    { soft: '1024', expected: true },
  ]) {
    it(`is ${expected} for the soft limit ${soft}`, () => {
      const head = 'Limit                     Soft Limit           Hard Limit           Units';
      const limits = `${head}\nMax core file size        ${soft.padEnd(21)}unlimited            bytes\n`;
      expect(leavesCoreFiles(limits)).to.equal(expected);
    });
  }
});
