import { expect } from 'chai';
import fc from 'fast-check';
import { codePoint } from '../../../../test/code-points.ts';
import { parseBody } from '../../src/fields/json.ts';
import { withoutLongTexts } from '../../src/fields/long-texts.ts';
import { RequestError } from '../../src/reply/request-error.ts';

/** The members of a body in their order, or the refusal. */
async function outcome(bytes: Buffer, contentType: string | undefined, longTextBytes: number): Promise<unknown> {
  try {
    const body = await parseBody(bytes, contentType, longTextBytes);
    return { members: Object.entries(body), prototype: Object.getPrototypeOf(body) };
  } catch (error) {
    if (error instanceof RequestError) return { code: error.code, message: error.message };
    throw error;
  }
}

async function expectSameOutcome(text: string | Buffer, contentType?: string): Promise<void> {
  const bytes = Buffer.from(text as string);
  const whole = await outcome(bytes, contentType, Number.POSITIVE_INFINITY);
  for (const longTextBytes of [0, 3, 8])
    expect(await outcome(bytes, contentType, longTextBytes), JSON.stringify(text.toString())).to.deep.equal(whole);
}

const types = fc.constantFrom(undefined, 'application/json', 'application/x-www-form-urlencoded');

describe('a body with long texts', () => {
  it('has the same members as when it is parsed as a whole', async () => {
    const text = fc.oneof(
      fc.base64String({ maxLength: 40 }),
      fc.string({ maxLength: 12 }),
      fc.string({ unit: codePoint, maxLength: 12 }),
      fc.constantFrom('\0', '\0' + '0', '\\u00000', '\n', '\x7f', 'é', '__proto__', '"', '\\'),
    );
    const value = fc.letrec((tie) => ({
      value: fc.oneof(text, fc.constantFrom(null, true, 1.5), fc.array(tie('value'), { maxLength: 3 }), tie('members')),
      members: fc.dictionary(text, tie('value'), { maxKeys: 4 }),
    }));
    const body = fc.tuple(fc.array(value.members, { minLength: 1, maxLength: 2 }), fc.constantFrom(undefined, 1, '\t'));
    await fc.assert(
      fc.asyncProperty(body, types, async ([objects, space], type) => {
        // Two objects in one have duplicate members.
        const members = objects
          .map((each) => JSON.stringify(each, undefined, space).slice(1, -1))
          .filter((each) => each.trim() !== '');
        await expectSameOutcome(`{${members.join()}}`, type);
      }),
      { numRuns: 2_000 },
    );
  });

  it('is a form if its type says so, however many commas it has', async () => {
    const form = `a={"b":{"long":"${'A'.repeat(20)}"${','.repeat(100)}`;
    await expectSameOutcome(form, 'application/x-www-form-urlencoded');
  });

  it('is refused with the same message as when it is parsed as a whole', async () => {
    const pieces = ['{', '}', '[', ']', ',', ':', '"', '\\', 'u0000', '0', '1', 'null', ' ', '\n', '\u0001', 'é', 'QUJD'];
    const strings = [
      '"a"',
      '"QUJDREVG"',
      '"svc:v1:QUJD"',
      '"\\u00000"',
      '"\\ud800"',
      '"__proto__"',
      '"a\tbcdefghij"',
      '"abcdefghij\x1f"',
    ];
    const soup = fc.array(fc.constantFrom(...pieces, ...strings), { maxLength: 12 }).map((parts) => parts.join(''));
    const framed = fc.tuple(
      fc.constantFrom('', '{"a":', '{"a":"QUJDREVG",', '["QUJDREVG",'),
      soup,
      fc.constantFrom('', '}', ']', '"}', ':1}'),
    );
    await fc.assert(
      fc.asyncProperty(framed, types, async (parts, type) => expectSameOutcome(parts.join(''), type)),
      { numRuns: 20_000 },
    );
  });

  it('has the same outcome if its bytes are not text', async () => {
    const bytes = fc.tuple(
      fc.constantFrom('{"a":"', '"', '{"'),
      fc.uint8Array({ maxLength: 24 }),
      fc.constantFrom('"}', '":1}', ''),
    );
    await fc.assert(
      fc.asyncProperty(bytes, types, async ([begin, middle, end], type) => {
        await expectSameOutcome(Buffer.concat([Buffer.from(begin), middle, Buffer.from(end)]), type);
      }),
      { numRuns: 5_000 },
    );
  });
});

describe('withoutLongTexts', () => {
  const long = 'A'.repeat(100);
  const cut = (text: string, bytesMin = 50) => withoutLongTexts(Buffer.from(text), bytesMin);

  it('replaces long strings, and only these', () => {
    const { rest, texts } = cut(`{"a":"b","c":["${long}1","${long}2"],"d":1}`) ?? expect.fail('it has long strings');
    const textOf = texts() ?? expect.fail('it has no control characters');
    expect(rest).to.equal('{"a":"b","c":["\\u00000","\\u00001"],"d":1}');
    expect(JSON.parse(rest).c.map(textOf)).to.deep.equal([`${long}1`, `${long}2`]);
    expect([textOf('b'), textOf(''), textOf('0')]).to.deep.equal([undefined, undefined, undefined]);
  });

  for (const [what, text] of [
    ['without a long string', `{"a":"b"${' '.repeat(100)}}`],
    ['with an escape', `{"a":"${long}","b":"\\n"}`],
    ['with another character than ASCII', `{"a":"${long}","b":"é"}`],
    ['with a string that does not end', `{"a":"${long}","b":"`],
    ['with very many strings', `{"a":"${long}","b":["${Array(300).fill('c').join('","')}"]}`],
  ] as const)
    it(`leaves a text ${what} to the parser`, () => expect(cut(text)).to.equal(undefined));

  it('leaves a long string with a control character to the parser, at any place of it', () => {
    const text = Buffer.from(`{"a":"${long}"}`);
    for (let offset = 0; offset < 4; offset++) {
      const bytes = Buffer.concat([Buffer.alloc(offset), text]).subarray(offset);
      for (let at = 0; at < long.length; at++)
        for (const control of [0x00, 0x0a, 0x1f]) {
          bytes[6 + at] = control;
          expect(withoutLongTexts(bytes, 50)?.texts(), `${control} at ${at}`).to.equal(undefined);
          bytes[6 + at] = at % 2 === 0 ? 0x20 : 0x7f;
        }
      expect(withoutLongTexts(bytes, 50)?.texts()).to.be.a('function');
    }
  });
});
