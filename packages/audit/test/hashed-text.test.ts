import { runAtOnce } from '@transitd/event-loop';
import { boolean, integer, type JsonSchema, list, map, object, string } from '@transitd/http';
import { expect } from 'chai';
import { hashedData, hashedRequest } from '../src/hashed-text.ts';

const hash = (text: string): string => `hash of ${text}`;
const recorded = (value: unknown, schema: JsonSchema): unknown => JSON.parse(runAtOnce(hashedRequest(value, schema, hash)));

describe('the numbers of a request', () => {
  const item = object({ plaintext: string, key_version: integer });
  const schema: JsonSchema = {
    anyOf: [
      object({ password: string, ttl: { anyOf: [integer, string] }, orphan: boolean, meta: map(string), batch: list(item) }),
    ],
  };

  it('are hashed as their text where the operation reads a text', () => {
    expect(recorded({ password: 123456, meta: { pin: 4711 }, batch: [{ plaintext: 12345678 }] }, schema)).to.deep.equal({
      password: 'hash of 123456',
      meta: { pin: 'hash of 4711' },
      batch: [{ plaintext: 'hash of 12345678' }],
    });
  });

  it('are hashed under a name that is not declared, which may be a misspelled one', () => {
    expect(recorded({ pasword: 123456 }, schema)).to.deep.equal({ 'hash of pasword': 'hash of 123456' });
  });

  it('are shown where the operation declares a number', () => {
    const value = { ttl: 60, orphan: 1, batch: [{ key_version: 2 }] };
    expect(recorded(value, schema)).to.deep.equal(value);
  });
});

it('the numbers of a response are shown', () => {
  expect(JSON.parse(runAtOnce(hashedData({ keys: { 1: 1_700_000_000 }, all: [1] }, hash)))).to.deep.equal({
    keys: { 1: 1_700_000_000 },
    all: [1],
  });
});
