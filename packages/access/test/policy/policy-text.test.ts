// cspell:ignore capabilites raed
import { expect } from 'chai';
import fc from 'fast-check';
import { AccessError } from '../../src/index.ts';
import { bitsOf } from '../../src/policy/capability.ts';
import { parsePolicy, plainText, policyBytesMax, policyValuesMax } from '../../src/policy/policy-text.ts';

const rulesOf = (text: string) => parsePolicy(text).map(({ path, rule }) => ({ path, ...rule }));
const complaint = (attempt: () => unknown): string => {
  try {
    attempt();
  } catch (error) {
    if (error instanceof AccessError) return `${error.code}: ${error.message}`;
    throw error;
  }
  return 'none';
};

describe('a policy in HCL', () => {
  it('has path blocks with capabilities, and all three kinds of comment', () => {
    const text =
      '# one\n// two\n/* three\n*/ path "a/b" {\n  capabilities = ["read", "list",] # four\n}\npath "c/*" { capabilities = [] }';
    expect(rulesOf(text)).to.deep.include.members([
      {
        path: 'a/b',
        capabilities: bitsOf(['read', 'list']),
        deny: false,
        parameters: { required: [], allowed: new Map(), denied: new Map() },
        wrappingTtlS: { min: 0, max: 0 },
      },
    ]);
    expect(rulesOf(text).map(({ path }) => path)).to.deep.equal(['a/b', 'c/*']);
  });

  it('has parameters of strings, numbers and booleans, case-insensitive names and optional commas', () => {
    const [rule] = rulesOf(`path "p" {
      required_parameters = ["Type"]
      allowed_parameters = { "Type" = ["a*"] size = [1, -2.5, 0x10] "*" = [] }
      denied_parameters { exportable = [true, false], other = [] }
      min_wrapping_ttl = "1m30s" max_wrapping_ttl = 3600
      comment = "kept for people"
    }`);
    expect(rule?.parameters.required).to.deep.equal(['type']);
    expect([...(rule?.parameters.allowed ?? [])]).to.deep.equal([
      ['type', ['a*']],
      ['size', [1, -2.5, 16]],
      ['*', []],
    ]);
    expect([...(rule?.parameters.denied ?? [])]).to.deep.equal([
      ['exportable', [true, false]],
      ['other', []],
    ]);
    expect(rule?.wrappingTtlS).to.deep.equal({ min: 90, max: 3600 });
  });

  for (const [word, granted] of [
    ['read', ['read', 'list']],
    ['write', ['create', 'read', 'update', 'delete', 'list']],
    ['sudo', ['create', 'read', 'update', 'delete', 'list', 'sudo']],
  ] as const)
    it(`accepts the older policy = "${word}"`, () => {
      expect(rulesOf(`path "a" { policy = "${word}" }`)[0]?.capabilities).to.equal(bitsOf(granted));
    });

  it('denies in either syntax and then grants nothing', () => {
    for (const text of ['path "a" { capabilities = ["read", "deny"] }', 'path "a" { policy = "deny" }'])
      expect(rulesOf(text)[0]).to.include({ deny: true, capabilities: 0 });
  });

  it('drops a leading slash of a path and reads escapes', () => {
    expect(rulesOf('path "/a\\u0062\\"\\n\\U0001F600" {}')[0]?.path).to.equal('ab"\n😀');
  });

  it('may contain only comments', () => {
    expect(parsePolicy('# nothing')).to.deep.equal([]);
  });

  for (const [text, where, what] of [
    ['path "x" { capabilities = [', '1:28', 'expected a value, found the end'],
    ['path "x" {\n  capabilities = ["fly"]\n}', '2:19', 'invalid capability'],
    ['path "x" {\n  shade = "red"\n}', '2:3', 'no attribute of this name'],
    ['path "x" { capabilities = "read" }', '1:27', 'expected a list'],
    ['path "x" { capabilities = ["read"] capabilities = ["list"] }', '1:36', 'given twice'],
    ['path "x" { policy = "fly" }', '1:21', 'invalid policy'],
    ['path "a/+*" {}', '1:6', 'forbidden'],
    ['path "x" { max_wrapping_ttl = "soon" }', '1:31', 'expected a duration'],
    ['path "x" { min_wrapping_ttl = "2h" max_wrapping_ttl = "1h" }', '1:10', 'cannot be less'],
    ['path "x" { allowed_parameters = { a = ["b", ["c"]] } }', '1:45', 'expected a string, a number or a boolean'],
    ['path "x" { allowed_parameters = { a = [] A = [] } }', '1:42', 'given twice'],
    ['path "a/{{x" {}', '1:6', 'templating'],
    ['path "a/x}}" {}', '1:6', 'templating'],
    ['path "a/}}x{{" {}', '1:6', 'templating'],
    ['path "a/{{ }}" {}', '1:6', 'templating'],
    ['path "a/{{b{{c}}" {}', '1:6', 'templating'],
    ['path "x" { expiration = "soon" }', '1:25', 'expected a time'],
    ['path "x" { expiration = "2030-13-01T00:00:00Z" }', '1:25', 'expected a time'],
    ['path "x" { expiration = true }', '1:25', 'expected a string'],
    ['path "x" { pagination_limit = "9" }', '1:31', 'whole number'],
    ['path "x" { pagination_limit = -1 }', '1:31', 'whole number'],
    ['path "x" = ["a"]', '1:10', 'label'],
    ['path = 5', '1:8', 'expected a block'],
    ['paths "x" {}', '1:1', 'expected "path"'],
    ['path "x" {} }', '1:13', 'expected a name'],
    ['path "x', '1:6', 'is not closed'],
    ['path "x\n" {}', '1:8', 'line break'],
    ['path "\\q" {}', '1:7', 'escape'],
    ['path "\\ud800" {}', '1:6', 'surrogate'],
    ['/* no end', '1:1', 'comment is not closed'],
    ['path "x" { comment = <<EOF\nEOF\n}', '1:22', 'here documents'],
    ['path "x" { comment = yes }', '1:22', 'expected a value'],
  ] as const)
    it(`reports the position of the mistake in ${JSON.stringify(text)}`, () => {
      const message = complaint(() => parsePolicy(text));
      expect(message).to.match(new RegExp(`^invalid_policy: failed to parse policy: ${where}: .*${what}`));
    });

  it('has all its mistakes reported at once, a misspelled name with the name that was meant', () => {
    const text = 'path "a" {\n  capabilites = ["read"]\n}\npath "b" {\n  capabilities = ["raed"]\n  comment = 5\n}';
    expect(complaint(() => parsePolicy(text))).to.equal(
      'invalid_policy: failed to parse policy: ' +
        '2:3: a path block has no attribute of this name: "capabilites"; did you mean "capabilities"?; ' +
        '5:19: invalid capability: "raed"; did you mean "read"?; 6:13: expected a string',
    );
  });

  it('has at most ten mistakes reported', () => {
    for (const text of ['path "a" { x = 1 }\n'.repeat(5000), `path "a" {\n${'x = 1\n'.repeat(20)}}`])
      expect(complaint(() => parsePolicy(text)).match(/no attribute/g)).to.have.lengthOf(10);
  });

  it('is never quoted in an error, except for misspelled names', () => {
    expect(complaint(() => parsePolicy('path "x" { capabilities = ["my-secret"] }'))).not.to.include('my-secret');
  });
});

describe('a policy in JSON', () => {
  it('gives the same rules as in HCL', () => {
    const hcl =
      'path "a/+" { capabilities = ["read"] denied_parameters = { x = [1, "y", true] } }\npath "b*" { policy = "write" }';
    for (const json of [
      '{"path":{"a/+":{"capabilities":["read"],"denied_parameters":{"x":[1,"y",true]}},"b*":{"policy":"write"}}}',
      ' \n{"name": "p", "path":[{"a/+":{"capabilities":["read"],"denied_parameters":{"x":[1,"y",true]},"allowed_parameters":null}},{"b*":[{"policy":"write"}]}]}\n',
    ])
      expect(parsePolicy(json)).to.deep.equal(parsePolicy(hcl));
  });

  for (const [text, where, what] of [
    ['{"path":{"x":{"capabilities":["fly"]}}}', '1:31', 'invalid capability'],
    ['{"path":{"x":{"capabilities":["read"],}}}', '1:39', 'expected a name'],
    ['{"path":{}} x', '1:13', 'unexpected text after'],
    ['{"path":{}', '1:11', 'expected "," or "}", found the end'],
    ['{path:{}}', '1:2', 'name in quotes'],
    ['{"path": 01}', '1:11', 'expected ","'],
    ['{# c\n}', '1:2', 'name in quotes'],
  ] as const)
    it(`reports the position of the mistake in ${text}`, () => {
      expect(complaint(() => parsePolicy(text))).to.match(new RegExp(`failed to parse policy: ${where}: .*${what}`));
    });
});

describe('the text of a policy', () => {
  const text = 'path "grüße/*" { capabilities = ["read"] }';

  it('is plain or base64', () => {
    expect(plainText(text)).to.equal(text);
    const base64 = Buffer.from(text).toString('base64');
    expect(plainText(base64)).to.equal(text);
    expect(plainText(`${base64.slice(0, 20)}\r\n${base64.slice(20)}\n`)).to.equal(text);
  });

  it('is refused when empty, when base64 of invalid UTF-8, and beyond 1 MiB in either form', () => {
    expect(complaint(() => plainText(''))).to.match(/^invalid_policy: 'policy' parameter not supplied or empty/);
    expect(complaint(() => plainText('/////w=='))).to.match(/^invalid_policy: .*UTF-8/);
    for (const long of [
      '#'.repeat(policyBytesMax + 1),
      Buffer.alloc(policyBytesMax + 1, '#').toString('base64'),
      'x'.repeat(5e6),
    ])
      expect(complaint(() => plainText(long))).to.match(/^policy_too_large/);
    expect(plainText('#'.repeat(policyBytesMax))).to.have.lengthOf(policyBytesMax);
  });
});

describe('a policy of many values', () => {
  for (const [form, head, unit] of [
    ['objects in JSON', '{"path":{"a":[', '{},'],
    ['members in JSON', '{', '"a":0,'],
    ['list items in HCL', 'path "a" { capabilities = [', '"",'],
    ['blocks in HCL', '', 'a{}\n'],
    ['attributes in HCL', 'path "a" { ', 'a=1 '],
  ] as const)
    it(`is refused before the end of its ${form} is looked at`, () => {
      const text = `${head}${unit.repeat(policyValuesMax + 10)}`;
      expect(complaint(() => parsePolicy(text))).to.match(/^invalid_policy: .*a policy must have at most 131072 values/);
    });

  it('is accepted with the most path blocks, capabilities and parameters of each', () => {
    const rule = 'capabilities = ["create", "read", "update", "delete", "list"]\n  allowed_parameters = { "a" = ["b", "c"] }';
    const text = Array.from({ length: 5000 }, (_, n) => `path "secret/data/${n}" {\n  ${rule}\n}`).join('\n');
    expect(parsePolicy(text)).to.have.lengthOf(5000);
  });
});

describe('the parser', () => {
  const words = [
    'path',
    '"a/*"',
    '{',
    '}',
    '[',
    ']',
    '=',
    ',',
    ':',
    '"',
    '\\',
    '#',
    '/*',
    '*/',
    '\n',
    'capabilities',
    '"read"',
    '"deny"',
  ];
  const more = ['1', '-', 'true', 'null', '<<E', 'allowed_parameters', '\ud800', '\u0000', '"p"', '{"path":', '+*', 'é'];

  it('throws only its own error for any text', () => {
    const text = fc.oneof(
      fc.array(fc.nat(0xffff), { maxLength: 200 }).map((units) => String.fromCharCode(...units)),
      fc.array(fc.constantFrom(...words, ...more), { maxLength: 60 }).map((parts) => parts.join(' ')),
      fc.array(fc.constantFrom(...words, ...more), { maxLength: 60 }).map((parts) => `{${parts.join('')}`),
    );
    fc.assert(
      fc.property(text, (given) => void complaint(() => parsePolicy(given))),
      { numRuns: 3000 },
    );
  });

  it('throws only its own error for a policy with inserted, deleted or truncated text', () => {
    const whole = 'path "a/+/b*" { capabilities = ["create", "deny"] allowed_parameters = { x = [1, "y", true] } } # end';
    const json = '{"path":{"a/+/b*":{"capabilities":["create"],"denied_parameters":{"x":[1,"y",true,null]}}}}';
    fc.assert(
      fc.property(fc.constantFrom(whole, json), fc.nat(110), fc.nat(5), fc.string({ maxLength: 3 }), (text, at, out, put) => {
        complaint(() => parsePolicy(text.slice(0, at) + put + text.slice(at + out)));
        complaint(() => parsePolicy(text.slice(0, at)));
      }),
      { numRuns: 1000 },
    );
  });

  for (const [what, piece] of [
    ['blocks', 'path "a/b" { capabilities = ["read"] }\n'],
    ['blocks of one name', 'path "a" {}'],
    ['opening brackets', '['],
    ['opening braces', '{'],
    ['labels', '"a" '],
    ['escapes', '\\n'],
    ['quotes', '"'],
    ['blanks', ' '],
    ['line breaks', '\r\n'],
    ['comments', '/* */'],
    ['openings of comments', '/*'],
    ['digits', '9'],
    ['backslashes', '\\'],
    ['stars', '*'],
  ] as const)
    for (const start of ['', '{"', 'path "', 'path "x" { capabilities = [', 'path "x" { allowed_parameters = { a = ['])
      it(`parses 256 KiB of ${what} after ${JSON.stringify(start)} in linear time`, () => {
        const text = start + piece.repeat(Math.floor(policyBytesMax / 4 / piece.length));
        const begun = process.cpuUsage();
        complaint(() => parsePolicy(text));
        complaint(() => plainText(text));
        const { user, system } = process.cpuUsage(begun); // CPU time in µs, which does not depend on other processes
        expect(user + system).to.be.below(2_500_000);
      });
});
