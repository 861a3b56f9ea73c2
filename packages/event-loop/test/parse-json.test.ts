import { expect } from 'chai';
import fc from 'fast-check';
import {
  checkJsonLimits,
  endOfJsonString,
  type JsonRules,
  parseJsonInSlices,
  plainCharsMax,
  tooManyPlain,
} from '../src/parse-json.ts';
import { runAtOnce } from '../src/steps.ts';

const rules: JsonRules = {
  depthMax: 20,
  valuesMax: 10_000,
  membersMax: () => 100,
  parse: (piece) => JSON.parse(piece),
  refusal: (reason) => new Error(reason),
};
/** Splits even a short text, because a piece holds a single value. */
const piecemeal = (text: string, more: Partial<JsonRules> = {}): Promise<unknown> =>
  parseJsonInSlices(text, { ...rules, pieceValuesMax: 1, ...more });
const refusal = (parsed: Promise<unknown>): Promise<string> =>
  parsed.then(
    () => 'was accepted',
    (error: Error) => error.message,
  );

/** The result of `JSON.parse`, or that it refuses the text. */
function expected(text: string): { readonly value: unknown } | 'refused' {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return 'refused';
  }
}

describe('parseJsonInSlices', () => {
  it('returns what JSON.parse returns, with pieces of any size and blanks anywhere', async () => {
    const text = fc
      .tuple(fc.jsonValue({ maxDepth: 6 }), fc.constantFrom(undefined, 1, '\t'))
      .map(([value, space]) => JSON.stringify(value, undefined, space));
    await fc.assert(
      fc.asyncProperty(
        text,
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 20 }),
        async (json, pieceValuesMax, pieceCharsMax) => {
          expect(await parseJsonInSlices(json, { ...rules, pieceValuesMax, pieceCharsMax })).to.deep.equal(JSON.parse(json));
        },
      ),
    );
  });

  it('parses no more values at once than a piece may have', async () => {
    let most = 0;
    const parse = (piece: string): unknown => {
      most = Math.max(most, piece.split(/[,[]/).length - 1);
      return JSON.parse(piece);
    };
    const list = `[${Array(20).fill('[1,2,3]').join()}]`;
    await parseJsonInSlices(list, { ...rules, parse, pieceValuesMax: 8 });
    // The brackets around the items of a piece are not values of the text.
    expect(most - 1).to.be.within(4, 8);
  });

  it('keeps the last of several members of one name, however the name is written', async () => {
    const text = '[{"\\u006b":"first","\\"":1.5,"\\u006b":true,"\\\\":{"z":null}},{"k":1,"\\u006b":2}]';
    for (let time = 0; time < 3; time++)
      expect(await parseJsonInSlices(text, rules)).to.deep.equal([{ k: true, '"': 1.5, '\\': { z: null } }, { k: 2 }]);
  });

  it('accepts and refuses what JSON.parse accepts and refuses', async () => {
    const pieces = [
      '{',
      '}',
      '[',
      ']',
      '"',
      '\\',
      ':',
      ',',
      '1',
      '-',
      'e',
      '.',
      'null',
      'true',
      ' ',
      '\n',
      '"a":',
      '"__proto__":',
      '[]',
      '{}',
      '\u00a0',
      '\u0001',
    ];
    const text = fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((parts) => parts.join(''));
    const framed = fc.tuple(fc.constantFrom('', '[', '{"a":', '[[1,2],', '{"x":1,'), text, fc.constantFrom('', ']', '}', ',3]'));
    await fc.assert(
      fc.asyncProperty(
        framed,
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 1, max: 8 }),
        async (parts, pieceValuesMax, pieceCharsMax) => {
          const json = parts.join('');
          const value = await parseJsonInSlices(json, { ...rules, pieceValuesMax, pieceCharsMax }).then(
            (parsed) => ({ value: parsed }),
            () => 'refused',
          );
          expect(value, JSON.stringify(json)).to.deep.equal(expected(json));
        },
      ),
      { numRuns: 5_000 },
    );
  });

  it('keeps the last of several members with one name, and __proto__ as an own member', async () => {
    const parsed = (await piecemeal('{"a":1,"__proto__":{"b":2},"a":[3]}')) as object;
    expect(Object.entries(parsed)).to.deep.equal([
      ['a', [3]],
      ['__proto__', { b: 2 }],
    ]);
    expect(Object.getPrototypeOf(parsed)).to.equal(Object.prototype);
  });

  for (const [what, filling] of [
    ['blanks', `${' '.repeat(60_000)}""${' '.repeat(60_000)}`],
    ['blanks around a colon', `{"a"${' '.repeat(60_000)}:${' '.repeat(60_000)}1}`],
    ['a long string', `"${'\\"'.repeat(50_000)}",1`],
    ['two long strings', `"${'a'.repeat(70_000)}",{"b":"${'c'.repeat(70_000)}"},1`],
    ['a long number', `"${'a'.repeat(70_000)}",${'1'.repeat(60_000)}`],
  ] as const)
    it(`parses a text that is long because of ${what}, at any depth`, async () => {
      for (const depth of [1, 2, 15]) {
        const text = `${'['.repeat(depth)}${filling}${']'.repeat(depth)}`;
        expect(await parseJsonInSlices(text, rules)).to.deep.equal(JSON.parse(text));
      }
    });

  const long = ' '.repeat(plainCharsMax + 2);
  for (const { what, text, says } of [
    { what: 'too many values', text: `[${'1,'.repeat(10_000)}1]`, says: 'more than 10000 values' },
    { what: 'too many empty values', text: `[${'[],'.repeat(10_000)}1]`, says: 'more than 10000 values' },
    { what: 'too deep nesting', text: `${'['.repeat(21)}${']'.repeat(21)}`, says: 'more than 20 levels of nesting' },
    {
      what: 'too many members',
      text: `{${Array.from({ length: 101 }, (_, i) => `"${i}":1`).join()}}`,
      says: 'more than 100 members in an object',
    },
    { what: 'blanks before a text', text: `${long}1`, says: tooManyPlain },
    { what: 'blanks after a text', text: `[1]${long}`, says: tooManyPlain },
    { what: 'blanks in an object', text: `{"a":1,${long}"b":2}`, says: tooManyPlain },
    { what: 'blanks in a list', text: `[${long}1]`, says: tooManyPlain },
    { what: 'a long number', text: `[1,${long.replaceAll(' ', '1')}]`, says: tooManyPlain },
    { what: 'many strings without a comma, at the second one', text: `{"a":[${'""'.repeat(70_000)}`, says: 'invalid syntax' },
    { what: 'many colons after an escape, at the second one', text: `{"\\n":[${'"b":'.repeat(70_000)}`, says: 'invalid syntax' },
    { what: 'a truncated array', text: '[1,[2,', says: 'unexpected end of input' },
    { what: 'a truncated string', text: '[1,"', says: 'unexpected end of input' },
    { what: 'a name without a value', text: '{"a":1,"b"', says: 'unexpected end of input' },
  ])
    for (const pieceValuesMax of [1, 1_000_000])
      it(`refuses ${what}, in ${pieceValuesMax === 1 ? 'pieces' : 'one piece'}`, async () => {
        expect(await refusal(piecemeal(text, { pieceValuesMax }))).to.equal(says);
      });

  it('yields to the event loop, even when every object has a new member name', async () => {
    let turns = 0;
    let done = false;
    const count = (): void => {
      turns += 1;
      if (!done) setImmediate(count);
    };
    setImmediate(count);
    const members = Array.from({ length: 100_000 }, (_, i) => `{"m${i}":[${i},"x"]}`);
    const parsed = await parseJsonInSlices(`{"x":{"y":[${members.join()}]}}`, { ...rules, valuesMax: 1_000_000 });
    done = true;
    expect((parsed as { x: { y: unknown[] } }).x.y).to.have.length(100_000);
    expect(turns).to.be.greaterThan(3);
  });
});

describe('the end of a JSON string', () => {
  it('is found behind any escapes, whatever follows', () => {
    const parts = fc.array(fc.constantFrom('a', '"', '\\', '\\"', '\n', 'é'), { maxLength: 12 });
    fc.assert(
      fc.property(parts, parts, (inside, after) => {
        const text = JSON.stringify(inside.join(''));
        expect(endOfJsonString(`[${text}${after.join('')}`, 1)).to.equal(text.length);
        expect(endOfJsonString(text.slice(0, -1), 0), 'of a string that does not end').to.equal(-1);
      }),
    );
  });
});

describe('checkJsonLimits', () => {
  const limits = {
    depthMax: 4,
    valuesMax: 12,
    containersMax: 6,
    membersMax: (depth: number): number => (depth === 2 ? 4 : 3),
    textCharsMax: 10,
    refusal: (reason: string) => new Error(reason),
  };
  const verdict = (text: string, more: Partial<typeof limits> = {}): string => {
    try {
      runAtOnce(checkJsonLimits(text, { ...limits, ...more }));
      return 'accepted';
    } catch (error) {
      return (error as Error).message;
    }
  };

  for (const [text, expected] of [
    ['{"a":[{"b":{}}]}', 'accepted'],
    ['{"a":[{"b":[{}]}]}', 'more than 4 levels of nesting'],
    [`[${'0,'.repeat(11)}0]`, 'accepted'],
    [`[${'0,'.repeat(12)}0]`, 'more than 12 values'],
    ['[[],[],[],[],[]]', 'accepted'],
    ['[[],[],[],[],[],[]]', 'more than 6 arrays and objects'],
    ['{"a":0,"b":0,"c":0}', 'accepted'],
    ['{"a":0,"b":0,"c":0,"d":0}', 'more than 3 members in an object'],
    ['[{"a":0,"b":0,"c":0,"d":0}]', 'accepted'],
    ['[{"a":0,"b":0,"c":0,"d":0,"e":0}]', 'more than 4 members in an object'],
    ['[",,,,,,,,"]', 'accepted'],
    ['["\\",[[[[["]', 'accepted'],
    ['["12345678901"]', 'a string or number of more than 10 characters'],
    ['[12345678901]', 'a string or number of more than 10 characters'],
    ['[0,"endless endless', 'a string or number of more than 10 characters'],
  ] as const)
    it(`${expected === 'accepted' ? 'accepts' : 'refuses'} ${text}`, () => expect(verdict(text)).to.equal(expected));

  it('counts values, members and levels as the parser does', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.jsonValue({ maxDepth: 6 }).map((value) => JSON.stringify(value)),
        fc.record({ depthMax: fc.integer({ min: 1, max: 6 }), valuesMax: fc.integer({ min: 1, max: 12 }) }),
        fc.integer({ min: 1, max: 4 }),
        async (text, each, members) => {
          const all = { ...each, membersMax: () => members };
          const parsed = await refusal(piecemeal(text, all));
          const checked = verdict(text, { ...all, containersMax: text.length, textCharsMax: text.length });
          expect(checked === 'accepted').to.equal(parsed === 'was accepted');
        },
      ),
    );
  });

  for (const [what, unit] of [
    ['values', '0,'],
    ['one string', 'ab'],
    ['one string of escapes', '\\\\'],
  ] as const)
    it(`scans at most 16 KiB of ${what} in one step`, () => {
      const text = `["${unit === '0,' ? '",' : ''}${unit.repeat(512 * 1024)}`;
      const most = { valuesMax: text.length, textCharsMax: text.length };
      let steps = 0;
      for (const _ of checkJsonLimits(text, { ...limits, ...most })) steps += 1;
      expect(steps).to.be.at.least(Math.floor(text.length / (16 * 1024)) - 1);
    });
});
