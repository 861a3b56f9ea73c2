import { bool, duration, fields, ignoredField, int, RequestError, text, texts, unsupportedField } from '@transitd/http';
import { expect } from 'chai';
import { changesIn, keptIfOmitted, memberSchemas, membersIn, propertiesIn, sorted } from '../../src/operation/kept-fields.ts';

const schema = {
  ttl: duration('Alias of `token_ttl`', { aliasOf: 'token_ttl' }),
  lease: duration('Another alias of it', { aliasOf: 'token_ttl' }),
  token_ttl: duration('TTL', { property: 'ttlS', initial: 60 }),
  max_ttl: duration('Maximum TTL'),
  num_uses: int('Uses'),
  user_claim: text('Claim'),
  bound_cidrs: texts('Blocks', { dropsEmpty: true }),
  is_set: bool('Set'),
  ignored: ignoredField('string'),
  unsupported: unsupportedField('bool', 'there is none'),
} as const;

const propertiesOf = (body: Parameters<typeof fields>[1]) => propertiesIn(schema, fields(schema, body).values);

describe('the fields of a record', () => {
  it('are properties of their names in camel case, with a unit for durations, or of the names that they declare', () => {
    const body = {
      token_ttl: '1m',
      max_ttl: 2,
      num_uses: '3',
      user_claim: 'sub',
      bound_cidrs: 'a,,b',
      is_set: 'true',
      ignored: 'x',
    };
    expect(propertiesOf(body)).to.deep.equal({
      ...{ ttlS: 60, maxTtlS: 2, numUses: 3, userClaim: 'sub', boundCidrs: ['a', 'b'], isSet: true },
    });
  });

  it('have the value of an alias only if they have none themselves, whatever is declared first', () => {
    expect(propertiesOf({ ttl: 1 }).ttlS).to.equal(1);
    expect(propertiesOf({ ttl: 1, token_ttl: 2 }).ttlS).to.equal(2);
    expect(propertiesOf({ token_ttl: 0, ttl: 0 }).ttlS).to.equal(0);
    expect(propertiesOf({ token_ttl: 1, ttl: 0 }).ttlS).to.equal(1);
    expect(propertiesOf({ ttl: 1, lease: 2 }).ttlS).to.equal(1);
    expect(propertiesOf({ lease: 2 }).ttlS).to.equal(2);
    expect(propertiesOf({}).ttlS).to.equal(undefined);
  });

  it('are refused if they have no value themselves, but another name has one', () => {
    for (const [body, empty, set] of [
      [{ token_ttl: 0, ttl: 1 }, 'token_ttl', 'ttl'],
      [{ ttl: '1s', token_ttl: '' }, 'token_ttl', 'ttl'],
      [{ token_ttl: '0s', ttl: 60 }, 'token_ttl', 'ttl'],
      [{ token_ttl: 0, lease: 60 }, 'token_ttl', 'lease'],
      [{ lease: 60, ttl: 0 }, 'ttl', 'lease'],
    ] as const)
      expect(() => propertiesOf(body), JSON.stringify(body)).to.throw(
        RequestError,
        `${empty} has no value, but ${set} has one: send only one of them`,
      );
  });

  it('are kept in milliseconds under a name that ends with their unit', () => {
    const interval = { interval: duration('Interval', { property: 'intervalMs' }) };
    expect(propertiesIn(interval, fields(interval, { interval: '2s' }).values)).to.deep.equal({ intervalMs: 2000 });
    expect(membersIn(interval, { intervalMs: 1500 })).to.deep.equal({ interval: 1.5 });
  });

  it('of a change are only those that the request sets', () => {
    expect(changesIn(schema, fields(schema, { max_ttl: 0, is_set: false }).values)).to.deep.equal({ maxTtlS: 0, isSet: false });
  });

  it('are shown under their names, without those that the record does not have', () => {
    const record = { ttlS: 60, maxTtlS: 0, numUses: undefined, userClaim: 'sub', boundCidrs: [], isSet: false };
    expect(membersIn(schema, record)).to.deep.equal({
      token_ttl: 60,
      max_ttl: 0,
      user_claim: 'sub',
      bound_cidrs: [],
      is_set: false,
    });
  });

  it('have a schema for each member that is shown', () => {
    expect(Object.keys(memberSchemas(schema))).to.deep.equal([
      ...['token_ttl', 'max_ttl', 'num_uses', 'user_claim', 'bound_cidrs', 'is_set'],
    ]);
  });

  it('have no initial value in an operation that changes an existing record', () => {
    expect(keptIfOmitted(schema).token_ttl).not.to.have.property('initial');
  });

  it('are sorted as the answers of the peers', () => {
    expect(Object.keys(sorted({ b: 1, a_c: 2, a: 3 }))).to.deep.equal(['a', 'a_c', 'b']);
  });

  it('that cannot be set are refused in every spelling of true, and in none of false', () => {
    for (const value of [true, 1, 'T', 'true']) expect(() => propertiesOf({ unsupported: value })).to.throw('there is none');
    for (const value of [false, 0, 'F', 'false', '', null]) expect(propertiesOf({ unsupported: value })).to.be.an('object');
  });
});
