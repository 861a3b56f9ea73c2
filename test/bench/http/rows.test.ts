import { expect } from 'chai';
import { allRows, selectRows } from '../../../bench/http/rows.ts';

const rows = allRows({ mount: 'm', listMount: 'l', listKeys: 10 });
const selected = (...wanted: string[]): string[] => selectRows(rows, wanted).map(({ name }) => name);

describe('rows of the HTTP benchmark', () => {
  it('have one name each', () => {
    expect(new Set(selected()).size).to.equal(rows.length);
  });

  it('are selected by whole names or by the parts before a hyphen, in the order of the table', () => {
    expect(selected('sign-rsa-2048', 'encrypt')).to.deep.equal(['encrypt-32b', 'encrypt-4k', 'encrypt-1m', 'sign-rsa-2048']);
    expect(selected('hash')).to.deep.equal(['hash']);
  });

  it('refuse an unknown name, even if the name of a row starts with its letters', () => {
    expect(() => selected('encrypt', 'has')).to.throw('--rows: has is not one of health, ');
  });

  it('number the requests that must not repeat a path', () => {
    expect(rows.filter(({ path }) => path.includes('{n}')).map(({ name, spread }) => [name, spread])).to.deep.equal([
      ['key-create', undefined],
      ['key-rotate', 256],
    ]);
  });
});
