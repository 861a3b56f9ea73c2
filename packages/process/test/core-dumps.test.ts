import { expect } from 'chai';
import { leavesCoreFiles } from '../src/core-dumps.ts';

describe('leavesCoreFiles', () => {
  for (const { soft, expected } of [
    { soft: '0', expected: false },
    { soft: 'unlimited', expected: true },
    { soft: '1024', expected: true },
  ]) {
    it(`is ${expected} for the soft limit ${soft}`, () => {
      const limits = `Limit                     Soft Limit           Hard Limit           Units\nMax core file size        ${soft.padEnd(21)}unlimited            bytes\n`;
      expect(leavesCoreFiles(limits)).to.equal(expected);
    });
  }
});
