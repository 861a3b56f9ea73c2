import { expect } from 'chai';
import fc from 'fast-check';
import { RequestError } from '../src/reply/request-error.ts';
import { indexHeaders, indexIn, indexValue, indexWanted } from '../src/service-index.ts';

const here = '0b7c9f52-6d0e-4b2f-9a55-0f6f6f7f1c11';
const valueAt = (index: number): string => indexValue({ history: here, index });

describe('the index header', () => {
  it('is sent under our name and under the peers’', () => {
    const index = { history: 'x', index: 1 };
    expect(indexHeaders(index)).to.deep.equal({ 'X-Service-Index': indexValue(index), 'X-Vault-Index': indexValue(index) });
  });

  it('has the form that existing clients compare', () => {
    expect(Buffer.from(indexValue({ history: here, index: 17 }), 'base64').toString()).to.equal(`v1:${here}:17:0:`);
  });

  it('names a history and an index in it', () => {
    fc.assert(
      fc.property(fc.nat(), fc.uuid(), (index, history) => {
        expect(indexIn(indexValue({ history, index }))).to.deep.equal({ history, index });
      }),
    );
  });

  for (const headers of [{ 'x-service-index': valueAt(5) }, { 'x-service-index': '', 'x-vault-index': valueAt(5) }])
    it(`is read in ${JSON.stringify(headers)}`, () => {
      expect(indexWanted(headers)).to.deep.equal({ history: here, index: 5 });
    });

  for (const value of [
    '5',
    '0b7c9f52.5',
    valueAt(Number.NaN),
    valueAt(-1),
    valueAt(1e300),
    indexValue({ history: '', index: 5 }),
    `${valueAt(5)}, ${valueAt(6)}`,
  ])
    it(`is refused with the value ${value}, which no cluster sends`, () => {
      expect(() => indexWanted({ 'x-vault-index': value })).to.throw(RequestError);
    });

  it('requires nothing if it is missing or empty', () => {
    expect(indexWanted({})).to.equal(undefined);
    expect(indexWanted({ 'x-service-index': '' })).to.equal(undefined);
  });
});
