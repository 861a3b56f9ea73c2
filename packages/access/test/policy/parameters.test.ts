import { expect } from 'chai';
import { Acl, permits, permitsItems } from '../../src/policy/acl.ts';
import type { ParameterReading, Parameters } from '../../src/policy/parameters.ts';
import { parsePolicy } from '../../src/policy/policy-text.ts';

const reading: ParameterReading = {
  otherNames: new Map([
    ['hash_algorithm', ['algorithm', 'urlalgorithm']],
    ['algorithm', ['hash_algorithm', 'urlalgorithm']],
    ['urlalgorithm', ['hash_algorithm', 'algorithm']],
  ]),
  inner: new Map([
    ['batch_input', new Set(['input', 'context', 'key_version', 'reference'])],
    ['config', new Set(['max_lease_ttl'])],
  ]),
};

/** Returns whether a rule with these parameters allows a request and its items. */
async function may(rule: string, members: Parameters, inPath: Parameters = {}): Promise<boolean> {
  const acl = new Acl([parsePolicy(`path "p" { capabilities = ["update"] ${rule} }`)]);
  const asked = { ...reading, inPath };
  const isWithin = permits(acl, { capability: 'update', path: 'p', parameters: members, reading: asked });
  return isWithin && permitsItems(acl, 'p', members, asked);
}

const item = { input: 'eA==', context: 'Yw==', key_version: 1 };
const batch = (...items: readonly unknown[]): Parameters => ({ batch_input: items });

describe('the parameters of a rule', () => {
  const rows: readonly (readonly [because: string, rule: string, members: Parameters, granted: boolean, inPath?: Parameters])[] =
    [
      ['a denied name is denied in an item', 'denied_parameters = { context = [] }', batch({ input: 'x' }, item), false],
      ['a denied value is denied in an item', 'denied_parameters = { key_version = [1] }', batch(item), false],
      ['… also as text', 'denied_parameters = { key_version = [1] }', batch({ ...item, key_version: '0x1' }), false],
      ['another value is not', 'denied_parameters = { key_version = [2] }', batch(item, item), true],
      [
        'a value that is not allowed is refused in an item',
        'allowed_parameters = { "*" = [], key_version = [2] }',
        batch(item),
        false,
      ],
      ['one that is allowed is not', 'allowed_parameters = { "*" = [], key_version = [1] }', batch(item), true],
      ['a batch alone is any batch', 'allowed_parameters = { batch_input = [] }', batch(item), true],
      ['… and no single request', 'allowed_parameters = { batch_input = [] }', { input: 'eA==' }, false],
      [
        'an item has only allowed names once one of them is named',
        'allowed_parameters = { batch_input = [], input = [] }',
        batch(item),
        false,
      ],
      [
        '… and its reference',
        'allowed_parameters = { batch_input = [], input = [] }',
        batch({ input: 'x', reference: 'r' }),
        true,
      ],
      ['… which the body has not', 'allowed_parameters = { input = [] }', { input: 'x', reference: 'r' }, false],
      ['a batch is not allowed by its items', 'allowed_parameters = { input = [] }', batch({ input: 'x' }), false],
      ['what is required is required of each item', 'required_parameters = ["context"]', batch(item, { input: 'x' }), false],
      ['… and not beside them', 'required_parameters = ["context"]', batch(item, item), true],
      ['… nor is it enough there', 'required_parameters = ["context"]', { ...batch({ input: 'x' }), context: 'Yw==' }, false],
      ['null is not there', 'required_parameters = ["context"]', batch({ ...item, context: null }), false],
      ['what no item can have is required beside them', 'required_parameters = ["prehashed"]', batch(item), false],
      [
        'a denied name is denied inside an object',
        'denied_parameters = { max_lease_ttl = ["90s"] }',
        { config: { max_lease_ttl: 90 } },
        false,
      ],
      [
        'an object with names of its own is not read',
        'denied_parameters = { max_lease_ttl = [] }',
        { meta: { max_lease_ttl: 'x' } },
        true,
      ],
      ['a value is denied under another name', 'denied_parameters = { hash_algorithm = ["sha1"] }', { algorithm: 'sha1' }, false],
      ['… whichever of them the rule has', 'denied_parameters = { algorithm = ["sha1"] }', { hash_algorithm: 'sha1' }, false],
      ['… and in the path', 'denied_parameters = { hash_algorithm = ["sha1"] }', { input: 'x' }, false, { urlalgorithm: 'sha1' }],
      [
        'a denied name is denied in the path',
        'denied_parameters = { hash_algorithm = [] }',
        { input: 'x' },
        false,
        { urlalgorithm: 'sha2-256' },
      ],
      [
        'a name that the path must have is no parameter',
        'denied_parameters = { name = [] }',
        { input: 'x' },
        true,
        { name: 'k' },
      ],
      ['its value may be denied', 'denied_parameters = { name = ["k"] }', { input: 'x' }, false, { name: 'k' }],
      [
        'allowed values hold under another name',
        'allowed_parameters = { "*" = [], hash_algorithm = ["sha2-256"] }',
        { algorithm: 'sha1' },
        false,
      ],
      [
        '… and in the path',
        'allowed_parameters = { input = [], hash_algorithm = ["sha2-256"] }',
        { input: 'x' },
        false,
        { urlalgorithm: 'sha1' },
      ],
      [
        '… where they let the same value through',
        'allowed_parameters = { input = [], hash_algorithm = ["sha2-256"] }',
        { input: 'x' },
        true,
        { urlalgorithm: 'sha2-256' },
      ],
      [
        'a path without a list of values is free',
        'allowed_parameters = { input = [] }',
        { input: 'x' },
        true,
        { urlalgorithm: 'sha1' },
      ],
      ['a denied mount is denied with a slash', 'denied_parameters = { from = ["payments"] }', { from: '/payments/' }, false],
      [
        'a batch that is no list is left to the operation',
        'denied_parameters = { key_version = [1] }',
        { batch_input: 'x' },
        true,
      ],
      ['denied bytes are denied in other base64', 'denied_parameters = { context = ["Yw=="] }', { context: 'Yx==' }, false],
      ['… broken into lines too', 'denied_parameters = { context = ["Yw=="] }', { context: 'Y\r\nw\n==' }, false],
      ['… also without padding', 'denied_parameters = { context = ["YWJj"] }', batch({ context: 'YW\nJj' }), false],
      ['… also by their beginning', 'denied_parameters = { context = ["YW*"] }', { context: 'Y\nWJj' }, false],
      ['other bytes are not', 'denied_parameters = { context = ["Yw=="] }', { context: 'YQ==' }, true],
      ['an item that is none is left to the operation', 'denied_parameters = { key_version = [1] }', batch(null, 1, 'x'), true],
    ];
  for (const [because, rule, members, granted, inPath] of rows)
    it(`${granted ? 'allow' : 'refuse'}: ${because}: ${rule}`, async () => {
      expect(await may(rule, members, inPath)).to.equal(granted);
    });

  it('are checked in 100,000 items while other work runs', async () => {
    const items = Array.from({ length: 100_000 }, () => item);
    let turns = 0;
    const others = setInterval(() => {
      turns += 1;
    });
    expect(await may('denied_parameters = { key_version = [2, 3, "4*"], input = ["y*"] }', batch(...items))).to.equal(true);
    clearInterval(others);
    expect(turns).to.be.greaterThan(2);
  });
});
