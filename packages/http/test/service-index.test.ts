import { expect } from 'chai';
import fc from 'fast-check';
import { RequestError } from '../src/reply/request-error.ts';
import { indexHeaders, indexIn, indexValue, indexWanted } from '../src/service-index.ts';

const here = '0b7c9f52-6d0e-4b2f-9a55-0f6f6f7f1c11';
const elsewhere = '1b7c9f52-6d0e-4b2f-9a55-0f6f6f7f1c11';

describe('the index header', () => {
  it('is sent under our name and under the peers’', () => {
    expect(indexHeaders('x')).to.deep.equal({ 'X-Service-Index': 'x', 'X-Vault-Index': 'x' });
  });

  it('has the form that existing clients compare', () => {
    expect(Buffer.from(indexValue(here, 17), 'base64').toString()).to.equal(`v1:${here}:17:0:`);
  });

  it('is accepted only by the cluster that sent it', () => {
    fc.assert(
      fc.property(fc.nat(), (index) => {
        expect(indexIn(indexValue(here, index), here)).to.equal(index);
        expect(indexIn(indexValue(here, index), elsewhere)).to.equal(undefined);
      }),
    );
  });

  for (const headers of [
    { 'x-service-index': indexValue(here, 5) },
    { 'x-service-index': '', 'x-vault-index': indexValue(here, 5) },
  ])
    it(`is read in ${JSON.stringify(headers)}`, () => {
      expect(indexWanted(headers, here)).to.equal(5);
    });

  for (const value of [
    '5',
    '0b7c9f52.5',
    indexValue(elsewhere, 5),
    indexValue(here, Number.NaN),
    indexValue(here, -1),
    indexValue(here, 1e300),
    `${indexValue(here, 5)}, ${indexValue(here, 6)}`,
  ])
    it(`is refused with the value ${value}, which this cluster did not send`, () => {
      expect(() => indexWanted({ 'x-vault-index': value }, here)).to.throw(RequestError);
    });

  it('requires nothing if it is missing or empty', () => {
    expect(indexWanted({}, here)).to.equal(undefined);
    expect(indexWanted({ 'x-service-index': '' }, here)).to.equal(undefined);
  });
});
