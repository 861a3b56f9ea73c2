import { expect } from 'chai';
import { decodeJson, encodeJson } from '../../src/values/json-record.ts';

describe('a stored record', () => {
  const example = { name: '', inert: {} };

  it('of an older version gets the values of the members that it lacks', () => {
    expect(decodeJson(encodeJson({ name: 'a' }), example, { inert: { b: 1 } })).to.deep.equal({ name: 'a', inert: { b: 1 } });
    expect(decodeJson(encodeJson({ name: 'a', inert: {} }), example, { inert: { b: 1 } })).to.deep.equal({
      name: 'a',
      inert: {},
    });
  });

  it('without a member that every version writes, or with one of another type, is not read', () => {
    for (const record of [{ inert: {} }, { name: 'a' }, { name: 1, inert: {} }])
      expect(() => decodeJson(encodeJson(record), example)).to.throw('does not know the format');
  });
});
