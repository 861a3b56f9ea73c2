import { expect } from 'chai';
import fc from 'fast-check';
import { any, base64, bool, duration, int, lease, text, textMap, texts } from '../../src/fields/field.ts';
import { fields } from '../../src/fields/fields.ts';
import type { Body, JsonValue } from '../../src/fields/json.ts';
import { RequestError } from '../../src/reply/request-error.ts';

const kinds = ['bool', 'int', 'string', 'duration'] as const;
const about = 'for a test';
const declared = {
  bool: bool(about),
  int: int(about),
  string: text(about),
  duration: duration(about),
  lease: lease(about),
  strings: texts(about),
  texts: textMap(about),
};
type Kind = keyof typeof declared;
const convert = (kind: Kind, value: JsonValue): unknown => fields({ field: declared[kind] }, { field: value }).values.field;
const refusal = (kind: Kind, value: JsonValue): string => {
  try {
    convert(kind, value);
  } catch (error) {
    if (error instanceof RequestError && error.code === 'invalid_field') return error.message;
    throw error;
  }
  throw new Error('was accepted');
};
const bare = (members: object): Body => Object.assign(Object.create(null), members);

describe('fields', () => {
  for (const [kind, accepted] of [
    [
      'bool',
      [
        [true, true],
        [false, false],
        [1, true],
        [0, false],
        ['true', true],
        ['false', false],
        ['t', true],
        ['f', false],
        ['T', true],
        ['F', false],
        ['TRUE', true],
        ['True', true],
        ['FALSE', false],
        ['False', false],
        ['1', true],
        ['0', false],
        ['', false],
        [null, undefined],
      ],
    ],
    [
      'int',
      [
        [5, 5],
        [-5, -5],
        [0, 0],
        ['5', 5],
        ['+5', 5],
        ['-5', -5],
        ['0', 0],
        ['0x1', 1],
        ['-0xFF', -255],
        ['0b101', 5],
        ['0o17', 15],
        ['010', 8],
        [true, 1],
        [false, 0],
        ['', 0],
        [null, undefined],
        [1e3, 1000],
        [9007199254740991, 9007199254740991],
        ['9007199254740991', 9007199254740991],
      ],
    ],
    [
      'string',
      [
        ['x', 'x'],
        ['', ''],
        [5, '5'],
        [1.5, '1.5'],
        [true, '1'],
        [false, '0'],
        [null, ''],
      ],
    ],
    [
      'lease',
      [
        ['90m', 5400],
        ['system', 0],
        ['', undefined],
        [null, undefined],
      ],
    ],
    [
      'duration',
      [
        [3600, 3600],
        [0, 0],
        ['3600', 3600],
        ['+5', 5],
        ['0', 0],
        ['', 0],
        [null, undefined],
        ['1h', 3600],
        ['90m', 5400],
        ['1h30m', 5400],
        ['1.5h', 5400],
        ['.5h', 1800],
        ['1.h', 3600],
        ['3600000ms', 3600],
        ['1h0m0s', 3600],
        ['0s', 0],
        ['0ns', 0],
        ['1d', 86_400],
        ['30d', 2_592_000],
        ['0d', 0],
        ['1500ms', 1],
        ['2000000us', 2],
        ['2000000µs', 2],
        ['2000000μs', 2],
        ['5000000000ns', 5],
        ['+1h', 3600],
        [9_223_372_036, 9_223_372_036],
      ],
    ],
  ] as readonly (readonly [Kind, readonly (readonly [JsonValue, unknown])[]])[]) {
    for (const [value, expected] of accepted) {
      it(`converts ${JSON.stringify(value)} to the ${kind} ${expected}`, () => {
        expect(convert(kind, value)).to.equal(expected);
      });
    }
  }

  for (const [kind, refused] of [
    ['bool', [2, 0.5, -1, 'yes', 'x', 'tRUE', ' true', '2', {}, [], [true]]],
    [
      'int',
      [
        1.5,
        '1e0',
        '1.0',
        ' 1',
        '1 ',
        'x',
        '08',
        '0x',
        '0xg',
        '--1',
        '1_000',
        1e30,
        '9007199254740992',
        '-9007199254740992',
        '1'.repeat(1000),
        [],
        {},
        [1],
      ],
    ],
    ['string', [{}, [], ['x'], { a: 1 }, Number.POSITIVE_INFINITY, -(2 ** 53), 1e30]],
    [
      'duration',
      [
        '2w',
        '1y',
        '1 h',
        'abc',
        3600.5,
        '3600.5',
        true,
        false,
        '0x10',
        'h',
        '1',
        '1x',
        '1h1',
        '1h 1m',
        '.h',
        '-',
        '+',
        '1dd',
        '1.5d',
        '1d1h',
        '500ms',
        '1ns',
        9_223_372_037,
        '9223372037',
        '107000d',
        '2562048h',
        '9'.repeat(60),
        `${'1h'.repeat(100)}`,
        [],
        {},
      ].filter((value) => value !== '1'),
    ],
  ] as readonly (readonly [Kind, readonly JsonValue[]])[]) {
    for (const value of refused) {
      it(`refuses ${JSON.stringify(value).slice(0, 40)} as a ${kind} and names the field`, () => {
        expect(refusal(kind, value)).to.match(/^Field validation failed: error converting input for field "field": ./);
      });
    }
  }

  it('says what is wrong with a negative duration', () => {
    for (const [value, text] of [
      [-3600, '-3600'],
      ['-3600', '-3600'],
      ['-1h', '-3600'],
      ['-1d', '-86400'],
    ] as const) {
      expect(refusal('duration', value)).to.contain(`cannot provide negative value '${text}'`);
    }
  });

  it('never repeats a refused value, which may be a secret', () => {
    for (const kind of kinds) expect(refusal(kind, ['c2VjcmV0'])).to.not.contain('c2VjcmV0');
    expect(refusal('bool', 'c2VjcmV0')).to.not.contain('c2VjcmV0');
  });

  it('accepts lists of strings, or one comma-separated string', () => {
    expect(convert('strings', ['a', 'b,c'])).to.deep.equal(['a', 'b,c']);
    expect(convert('strings', 'a, b')).to.deep.equal(['a', 'b']);
    expect(refusal('strings', [1])).to.contain('expected a list of strings');
    expect(refusal('strings', ','.repeat(10_000))).to.contain('more than 10000 strings');
    expect(refusal('strings', Array(10_001).fill('x'))).to.contain('more than 10000 strings');
  });

  const lists = { kept: texts(about), dropping: texts(about, { dropsEmpty: true }), limiting: texts(about, { limits: true }) };
  for (const [sent, kept, dropping, limiting] of [
    ['', [], [], []],
    [[], [], [], []],
    [['a', ''], ['a', ''], ['a'], ['a']],
    ['a, ', ['a', ''], ['a'], ['a']],
    [[''], [''], [], 'refused'],
    [['', ''], ['', ''], [], 'refused'],
    [' , ', ['', ''], [], 'refused'],
  ] as const)
    it(`never treats ${JSON.stringify(sent)} as no limit, unless it is an empty list`, () => {
      expect(fields(lists, { kept: sent, dropping: sent }).values).to.deep.include({ kept, dropping });
      const limited = () => fields(lists, { limiting: sent }).values.limiting;
      if (limiting === 'refused') expect(limited).to.throw(RequestError, 'field "limiting": it has only empty strings');
      else expect(limited()).to.deep.equal(limiting);
    });

  it('accepts an object with string values', () => {
    expect(convert('texts', { a: 'b', c: 1 })).to.deep.equal({ a: 'b', c: '1' });
    expect(convert('texts', []), 'an empty object as PHP writes it').to.deep.equal({});
    expect(refusal('texts', ['a'])).to.contain('expected an object with string values');
    expect(refusal('texts', { a: [] })).to.contain('expected an object with string values');
    expect(refusal('texts', 'a=b')).to.contain('expected an object with string values');
  });

  it('accepts texts of 64 Ki characters, and longer ones only if they are data', () => {
    const [longest, longer] = ['x'.repeat(65_536), 'x'.repeat(65_537)];
    expect(convert('string', longest)).to.equal(longest);
    for (const [kind, value] of [
      ['string', longer],
      ['strings', longer],
      ['strings', ['a', longer]],
      ['strings', `a,${longer}`],
      ['texts', { a: longer }],
      ['texts', { [longer]: 'a' }],
    ] as const)
      expect(refusal(kind, value)).to.match(/for field "field": more than 65536 characters$/);
    for (const data of [base64(about), text(about, { long: true })])
      expect(fields({ data }, { data: longer }).values.data).to.equal(longer);
  });

  it('leaves values of kind any as they were sent', () => {
    const items = [{ plaintext: 'eA==' }];
    expect(fields({ batch_input: any(about) }, { batch_input: items }).values.batch_input).to.equal(items);
  });

  it('returns undefined for absent fields, and nothing inherited', () => {
    const { values } = fields({ constructor: declared.string, toString: declared.string }, bare({}));
    expect([values.constructor, values.toString]).to.deep.equal([undefined, undefined]);
  });

  it('converts every member first, so that an invalid unused member is refused too', () => {
    expect(() => fields({ a: declared.int, b: declared.bool }, { a: 1, b: 'maybe' })).to.throw(RequestError, 'field "b"');
  });

  it('warns about unknown members, sorted by name', () => {
    expect(fields({ a: declared.int }, { b: 1, a: 1, 'B c': {} }).warnings).to.deep.equal([
      'Endpoint ignored these unrecognized parameters: [B c b]',
    ]);
  });

  it('takes an empty text as no number only where the field says so, and as 0 elsewhere', () => {
    const read = (field: ReturnType<typeof int>) => fields({ a: field }, { a: '' }).values.a;
    expect([read(int('a')), read(int('a', { dropsEmpty: true }))]).to.deep.equal([0, undefined]);
  });

  it('does not warn if every member had an effect', () => {
    expect(fields({ a: declared.int }, { a: null }).warnings).to.deep.equal([]);
  });

  it('prefers a path parameter to a member of the same name, and warns', () => {
    const { values, warnings } = fields(
      { source: declared.string, bytes: declared.int },
      { source: {}, bytes: '5' },
      { source: 'all' },
    );
    expect({ ...values }).to.deep.equal({ source: 'all', bytes: 5 });
    expect(warnings).to.deep.equal([
      "Endpoint replaced the value of these parameters with the values captured from the endpoint's path: [source]",
    ]);
  });

  it('converts path parameters as well', () => {
    expect(fields({ bytes: declared.int }, {}, { bytes: '64' }).values.bytes).to.equal(64);
    expect(() => fields({ bytes: declared.int }, {}, { bytes: 'x' })).to.throw(RequestError, 'field "bytes"');
  });

  it('treats __proto__ like any other unknown member', () => {
    const { values, warnings } = fields({ derived: declared.bool }, JSON.parse('{"__proto__":{"derived":true}}'));
    expect(values.derived).to.equal(undefined);
    expect(warnings).to.deep.equal(['Endpoint ignored these unrecognized parameters: [__proto__]']);
  });

  it('keeps a warning short however many and long the names are', () => {
    const body = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`${'n'.repeat(1000)}${i}`, 1]));
    const [warning = ''] = fields({}, body).warnings;
    expect(warning.length).to.be.below(6_000);
    expect(warning).to.match(/ and 9968 more$/);
  });

  it('throws only RequestErrors, and returns each kind as its type', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...kinds),
        fc.oneof(fc.jsonValue(), fc.string(), fc.stringMatching(/^[-+]?[0-9.]{1,8}[a-zµ]{0,2}[0-9]?$/)),
        (kind, value) => {
          try {
            const result = convert(kind, value as JsonValue);
            if (result === undefined) return;
            if (kind === 'bool') expect(result).to.be.a('boolean');
            else if (kind === 'string') expect(result).to.be.a('string');
            else expect(Number.isSafeInteger(result)).to.equal(true);
            if (kind === 'duration') expect(result).to.be.at.least(0);
          } catch (error) {
            expect(error).to.be.instanceOf(RequestError);
          }
        },
      ),
      { numRuns: 3_000 },
    );
  });

  it('parses every duration in the form that the API returns', () => {
    fc.assert(
      fc.property(fc.nat(2_000), fc.nat(59), fc.nat(59), (h, m, s) => {
        expect(convert('duration', `${h}h${m}m${s}s`)).to.equal(h * 3600 + m * 60 + s);
      }),
    );
  });
});
