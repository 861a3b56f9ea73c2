import { expect } from 'chai';
import { Acl, itemDenialOf, permits } from '../../src/policy/acl.ts';
import type { Parameters } from '../../src/policy/parameter-values.ts';
import type { ParameterReading } from '../../src/policy/parameters.ts';
import { parsePolicy } from '../../src/policy/policy-text.ts';

const reading: ParameterReading = {
  otherNames: new Map([
    ['hash_algorithm', ['algorithm', 'urlalgorithm']],
    ['algorithm', ['hash_algorithm', 'urlalgorithm']],
    ['urlalgorithm', ['hash_algorithm', 'algorithm']],
    ['mac_length', ['url_mac_length']],
    ['url_mac_length', ['mac_length']],
  ]),
  inner: new Map([
    ['batch_input', new Set(['input', 'context', 'key_version', 'mac_length', 'reference'])],
    ['config', new Set(['max_lease_ttl', 'allowed_managed_keys'])],
  ]),
  split: new Set(['token_policies', 'policies', 'allowed_managed_keys']),
};

/** Returns whether a rule with these parameters allows a request and its items. */
async function may(rule: string, members: Parameters, inPath: Parameters = {}): Promise<boolean> {
  const acl = new Acl([parsePolicy(`path "p" { capabilities = ["update"] ${rule} }`)]);
  const withPath = { ...reading, inPath };
  const isWithin = permits(acl, { capability: 'update', path: 'p', parameters: members, reading: withPath });
  return isWithin && (await itemDenialOf(acl, 'p', members, withPath)) === undefined;
}

const listOf = (count: number): string => Array.from({ length: count }, (_, n) => `"v${n}*"`).join();
/** Spellings of a name that differ in their capitals. */
const spellings = (name: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, n) =>
    [...name].map((letter, at) => (n & (1 << at) ? letter.toUpperCase() : letter)).join(''),
  );
const underAll = (names: readonly string[], value: string): Parameters => Object.fromEntries(names.map((name) => [name, value]));

const item = { input: 'eA==', context: 'Yw==', key_version: 1 };
const batch = (...items: readonly unknown[]): Parameters => ({ batch_input: items });

describe('the parameters of a rule', () => {
  const rows: readonly (readonly [because: string, rule: string, members: Parameters, granted: boolean, inPath?: Parameters])[] =
    [
      [
        'every part of a text that is read as a list must be allowed',
        'allowed_parameters = { "*" = [], token_policies = ["dev-*", "web"] }',
        { token_policies: 'dev-a,admin' },
        false,
      ],
      [
        'the last part too, with spaces around it',
        'allowed_parameters = { "*" = [], token_policies = ["dev-*", "web"] }',
        { token_policies: 'dev-a, web ,admin' },
        false,
      ],
      [
        'an empty part too',
        'allowed_parameters = { "*" = [], token_policies = ["dev-*", "web"] }',
        { token_policies: 'dev-a,' },
        false,
      ],
      [
        'all parts may be allowed by different patterns',
        'allowed_parameters = { "*" = [], token_policies = ["dev-*", "web"] }',
        { token_policies: 'dev-a, web' },
        true,
      ],
      [
        'every text of a list must be allowed',
        'allowed_parameters = { "*" = [], token_policies = ["dev-*", "web"] }',
        { token_policies: ['dev-a', 'admin'] },
        false,
      ],
      [
        'a list of allowed texts is allowed',
        'allowed_parameters = { "*" = [], token_policies = ["dev-*", "web"] }',
        { token_policies: ['dev-a', 'web'] },
        true,
      ],
      [
        'an empty list is not allowed for a pattern',
        'allowed_parameters = { "*" = [], token_policies = ["dev-*", "web"] }',
        { token_policies: [] },
        false,
      ],
      [
        'an empty text is not allowed for a pattern',
        'allowed_parameters = { "*" = [], token_policies = ["dev-*", "web"] }',
        { token_policies: '' },
        false,
      ],
      [
        'a comma in a field that is not a list has no meaning',
        'allowed_parameters = { "*" = [], token_policies = ["dev-*", "web"] }',
        { display_name: 'dev-a,admin' },
        true,
      ],
      [
        'every part counts in a nested object',
        'allowed_parameters = { config = [], allowed_managed_keys = ["dev-*"] }',
        { config: { allowed_managed_keys: 'dev-a,admin' } },
        false,
      ],
      ['a denied name is denied in an item', 'denied_parameters = { context = [] }', batch({ input: 'x' }, item), false],
      ['a denied value is denied in an item', 'denied_parameters = { key_version = [1] }', batch(item), false],
      [
        'a denied value is denied as a text in an item',
        'denied_parameters = { key_version = [1] }',
        batch({ ...item, key_version: '0x1' }),
        false,
      ],
      ['another value in an item is allowed', 'denied_parameters = { key_version = [2] }', batch(item, item), true],
      [
        'a value that is not allowed is refused in an item',
        'allowed_parameters = { "*" = [], key_version = [2] }',
        batch(item),
        false,
      ],
      ['an allowed value is allowed in an item', 'allowed_parameters = { "*" = [], key_version = [1] }', batch(item), true],
      [
        'a value that is not allowed under another name is refused in an item',
        'allowed_parameters = { batch_input = [], url_mac_length = [16] }',
        batch({ ...item, mac_length: 16 }, { ...item, mac_length: 8 }),
        false,
      ],
      [
        'a value that is allowed under another name is allowed in an item',
        'allowed_parameters = { batch_input = [], url_mac_length = [16] }',
        batch({ ...item, mac_length: 16 }, item),
        true,
      ],
      ['allowing batch_input alone allows any item', 'allowed_parameters = { batch_input = [] }', batch(item), true],
      [
        'allowing batch_input alone allows no single request',
        'allowed_parameters = { batch_input = [] }',
        { input: 'eA==' },
        false,
      ],
      [
        'naming one allowed item parameter refuses the others in an item',
        'allowed_parameters = { batch_input = [], input = [] }',
        batch(item),
        false,
      ],
      [
        'an item may always have a reference',
        'allowed_parameters = { batch_input = [], input = [] }',
        batch({ input: 'x', reference: 'r' }),
        true,
      ],
      ['a body may not have a reference by itself', 'allowed_parameters = { input = [] }', { input: 'x', reference: 'r' }, false],
      [
        'allowing item parameters does not allow batch_input',
        'allowed_parameters = { input = [] }',
        batch({ input: 'x' }),
        false,
      ],
      ['a required parameter is required in each item', 'required_parameters = ["context"]', batch(item, { input: 'x' }), false],
      ['a required parameter in each item is enough', 'required_parameters = ["context"]', batch(item, item), true],
      [
        'a required parameter outside the items is not enough',
        'required_parameters = ["context"]',
        { ...batch({ input: 'x' }), context: 'Yw==' },
        false,
      ],
      ['null counts as missing', 'required_parameters = ["context"]', batch({ ...item, context: null }), false],
      [
        'a required parameter that items cannot have is required in the body',
        'required_parameters = ["prehashed"]',
        batch(item),
        false,
      ],
      [
        'a denied name is denied inside an object',
        'denied_parameters = { max_lease_ttl = ["90s"] }',
        { config: { max_lease_ttl: 90 } },
        false,
      ],
      [
        'members of an object with arbitrary names are not checked',
        'denied_parameters = { max_lease_ttl = [] }',
        { meta: { max_lease_ttl: 'x' } },
        true,
      ],
      ['a value is denied under another name', 'denied_parameters = { hash_algorithm = ["sha1"] }', { algorithm: 'sha1' }, false],
      [
        'a value is denied under another name in the other direction',
        'denied_parameters = { algorithm = ["sha1"] }',
        { hash_algorithm: 'sha1' },
        false,
      ],
      [
        'a value is denied under another name in the path',
        'denied_parameters = { hash_algorithm = ["sha1"] }',
        { input: 'x' },
        false,
        { urlalgorithm: 'sha1' },
      ],
      [
        'a denied name is denied in the path',
        'denied_parameters = { hash_algorithm = [] }',
        { input: 'x' },
        false,
        { urlalgorithm: 'sha2-256' },
      ],
      [
        'denying the name of a path parameter does not deny the path',
        'denied_parameters = { name = [] }',
        { input: 'x' },
        true,
        { name: 'k' },
      ],
      [
        'the value of a path parameter may be denied',
        'denied_parameters = { name = ["k"] }',
        { input: 'x' },
        false,
        { name: 'k' },
      ],
      [
        'allowed values apply under another name',
        'allowed_parameters = { "*" = [], hash_algorithm = ["sha2-256"] }',
        { algorithm: 'sha1' },
        false,
      ],
      [
        'allowed values apply in the path',
        'allowed_parameters = { input = [], hash_algorithm = ["sha2-256"] }',
        { input: 'x' },
        false,
        { urlalgorithm: 'sha1' },
      ],
      [
        'an allowed value is allowed in the path',
        'allowed_parameters = { input = [], hash_algorithm = ["sha2-256"] }',
        { input: 'x' },
        true,
        { urlalgorithm: 'sha2-256' },
      ],
      [
        'a path parameter without listed values may have any value',
        'allowed_parameters = { input = [] }',
        { input: 'x' },
        true,
        { urlalgorithm: 'sha1' },
      ],
      ['a denied mount is denied with a slash', 'denied_parameters = { from = ["payments"] }', { from: '/payments/' }, false],
      [
        'a batch that is not a list is left to the operation',
        'denied_parameters = { key_version = [1] }',
        { batch_input: 'x' },
        true,
      ],
      [
        'denied bytes are denied in another base64 form',
        'denied_parameters = { context = ["Yw=="] }',
        { context: 'Yx==' },
        false,
      ],
      [
        'denied bytes are denied with line breaks',
        'denied_parameters = { context = ["Yw=="] }',
        { context: 'Y\r\nw\n==' },
        false,
      ],
      [
        'denied bytes are denied with line breaks and without padding',
        'denied_parameters = { context = ["YWJj"] }',
        batch({ context: 'YW\nJj' }),
        false,
      ],
      [
        'a denied prefix of base64 is denied with line breaks',
        'denied_parameters = { context = ["YW*"] }',
        { context: 'Y\nWJj' },
        false,
      ],
      ['other bytes are allowed', 'denied_parameters = { context = ["Yw=="] }', { context: 'YQ==' }, true],
      ['a denied path is denied with slashes around it', 'denied_parameters = { to = ["a/b"] }', { to: '//a/b/' }, false],
      ['a path with slashes within it is another one', 'denied_parameters = { to = ["a/b"] }', { to: 'a//b' }, true],
      ['a list of 10,000 other values is allowed', 'denied_parameters = { to = ["a"] }', { to: 'b,'.repeat(9_999) }, true],
      ['a longer list may contain any value', 'denied_parameters = { to = ["a"] }', { to: 'b,'.repeat(10_000) }, false],
      ['a list of 10,000 other texts too', 'denied_parameters = { to = ["a"] }', { to: Array(10_000).fill('b') }, true],
      [
        'a longer list may contain any value here too',
        'denied_parameters = { to = ["a"] }',
        { to: Array(10_001).fill('b') },
        false,
      ],
      ['a text of a million characters is compared', 'denied_parameters = { to = ["a"] }', { to: 'b'.repeat(2 ** 20) }, true],
      ['a longer text may equal any value', 'denied_parameters = { to = ["a"] }', { to: 'b'.repeat(2 ** 20 + 1) }, false],
      ['so may texts of more characters', 'denied_parameters = { to = ["a"] }', { to: ['b', 'b'.repeat(2 ** 20)] }, false],
      ['1,000 values are compared with 100', `denied_parameters = { to = [${listOf(100)}] }`, { to: 'b,'.repeat(999) }, true],
      ['10,000 values may equal any of 500', `denied_parameters = { to = [${listOf(500)}] }`, { to: 'b,'.repeat(9_999) }, false],
      [
        'many values may equal any value in an item too',
        `denied_parameters = { context = [${listOf(500)}] }`,
        batch({ context: 'b,'.repeat(9_999) }),
        false,
      ],
      [
        'so may many values under one name in different letters',
        'denied_parameters = { reference = ["a"] }',
        underAll(spellings('reference', 20), 'b,'.repeat(9_999)),
        false,
      ],
      [
        'and few values under as many names not',
        'denied_parameters = { reference = ["a"] }',
        underAll(spellings('reference', 500), 'b,'.repeat(9)),
        true,
      ],
      [
        'and many values in each of many items neither',
        'denied_parameters = { context = ["a"] }',
        batch(...Array.from({ length: 100 }, () => ({ context: 'b,'.repeat(9_999) }))),
        true,
      ],
      [
        'many values are not compared with many allowed ones',
        `allowed_parameters = { token_policies = [${listOf(500)}] }`,
        { token_policies: 'v499,'.repeat(9_000).slice(0, -1) },
        false,
      ],
      [
        'a long value is not searched for many allowed ones',
        `allowed_parameters = { context = [${listOf(500).replaceAll('"v', '"*v')}] }`,
        { context: `v499${'A'.repeat(100_000)}` },
        false,
      ],
      [
        'the beginning of a long value is compared with many allowed ones',
        `allowed_parameters = { context = [${listOf(500)}] }`,
        { context: `v499${'A'.repeat(2 ** 21)}` },
        true,
      ],
      [
        'one value is compared with many allowed ones',
        `allowed_parameters = { token_policies = [${listOf(50_000)}] }`,
        { token_policies: 'v49999' },
        true,
      ],
      [
        'a list of more than 10,000 texts is not allowed part by part',
        'allowed_parameters = { token_policies = ["dev-*"] }',
        { token_policies: Array(10_001).fill('dev-a') },
        false,
      ],
      ['one of several denied values', 'denied_parameters = { to = ["c", "B", "d*"] }', { to: ['a', 'b'] }, false],
      ['none of several denied values', 'denied_parameters = { to = ["c", "B", "d*"] }', { to: ['a', 'e'] }, true],
      [
        'an item that is not an object is left to the operation',
        'denied_parameters = { key_version = [1] }',
        batch(null, 1, 'x'),
        true,
      ],
    ];
  for (const [because, rule, members, granted, inPath] of rows)
    it(`${granted ? 'allow' : 'refuse'}: ${because}: ${rule}`, async () => {
      expect(await may(rule, members, inPath)).to.equal(granted);
    });

  it('are checked in linear time, also in a text of many slashes', async () => {
    const to = `a${'/'.repeat(500_000)}b`;
    expect(await may('denied_parameters = { to = ["a"] }', { to })).to.equal(true);
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
