import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import fc from 'fast-check';
import { codePoint } from '../../../../test/code-points.ts';
import { type Body, jsonDepthMax, jsonMembersMax, jsonValuesMax, parseBody, queryBody } from '../../src/fields/json.ts';
import { RequestError } from '../../src/reply/request-error.ts';

const form = 'application/x-www-form-urlencoded';
const parse = (text: string | Buffer, contentType?: string): Body => {
  const body = parseBody(Buffer.from(text as string), contentType);
  if (body instanceof Promise) throw new Error('was read in turns');
  return body;
};
/** An input of the given size. */
const parseAny = async (text: string, contentType?: string): Promise<Body> => parseBody(Buffer.from(text), contentType);
const refusalOfAny = (text: string): Promise<string> =>
  parseAny(text).then(
    () => 'was accepted',
    (error: unknown) => {
      if (error instanceof RequestError && error.code === 'malformed_body') return error.message;
      throw error;
    },
  );
const refusal = (text: string | Buffer, contentType?: string): string => {
  try {
    parse(text, contentType);
  } catch (error) {
    if (error instanceof RequestError && error.code === 'malformed_body') return error.message;
    throw error;
  }
  throw new Error('was accepted');
};
const nested = (depth: number): string => `${'{"a":'.repeat(depth - 1)}{}${'}'.repeat(depth - 1)}`;

describe('parseBody', () => {
  for (const { text, type, expected, because } of [
    { text: '', expected: {}, because: 'an empty body is no members' },
    { text: ' \r\n\t', expected: {}, because: 'blanks are an empty body' },
    { text: 'null', expected: {}, because: 'the usual command-line client sends it' },
    { text: ' null\n', expected: {}, because: 'blanks around it do not count' },
    { text: 'null', type: form, expected: {}, because: 'curl -d sets a form type' },
    { text: '', type: form, expected: {}, because: 'an empty form' },
    { text: '{}', expected: {}, because: 'an empty object' },
    { text: '{"a":1}', type: 'text/plain', expected: { a: 1 }, because: 'the content type does not count' },
    { text: '{"a":1}', type: form, expected: { a: 1 }, because: 'it begins like JSON' },
    { text: '  {"a":1}', type: `${form}; charset=utf-8`, expected: { a: 1 }, because: 'it begins like JSON after blanks' },
    { text: '{"a":1,"a":2}', expected: { a: 2 }, because: 'the last one counts' },
    { text: '{"a":null}', expected: { a: null }, because: 'null is kept for the fields to judge' },
    { text: '{"ü":"🔑"}', expected: { ü: '🔑' }, because: 'UTF-8' },
    { text: '{"a":"\\ud83d\\udd11"}', expected: { a: '🔑' }, because: 'a whole surrogate pair' },
    { text: '{"a":"[[[[\\"{{{{\\\\"}', expected: { a: '[[[["{{{{\\' }, because: 'brackets in strings are no nesting' },
    { text: 'a=1&b=x+y&c=%C3%BC', type: form, expected: { a: '1', b: 'x y', c: 'ü' }, because: 'a form' },
    { text: 'a=1', type: 'Application/X-WWW-Form-Urlencoded ; x', expected: { a: '1' }, because: 'media types have no case' },
    { text: 'a=1&a=2', type: form, expected: { a: '2' }, because: 'the last one counts in a form too' },
    { text: 'a', type: form, expected: { a: '' }, because: 'a form field without a value' },
    { text: '&&a=+b=%2B&=c&', type: form, expected: { a: ' b=+', '': 'c' }, because: 'only the first = separates' },
  ]) {
    it(`reads ${JSON.stringify(text)} (${type ?? 'no type'}): ${because}`, () => {
      expect({ ...parse(text, type) }).to.deep.equal(expected);
    });
  }

  for (const { text, type, message } of [
    { text: '{', message: /unexpected end of input/ },
    { text: '{"plaintext": ', message: /unexpected end of input/ },
    { text: '{"a":"b', message: /unexpected end of input/ },
    { text: '{"a":1}x', message: /invalid syntax/ },
    { text: '{"a":1}{}', message: /invalid syntax/ },
    { text: '{"a":1},', message: /invalid syntax/ },
    { text: '{a:1}', message: /invalid syntax/ },
    { text: "{'a':1}", message: /invalid syntax/ },
    { text: '{"a":1,}', message: /invalid syntax/ },
    { text: '{"a":01}', message: /invalid syntax/ },
    { text: '{"a":NaN}', message: /invalid syntax/ },
    { text: '{"a":"\n"}', message: /invalid syntax/ },
    { text: '{"a":1}\0', message: /invalid syntax/ },
    { text: '\ufeff{}', message: /invalid syntax/ },
    { text: 'hello', message: /invalid syntax/ },
    { text: 'a=1', type: 'application/json', message: /invalid syntax/ },
    { text: 'a=1', message: /invalid syntax/ },
    { text: 'nullx', message: /invalid syntax/ },
    { text: '[', type: form, message: /unexpected end of input/ },
    { text: '[]', message: /json: cannot unmarshal array into/ },
    { text: '["a"]', message: /json: cannot unmarshal array into/ },
    { text: '"text"', message: /json: cannot unmarshal string into/ },
    { text: '5', message: /json: cannot unmarshal number into/ },
    { text: 'true', message: /json: cannot unmarshal bool into/ },
    { text: '{"a":"\\ud800"}', message: /surrogate/ },
    { text: '{"a":{"b":["\\uDC00x"]}}', message: /surrogate/ },
    { text: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), message: /not UTF-8/ },
    { text: Buffer.from([0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x3a, 0x31, 0x7d]), message: /not UTF-8/ },
    { text: Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]), message: /not UTF-8/ },
    { text: Buffer.from('{}', 'utf16le'), message: /invalid syntax/ },
    { text: nested(jsonDepthMax + 1), message: /more than 64 levels/ },
    { text: `{"a":${'['.repeat(jsonDepthMax)}`, message: /more than 64 levels/ },
  ] as { text: string | Buffer; type?: string; message: RegExp }[]) {
    it(`refuses ${JSON.stringify(text.toString().slice(0, 40))} (${type ?? 'no type'})`, () => {
      expect(refusal(text, type))
        .to.match(/^failed to decode JSON input: /)
        .and.match(message);
    });
  }

  it('refuses a name with a lone surrogate', async () => {
    expect(await refusalOfAny('{"\\ud800":1}')).to.match(/surrogate/);
  });

  it('keeps the last of several members of one name, however the name is written', async () => {
    const text = '{"\\u006b":"first","\\"":1.5,"\\u006b":true,"\\\\":{"z":null,"\\u007a":1}}';
    for (let time = 0; time < 3; time++)
      expect({ ...(await parseAny(text)) }).to.deep.equal({ k: true, '"': 1.5, '\\': { z: 1 } });
  });

  const blanks = (count: number): string => ' \t\r\n'.repeat(count / 4);
  for (const [where, text] of [
    ['before', `${blanks(1_048_580)}{}`],
    ['after', `{}${blanks(1_048_580)}`],
    ['instead of', blanks(1_048_580)],
    ['in', `{${blanks(1_048_580)}}`],
    ['between members of', `{"a":1,${blanks(1_048_580)}"b":2}`],
    ['before a value of', `{"a":${blanks(1_048_580)}"b"}`],
    ['in a list of', `{"a":[1${blanks(1_048_580)}]}`],
    ['behind names with escapes of', `{"\\n":1,"a":[${blanks(1_048_580)}]}`],
    ['behind many values of', `{"a":[${'1,'.repeat(2000)}1],"b":{"c":[${blanks(1_048_580)}]}}`],
    ['as a number of', `{"a":${'1'.repeat(1_048_580)}}`],
    ['as a number behind many values of', `{"a":[${'1,'.repeat(2000)}${'1'.repeat(1_048_580)}]}`],
  ] as const)
    for (const type of [undefined, form])
      it(`refuses 1,048,580 blanks or digits ${where} a body (${type ?? 'no type'})`, async () => {
        const outcome = await Promise.resolve()
          .then(() => parseBody(Buffer.from(text), type))
          .catch((error: Error) => error.message);
        expect(outcome).to.match(/JSON input: more than 1048576 characters in a row outside of strings$/);
      });

  it('accepts fewer blanks and any long string, and reads a text with many blanks in turns', async () => {
    const [some, string] = [blanks(65_000), 'x'.repeat(100_000)];
    for (const value of ['b', string])
      expect({ ...parse(`${some}{"a"${some}:${some}"${value}"${some}}`) }).to.deep.equal({ a: value });
    const members = Array.from({ length: 10 }, (_, i) => `"${i}":${some}${i}`).join();
    const read = parseBody(Buffer.from(`{${members}}`), undefined);
    expect(read).to.be.instanceOf(Promise);
    expect({ ...(await read) }).to.deep.equal(Object.fromEntries(Array.from({ length: 10 }, (_, i) => [i, i])));
  });

  it('refuses commas outside of the body with the same message, however many bodies had some', () => {
    const refusals = new Set(Array.from({ length: 2 * jsonMembersMax.nested }, () => refusal('{"a":1},')));
    expect([...refusals]).to.deep.equal(['failed to decode JSON input: invalid syntax']);
  });

  it('refuses a form whose encoding is broken', () => {
    expect(refusal('a=%', form)).to.match(/form/);
    expect(refusal('a=%FF', form)).to.match(/form/);
  });

  it('accepts the longest batch with every member that an item can have', async () => {
    const item = { plaintext: '', context: '', associated_data: '', key_version: 1, nonce: '', reference: '' };
    const text = JSON.stringify({ batch_input: Array(100_000).fill(item), key_version: 1, partial_failure_response_code: 200 });
    const read = (await parseAny(text))['batch_input'] as readonly unknown[];
    expect([read.length, read.at(-1)]).to.deep.equal([100_000, item]);
  });

  const members = (count: number): string => Array.from({ length: count }, (_, i) => `"${i}":1`).join();
  const within = (count: number): string => `{"a":[{${members(count)}}]}`;
  for (const { name, text, message } of [
    { name: 'values', text: `{"a":[${'1,'.repeat(jsonValuesMax)}1]}`, message: /more than 1000000 values/ },
    { name: 'empty values', text: `{"a":[${'[],'.repeat(jsonValuesMax / 2)}1]}`, message: /more than 1000000 values/ },
    { name: 'members', text: `{${members(jsonMembersMax.body + 1)}}`, message: /more than 1000 members in an object/ },
    { name: 'members of a nested object', text: within(jsonMembersMax.nested + 1), message: /more than 64 members in an object/ },
    {
      name: 'members behind a nested object',
      text: `{"a":[1,{${members(jsonMembersMax.nested)},"x":[1,{}],"y":1}]}`,
      message: /more than 64 members in an object/,
    },
  ])
    it(`refuses too many ${name}`, async () => {
      expect(await refusalOfAny(text)).to.match(message);
    });

  it('accepts the maximum number of members, at the top level and nested, next to long arrays', async () => {
    expect(Object.keys(await parseAny(`{${members(jsonMembersMax.body)}}`))).to.have.length(jsonMembersMax.body);
    expect(parse(within(jsonMembersMax.nested))).to.have.property('a');
    expect(await parseAny(`{"a":[${'{"b":1},'.repeat(5000)}[${'1,'.repeat(5000)}1]]}`)).to.have.property('a');
  });

  it('refuses a form of too many fields', () => {
    expect(Object.keys(parse(Array.from({ length: jsonMembersMax.body }, (_, i) => `f${i}=1`).join('&'), form))).to.have.length(
      1000,
    );
    expect(refusal('a&'.repeat(jsonMembersMax.body), form)).to.match(/more than 1000 fields/);
  });

  it('accepts the maximum nesting depth', () => {
    expect(parse(nested(jsonDepthMax))).to.have.property('a');
  });

  it('refuses a million levels without deep recursion', () => {
    expect(refusal(`{"a":${'['.repeat(1_000_000)}`)).to.match(/levels/);
    expect(refusal(`{"a":${'{"a":'.repeat(1_000_000)}`)).to.match(/levels/);
  });

  it('never quotes the body in an error, since a body may hold secrets', () => {
    for (const text of [
      'secret',
      '{"plaintext":"c2VjcmV0"secret',
      '{"a":secret}',
      '["secret"] secret',
      '{"secret',
      '{"secret" 1}',
    ]) {
      expect(refusal(text)).to.not.contain('secret');
    }
  });

  it('is as strict, and reveals as little, for a body that is parsed in steps', async () => {
    const many = `"x":[${'1,'.repeat(2_000)}1]`;
    for (const [text, message] of [
      [`{${many},"a":secret}`, /: invalid syntax$/],
      [`{${many}`, /: unexpected end of input$/],
      [`{${many}} secret`, /: invalid syntax$/],
      [`{${many},"a":"\\ud800"}`, /surrogate/],
      [`{${many},"\\ud800":1}`, /surrogate/],
      [`[${many.slice(4)}]`, /cannot unmarshal array/],
      [`{"secret":${nested(jsonDepthMax)},${many}}`, /more than 64 levels/],
      [`{${many},"secret":${nested(jsonDepthMax)}}`, /more than 64 levels/],
    ] as const) {
      const told = await refusalOfAny(text);
      expect(told, text.slice(-30)).to.match(message);
      expect(told).not.to.include('secret');
    }
    const body = await parseAny(`{${many},"__proto__":1,"a":null}`);
    expect([Object.getPrototypeOf(body), Object.keys(body), body['a']]).to.deep.equal([null, ['x', '__proto__', 'a'], null]);
  });

  it('keeps __proto__ and constructor as plain members of an object without a prototype', () => {
    const body = parse('{"__proto__":{"derived":true},"constructor":1}');
    expect(Object.getPrototypeOf(body)).to.equal(null);
    expect(Object.hasOwn(body, '__proto__')).to.equal(true);
    expect(body['derived']).to.equal(undefined);
    expect(body['constructor']).to.equal(1);
    expect(parse('{}')['constructor']).to.equal(undefined);
    expect(({} as Record<string, unknown>)['derived']).to.equal(undefined);
  });

  it('returns forms without a prototype too', () => {
    const body = parse('__proto__=1', form);
    expect([Object.getPrototypeOf(body), Object.entries(body), body['toString']]).to.deep.equal([
      null,
      [['__proto__', '1']],
      undefined,
    ]);
  });

  it('returns the same as JSON.parse for every object of allowed depth', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(
          fc.string({ unit: codePoint }).filter((name) => name.isWellFormed()),
          fc.jsonValue({ maxDepth: 6 }),
        ),
        async (object) => {
          const text = JSON.stringify(object);
          if (/\\u[dD][89a-fA-F]/.test(text)) return;
          expect({ ...(await parseAny(text)) }).to.deep.equal({ ...JSON.parse(text) });
        },
      ),
    );
  });

  it('throws only RequestErrors, and accepts nothing deeper than the limit', async () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      '"',
      '\\',
      ':',
      ',',
      'a',
      '1',
      'null',
      ' ',
      '\\"',
      '{"a":',
      '\\ud800',
      '=',
      '%',
      '&',
    );
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.uint8Array(),
          fc.array(piece).map((pieces) => Buffer.from(pieces.join(''))),
        ),
        fc.constantFrom(undefined, form),
        async (bytes, type) => {
          try {
            await parseBody(Buffer.from(bytes), type);
          } catch (error) {
            expect(error).to.be.instanceOf(RequestError);
          }
        },
      ),
      { numRuns: 2_000 },
    );
  });

  // Each input has 4 MB of a form that a careless parser handles in quadratic time. A linear parser takes milliseconds, a quadratic parser
  // minutes.
  for (const { name, text } of [
    { name: 'one long string', text: `{"a":"${'A'.repeat(4_000_000)}"}` },
    { name: 'many escaped quotes', text: `{"a":"${'\\"'.repeat(2_000_000)}"}` },
    { name: 'many backslashes', text: `{"a":"${'\\\\'.repeat(2_000_000)}"}` },
    { name: 'backslashes without an end', text: `{"a":"${'\\'.repeat(4_000_000)}` },
    { name: 'blanks', text: ' '.repeat(4_000_000) },
    { name: 'blanks before a mistake', text: `${' '.repeat(4_000_000)}x` },
    { name: 'opening and closing', text: `{"a":[${'[],'.repeat(1_300_000)}[]]}` },
    { name: 'quotes', text: `{"a":[${'"",'.repeat(1_300_000)}""]}` },
  ]) {
    it(`reads 4 MB of ${name} in linear time`, async () => {
      try {
        await parseAny(text);
        await parseAny(text, form);
      } catch (error) {
        expect(error).to.be.instanceOf(RequestError);
      }
    });
  }
});

describe('a form of millions of plus signs', () => {
  it('needs little more memory than its text', async () => {
    const source = `
      const { parseBody } = await import(${JSON.stringify(new URL('../../src/fields/json.ts', import.meta.url).href)});
      const { value } = parseBody(Buffer.from('value=' + '+'.repeat(4_000_000)), '${form}');
      (await import('node:worker_threads')).parentPort.postMessage(value.length);
    `;
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`), {
      resourceLimits: { maxOldGenerationSizeMb: 64 },
    });
    const [length] = await once(worker, 'message'); // rejects if the memory does not suffice
    expect(length).to.equal(4_000_000);
    await worker.terminate();
  });
});

describe('queryBody', () => {
  it('returns the first value of each parameter, except parameters that concern the request', () => {
    const body = queryBody(new URLSearchParams('a=1&a=2&list=true&help=1&b&__proto__=x'));
    expect(Object.entries(body)).to.deep.equal([
      ['a', '1'],
      ['b', ''],
      ['__proto__', 'x'],
    ]);
    expect(Object.getPrototypeOf(body)).to.equal(null);
  });
});
