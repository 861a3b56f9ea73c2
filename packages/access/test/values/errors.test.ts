import { expect } from 'chai';
import { refusedBy } from '../../src/values/errors.ts';

describe('what refused a login', () => {
  it('has the values as texts, and says so if one is nested too deeply to be written', () => {
    const deep: unknown = JSON.parse('['.repeat(8000) + ']'.repeat(8000));
    expect(refusedBy('bound_claims.groups', ['a', 1, { b: true }, deep]).given).to.deep.equal([
      'a',
      '1',
      '{"b":true}',
      'too deep',
    ]);
    expect(refusedBy('bound_claims.groups')).to.deep.equal({ constraint: 'bound_claims.groups' });
  });
});
