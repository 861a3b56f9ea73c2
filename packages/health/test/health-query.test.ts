import { expect } from 'chai';
import fc from 'fast-check';
import { type HealthQuery, parseHealthQuery } from '../src/index.ts';

const parse = (query: string): HealthQuery | undefined => parseHealthQuery(new URLSearchParams(query));

const codeNames = [
  'activecode',
  'standbycode',
  'drsecondarycode',
  'performancestandbycode',
  'haunhealthycode',
  'uninitcode',
  'sealedcode',
  'removedcode',
] as const;

describe('parseHealthQuery', () => {
  it('returns the documented codes without parameters', () => {
    expect(parse('')).to.deep.equal({
      standbyOk: false,
      performanceStandbyOk: false,
      codes: {
        activecode: 200,
        standbycode: 429,
        drsecondarycode: 472,
        performancestandbycode: 473,
        haunhealthycode: 474,
        uninitcode: 501,
        sealedcode: 503,
        removedcode: 530,
      },
    });
  });

  for (const name of codeNames) {
    for (const [text, code] of [
      ['200', 200],
      ['599', 599],
      ['0260', 260],
      ['%2B261', 261],
      ['000000000000000000000299', 299],
      ['204', 204],
      ['304', 304],
    ] as const) {
      it(`reads ${name}=${text} as ${code}`, () => {
        expect(parse(`${name}=${text}`)?.codes[name]).to.equal(code);
      });
    }
    for (const text of [
      '',
      'abc',
      'x',
      '0x1F4',
      '299.5',
      '2e2',
      '%20299',
      '299%20',
      '+299',
      '-299',
      '--299',
      '199',
      '600',
      '100',
      '101',
      '0',
      '999',
      '1000',
      '%D9%A2%D9%A0%D9%A0',
      '2_00',
      'NaN',
      'Infinity',
      '9'.repeat(400),
      'true',
    ]) {
      it(`refuses ${name}=${text.slice(0, 24)}`, () => {
        expect(parse(`${name}=${text}`)).to.equal(undefined);
      });
    }
    it(`refuses a bare ${name}`, () => {
      expect(parse(name)).to.equal(undefined);
    });
  }

  for (const [name, field] of [
    ['standbyok', 'standbyOk'],
    ['perfstandbyok', 'performanceStandbyOk'],
  ] as const) {
    for (const text of ['1', 't', 'T', 'TRUE', 'true', 'True']) {
      it(`reads ${name}=${text} as true`, () => {
        expect(parse(`${name}=${text}`)?.[field]).to.equal(true);
      });
    }
    for (const text of ['0', 'f', 'F', 'FALSE', 'false', 'False', '']) {
      it(`reads ${name}=${text} as false`, () => {
        expect(parse(`${name}=${text}`)?.[field]).to.equal(false);
      });
    }
    for (const text of ['yes', '2', 'maybe', 'tRUE', '%20true', 'true%20', 'on', '01']) {
      it(`refuses ${name}=${text}`, () => {
        expect(parse(`${name}=${text}`)).to.equal(undefined);
      });
    }
    it(`reads a bare ${name} as false`, () => {
      expect(parse(name)?.[field]).to.equal(false);
    });
  }

  it('uses the first value of a repeated name', () => {
    expect(parse('activecode=222&activecode=bad')?.codes.activecode).to.equal(222);
    expect(parse('activecode=bad&activecode=222')).to.equal(undefined);
    expect(parse('standbyok=true&standbyok=bad')?.standbyOk).to.equal(true);
  });

  it('ignores unknown names and other spellings of known names', () => {
    expect(parse('ActiveCode=bad&nosuchthing=abc&list=true&__proto__=1&constructor=2')).to.deep.equal(parse(''));
  });

  it('reads every code in range in every notation', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...codeNames),
        fc.integer({ min: 200, max: 599 }),
        fc.nat(20),
        fc.boolean(),
        (name, code, zeros, sign) => {
          expect(parse(`${name}=${sign ? '%2B' : ''}${'0'.repeat(zeros)}${code}`)?.codes[name]).to.equal(code);
        },
      ),
    );
  });

  it('refuses every integer out of range', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...codeNames),
        fc.integer().filter((code) => code < 200 || code > 599),
        (name, code) => {
          expect(parse(`${name}=${code}`)).to.equal(undefined);
        },
      ),
    );
  });

  it('never throws and never returns a code out of range', () => {
    const name = fc.constantFrom(...codeNames, 'standbyok', 'perfstandbyok', 'other');
    fc.assert(
      fc.property(
        fc.array(fc.tuple(name, fc.oneof(fc.string(), fc.integer().map(String), fc.constantFrom('true', ''))), { maxLength: 6 }),
        (pairs) => {
          const parsed = parseHealthQuery(new URLSearchParams(pairs));
          if (parsed === undefined) return;
          for (const code of Object.values(parsed.codes)) expect(code).to.be.within(200, 599);
        },
      ),
    );
  });

  it('refuses a query exactly if one of its values alone is refused', () => {
    const values = fc.constantFrom('299', 'x', '', 'true', '0x1', '204');
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(fc.constantFrom(...codeNames, 'standbyok', 'perfstandbyok'), values), {
          selector: ([name]) => name,
        }),
        (pairs) => {
          const alone = pairs.every((pair) => parseHealthQuery(new URLSearchParams([pair])) !== undefined);
          expect(parseHealthQuery(new URLSearchParams(pairs)) !== undefined).to.equal(alone);
        },
      ),
    );
  });
});
