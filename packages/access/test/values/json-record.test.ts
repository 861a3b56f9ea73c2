import { expect } from 'chai';
import { decodeJson, encodeJson } from '../../src/values/json-record.ts';

describe('a stored record', () => {
  const example = { name: '', inert: {} };

  it('without a member, or with one of another type, is not read', () => {
    for (const record of [{ inert: {} }, { name: 'a' }, { name: 1, inert: {} }])
      expect(() => decodeJson(encodeJson(record), example)).to.throw('does not know the format');
  });
});
