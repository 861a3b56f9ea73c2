import { expect } from 'chai';
import fc from 'fast-check';
import { Acl, capabilitiesOn, denialOf, denies, grantsOn, permits, refusedByPolicy } from '../../src/policy/acl.ts';
import { bitOf, type Capability } from '../../src/policy/capability.ts';
import type { Policy } from '../../src/policy/policy.ts';
import { parsePolicy } from '../../src/policy/policy-text.ts';

/** Makes a policy from `path: capabilities` pairs. */
const policy = (rules: Readonly<Record<string, readonly string[]>>): Policy =>
  parsePolicy(
    JSON.stringify({ path: Object.fromEntries(Object.entries(rules).map(([path, capabilities]) => [path, { capabilities }])) }),
  );
const acl = (...policies: readonly Readonly<Record<string, readonly string[]>>[]): Acl => new Acl(policies.map(policy));
const may = (compiled: Acl, capability: Capability, path: string): boolean => permits(compiled, { capability, path });

describe('the rule that decides', () => {
  for (const { rules, path, grants, because } of [
    { rules: { 'a/b': ['read'] }, path: 'a/b', grants: true, because: 'the exact path' },
    { rules: { 'a/b': ['read'] }, path: 'a/b/c', grants: false, because: 'an exact path is not a prefix' },
    { rules: { 'a/b': ['read'] }, path: 'a', grants: false, because: 'nothing matches' },
    { rules: { 'a/b*': ['read'] }, path: 'a/bc/d', grants: true, because: '* goes over segments' },
    { rules: { 'a/b*': ['read'] }, path: 'a/b', grants: true, because: '* may be nothing' },
    { rules: { '*': ['read'] }, path: 'x/y', grants: true, because: 'a lone * is everything' },
    { rules: { 'a/*/c': ['read'] }, path: 'a/b/c', grants: false, because: '* in the middle is literal' },
    { rules: { 'a/*/c': ['read'] }, path: 'a/*/c', grants: true, because: '* in the middle is literal' },
    { rules: { 'a/+/c': ['read'] }, path: 'a/b/c', grants: true, because: '+ is one segment' },
    { rules: { 'a/+/c': ['read'] }, path: 'a/b/b/c', grants: false, because: '+ is no more than one segment' },
    { rules: { 'a/+b/c': ['read'] }, path: 'a/xb/c', grants: false, because: '+ within a segment is literal' },
    { rules: { 'a/+b/c': ['read'] }, path: 'a/+b/c', grants: true, because: '+ within a segment is literal' },
    { rules: { 'a/+b/*': ['read'] }, path: 'a/+b/c/d', grants: true, because: '+ within a segment leaves * a glob' },
    { rules: { 'a/+/c*': ['read'] }, path: 'a/b/cd/e', grants: true, because: '* after + is a prefix too' },
    { rules: { '+/b': ['read'] }, path: 'a/b', grants: true, because: '+ may come first' },
    { rules: { 'a/*': ['deny'], 'a/b': ['read'] }, path: 'a/b', grants: true, because: 'exact beats a glob that denies' },
    { rules: { 'a/*': ['read'], 'a/b': ['deny'] }, path: 'a/b', grants: false, because: 'exact beats a glob that grants' },
    { rules: { 'a/+': ['deny'], 'a/b': ['read'] }, path: 'a/b', grants: true, because: 'exact beats +' },
    { rules: { 'a/*': ['deny'], 'a/b*': ['read'] }, path: 'a/bc', grants: true, because: 'the longest prefix counts' },
    { rules: { 'a/+/c': ['deny'], 'a/b*': ['read'] }, path: 'a/b/c', grants: true, because: 'a later first wildcard wins' },
    { rules: { 'a/*': ['deny'], 'a/+': ['read'] }, path: 'a/b', grants: true, because: 'not ending in * wins' },
    {
      rules: { 'a/+/c*': ['deny'], 'a/+/+': ['read'] },
      path: 'a/b/c',
      grants: true,
      because: 'not ending in * comes before fewer +',
    },
    { rules: { 'a/+/+': ['deny'], 'a/+/c': ['read'] }, path: 'a/b/c', grants: true, because: 'fewer + win' },
    { rules: { 'a/+/c*': ['deny'], 'a/+/cd*': ['read'] }, path: 'a/b/cde', grants: true, because: 'the longer wins' },
    { rules: { 'a/+/+/d': ['deny'], 'a/+/c/+': ['read'] }, path: 'a/b/c/d', grants: true, because: 'the lexically greater wins' },
    { rules: { 'a/b': [] }, path: 'a/b', grants: false, because: 'no capability is no right' },
    { rules: { 'a/b': [], 'a/*': ['read'] }, path: 'a/b', grants: false, because: 'only one rule counts' },
  ])
    it(`${JSON.stringify(rules)} ${grants ? 'grants' : 'does not grant'} ${path}: ${because}`, () => {
      expect(may(acl(rules), 'read', path)).to.equal(grants);
    });

  it('for a list is the exact rule with the slash, else the one without it, else a pattern that matches the path with it', () => {
    expect(may(acl({ 'a/b': ['list'] }), 'list', 'a/b')).to.equal(true);
    expect(may(acl({ 'a/b/': ['list'] }), 'list', 'a/b')).to.equal(true);
    expect(may(acl({ 'a/b/': ['read'], 'a/b': ['list'] }), 'list', 'a/b')).to.equal(false);
    expect(may(acl({ 'a/b/*': ['list'] }), 'list', 'a/b')).to.equal(true);
    expect(may(acl({ 'a/b/*': ['read'] }), 'read', 'a/b')).to.equal(false);
    expect(may(acl({ 'a/b/': ['read'] }), 'read', 'a/b')).to.equal(false);
  });

  it('for a list may end in +, which also matches the empty segment after the slash, for denials and grants', () => {
    expect(may(acl({ 'a/+': ['list'] }), 'list', 'a')).to.equal(true);
    expect(may(acl({ 'a/+': ['deny'], '*': ['list'] }), 'list', 'a')).to.equal(false);
    expect(may(acl({ 'a/+/': ['list'] }), 'list', 'a/b')).to.equal(true);
    expect(may(acl({ 'a/+/+': ['list'] }), 'list', 'a')).to.equal(false);
    expect(may(acl({ 'a/+': ['read'] }), 'read', 'a')).to.equal(false);
  });

  for (const { rules, grants, because } of [
    { rules: { 'a/+': ['list'] }, grants: true, because: 'a pattern without a slash grants the list' },
    { rules: { '+/b': ['list'] }, grants: true, because: 'wherever its + is' },
    { rules: { 'a/b*': ['list'] }, grants: true, because: 'a glob does as before' },
    { rules: { 'a/*': ['list'], 'a/+': ['deny'] }, grants: false, because: 'such a pattern denies it too' },
    { rules: { 'a/*': ['deny'], 'a/+': ['list'] }, grants: true, because: 'the stronger pattern decides' },
    { rules: { 'a/*': ['read'], 'a/b/*': ['list'] }, grants: true, because: 'a pattern for what lies below is stronger' },
    { rules: { 'a/*': ['list'], 'a/b/*': ['deny'] }, grants: false, because: 'and denies' },
    { rules: { 'a/+': ['list'], 'a/b': ['deny'] }, grants: false, because: 'an exact rule decides first' },
    { rules: { 'a/+': ['deny'], 'a/+/': ['list'] }, grants: true, because: 'the one with the slash is longer' },
  ] as const)
    it(`for a list of a/b: ${because}`, () => {
      const compiled = acl(rules as Readonly<Record<string, readonly string[]>>);
      expect(may(compiled, 'list', 'a/b')).to.equal(grants);
      expect(capabilitiesOn(compiled, 'a/b/').includes('list')).to.equal(grants);
    });

  it('for sudo on a list is the rule for the list itself', () => {
    const compiled = acl({ 'a/': ['list'], a: ['list', 'sudo'], b: ['list', 'sudo'] });
    expect([may(compiled, 'sudo', 'a/'), may(compiled, 'sudo', 'b/'), may(compiled, 'sudo', 'a')]).to.deep.equal([
      false,
      true,
      true,
    ]);
  });

  it('merges several policies for a path: capabilities add up, a denial removes them', () => {
    expect(may(acl({ a: ['read'] }, { a: ['update'] }), 'read', 'a')).to.equal(true);
    expect(may(acl({ a: ['read'] }, { a: ['update'] }), 'update', 'a')).to.equal(true);
    for (const policies of [
      [{ a: ['deny'] }, { a: ['read'] }],
      [{ a: ['read'] }, { a: ['deny'] }],
    ])
      expect(may(acl(...policies), 'read', 'a')).to.equal(false);
  });

  it('does not combine two rules', () => {
    const compiled = acl({ 'a/*': ['read'], 'a/b': ['update'] });
    expect(may(compiled, 'read', 'a/b')).to.equal(false);
  });
});

describe('a denial', () => {
  it('is explicit for a list by the rules for lists, and the question does not change what a list needs', () => {
    for (const rules of [
      { 'a/*': ['list'], 'a/b': ['deny'] },
      { 'a/*': ['list'], 'a/b/': ['deny'] },
    ]) {
      const compiled = acl(rules);
      expect(denies(compiled, 'a/b/')).to.equal(true);
      expect(may(compiled, 'list', 'a/b')).to.equal(false);
    }
    expect(denies(acl({ 'a/b/': ['list'], 'a/b': ['deny'] }), 'a/b/')).to.equal(false);
  });

  it('is explicit only if the deciding rule denies', () => {
    const compiled = acl({ 'sign/k*': ['update'], 'sign/k/sha1': ['deny'] });
    expect(denies(compiled, 'sign/k/sha1')).to.equal(true);
    expect(denies(compiled, 'sign/k/sha2-256')).to.equal(false);
    expect(denies(compiled, 'verify/k')).to.equal(false);
    expect([compiled.hasDenials, acl({ a: ['read'] }).hasDenials]).to.deep.equal([true, false]);
  });
});

describe('capabilities on a path', () => {
  it('are sorted; deny alone when there are none', () => {
    const compiled = acl({ a: ['update', 'sudo', 'create', 'read'], b: ['deny', 'read'], 'c/': ['list'] });
    expect(capabilitiesOn(compiled, 'a')).to.deep.equal(['create', 'read', 'sudo', 'update']);
    for (const path of ['b', 'nowhere', 'c', '', '/']) expect(capabilitiesOn(compiled, path), path).to.deep.equal(['deny']);
    expect(capabilitiesOn(compiled, 'c/')).to.deep.equal(['list']);
  });
});

describe('the parameters of a rule', () => {
  const rule = (text: string): Acl =>
    new Acl([parsePolicy(`path "p" { capabilities = ["create", "read", "update", "delete", "list"] ${text} }`)]);
  const permitted = (compiled: Acl, body: object, capability: Capability = 'update'): boolean =>
    permits(compiled, { capability, path: 'p', parameters: Object.assign(Object.create(null), body) });

  for (const { text, body, grants } of [
    { text: 'required_parameters = ["A"]', body: { a: 0 }, grants: true },
    { text: 'required_parameters = ["a"]', body: {}, grants: false },
    { text: 'required_parameters = ["a"]', body: { a: null }, grants: false },
    { text: 'required_parameters = ["a"]', body: { A: 1 }, grants: false },
    { text: 'allowed_parameters = { a = ["x"] }', body: {}, grants: true },
    { text: 'allowed_parameters = { a = ["x", "y*"] }', body: { a: 'yes' }, grants: true },
    { text: 'allowed_parameters = { a = ["x", "*y"] }', body: { a: 'xx' }, grants: false },
    { text: 'allowed_parameters = { a = ["*b*"] }', body: { a: 'abc' }, grants: true },
    { text: 'allowed_parameters = { a = ["*"] }', body: { a: '' }, grants: true },
    { text: 'allowed_parameters = { a = [] }', body: { a: ['any'] }, grants: true },
    { text: 'allowed_parameters = { a = [] }', body: { a: 1, b: 1 }, grants: false },
    { text: 'allowed_parameters = { a = ["x"] "*" = [] }', body: { a: 'x', b: 1 }, grants: true },
    { text: 'allowed_parameters = { a = ["x"] "*" = [] }', body: { a: 'y' }, grants: false },
    { text: 'allowed_parameters = { a = [true] }', body: { a: true }, grants: true },
    { text: 'allowed_parameters = { a = [true] }', body: { a: 'true' }, grants: false },
    { text: 'allowed_parameters = { a = [4096] }', body: { a: 4096.0 }, grants: true },
    { text: 'allowed_parameters = { a = [4096] }', body: { a: '4096' }, grants: true },
    { text: 'allowed_parameters = { a = [4096] }', body: { a: 4097 }, grants: false },
    { text: 'denied_parameters = { "*" = [] }', body: {}, grants: true },
    { text: 'denied_parameters = { "*" = [] }', body: { a: 1 }, grants: false },
    { text: 'denied_parameters = { a = [] }', body: { A: 1 }, grants: false },
    { text: 'denied_parameters = { a = [] }', body: { b: 1 }, grants: true },
    { text: 'denied_parameters = { a = ["x*"] }', body: { a: 'xy' }, grants: false },
    { text: 'denied_parameters = { a = [true] }', body: { a: false }, grants: true },
    ...[true, 'true', 'T', 1, '1'].map((a) => ({ text: 'denied_parameters = { a = [true] }', body: { a }, grants: false })),
    ...[4096, '4096', '0x1000', '010000', '4096s', '1h8m16s'].map((a) => ({
      text: 'denied_parameters = { a = [4096] }',
      body: { a },
      grants: false,
    })),
    { text: 'denied_parameters = { a = [4096] }', body: { a: 2048 }, grants: true },
    { text: 'denied_parameters = { a = ["4096"] }', body: { a: 4096 }, grants: false },
    ...['admin', ' Admin', 'ADMIN ', 'x, admin', 'admin,x', ['admin'], ['x', ' ADMIN'], ['x,admin'], [['admin']], { k: 'x' }].map(
      (a) => ({ text: 'denied_parameters = { a = ["Admin"] }', body: { a }, grants: false }),
    ),
    ...['administrator', ['x'], 'x,y', [], {}, null, [null]].map((a) => ({
      text: 'denied_parameters = { a = ["admin"] }',
      body: { a },
      grants: true,
    })),
    ...['x', {}, { k: 1 }, [], 0, false].map((a) => ({ text: 'denied_parameters = { a = ["*"] }', body: { a }, grants: false })),
    ...['30m', '+30m', '.5h', '1800.5s', '+0x708', '0b11100001000', '03410', 1800, '1800', '1_800'].map((a) => ({
      text: 'denied_parameters = { a = ["1800s"] }',
      body: { a },
      grants: a === '1_800',
    })),
    ...['+0x1', '+0b1', '0o1', '1.9s'].map((a) => ({ text: 'denied_parameters = { a = [1] }', body: { a }, grants: false })),
    { text: 'denied_parameters = { a = ["x"] } allowed_parameters = { a = ["*"] }', body: { a: 'x' }, grants: false },
  ])
    it(`${text} ${grants ? 'permits' : 'refuses'} ${JSON.stringify(body)}`, () => {
      expect(permitted(rule(text), body)).to.equal(grants);
    });

  for (const { text, wrapTtlS, grants } of [
    { text: '', wrapTtlS: 0, grants: true },
    { text: '', wrapTtlS: 60, grants: true },
    { text: 'max_wrapping_ttl = "1h"', wrapTtlS: undefined, grants: true },
    { text: 'max_wrapping_ttl = "1h"', wrapTtlS: 0, grants: false },
    { text: 'max_wrapping_ttl = "1h"', wrapTtlS: 3600, grants: true },
    { text: 'max_wrapping_ttl = "1h"', wrapTtlS: 3601, grants: false },
    { text: 'min_wrapping_ttl = "1h"', wrapTtlS: 0, grants: false },
    { text: 'min_wrapping_ttl = "1h"', wrapTtlS: 3599, grants: false },
    { text: 'min_wrapping_ttl = "1h"', wrapTtlS: 3600, grants: true },
    { text: 'min_wrapping_ttl = "1h" max_wrapping_ttl = "2h"', wrapTtlS: 7200, grants: true },
  ])
    it(`${text === '' ? 'no bounds' : text} ${grants ? 'permits' : 'refuses'} a response wrapped for ${wrapTtlS}`, () => {
      for (const capability of ['read', 'update', 'list', 'delete'] as const)
        expect(permits(rule(text), { capability, path: 'p', wrapTtlS })).to.equal(grants);
    });

  it('are checked on read, create and update, not on list and delete', () => {
    const compiled = rule('denied_parameters = { "*" = [] }');
    expect(
      (['read', 'create', 'update', 'list', 'delete'] as const).map((each) => permitted(compiled, { a: 1 }, each)),
    ).to.deep.equal([false, false, false, true, true]);
  });

  it('are checked on delete if they are about a condition of the operation', () => {
    const reading = { conditions: new Set(['if']) };
    const deletes = (text: string, parameters: object): boolean =>
      permits(rule(text), {
        capability: 'delete',
        path: 'p',
        parameters: Object.assign(Object.create(null), parameters),
        reading,
      });
    for (const [text, parameters, grants] of [
      ['required_parameters = ["if"]', {}, false],
      ['required_parameters = ["if"]', { if: '30d' }, true],
      ['required_parameters = ["type"]', {}, true],
      ['allowed_parameters = { if = ["30d"] }', { if: '1s' }, false],
      ['allowed_parameters = { if = ["30d"] }', { if: '30d' }, true],
      ['allowed_parameters = { if = ["30d"] }', { if: '30d', type: 'a' }, true],
      ['allowed_parameters = { type = [] }', { if: '1s' }, true],
      ['denied_parameters = { if = ["1s"] }', { if: '1s' }, false],
      ['denied_parameters = { "*" = [] }', { if: '1s' }, true],
    ] as const)
      expect(deletes(text, parameters), `${text} ${JSON.stringify(parameters)}`).to.equal(grants);
  });

  it('merge over policies: lists add up, any value wins, the smaller bound wins', () => {
    const one = parsePolicy(
      'path "p" { capabilities = ["update"] allowed_parameters = { a = ["x"] b = ["x"] } required_parameters = ["a"] }',
    );
    const other = parsePolicy(
      'path "p" { capabilities = ["update"] allowed_parameters = { a = ["y"] b = [] } denied_parameters = { c = [] } }',
    );
    for (const compiled of [new Acl([one, other]), new Acl([other, one])]) {
      expect(permitted(compiled, { a: 'x', b: 'z' })).to.equal(true);
      expect(permitted(compiled, { a: 'y' })).to.equal(true);
      expect(permitted(compiled, { a: 'z' })).to.equal(false);
      expect(permitted(compiled, { b: 'z' })).to.equal(false);
      expect(permitted(compiled, { a: 'x', c: 1 })).to.equal(false);
    }
  });
});

describe('a decision', () => {
  const named = (policies: Readonly<Record<string, string>>): Acl =>
    new Acl(Object.values(policies).map(parsePolicy), Object.keys(policies));
  const rules = (path: string, ...policies: readonly string[]) => policies.map((policy) => ({ policy, path }));
  const compiled = named({
    reads: 'path "p/*" { capabilities = ["read"] } path "p/*" { capabilities = ["read", "list"] }',
    writes: 'path "p/*" { capabilities = ["update"] denied_parameters = { a = [] } }',
    denies: 'path "+/secret" { capabilities = ["deny"] } path "p/Secret*" { capabilities = ["deny"] }',
    also: 'path "+/secret" { capabilities = ["read"] }',
  });

  it('that grants names each policy once whose own rule has the capability', () => {
    expect(grantsOn(compiled, 'p/a', ['read'])).to.deep.equal(rules('p/*', 'reads'));
    expect(grantsOn(compiled, 'p/a', ['update', 'create'])).to.deep.equal(rules('p/*', 'writes'));
    expect(grantsOn(compiled, 'p/a', ['list'])).to.deep.equal(rules('p/*', 'reads'));
    expect(grantsOn(compiled, 'q', ['read'])).to.deep.equal([]);
  });

  it('that refuses names the policies that deny, or else all with a rule for the path, and the constraint', () => {
    const refused = (capability: Capability, path: string, parameters = {}) => {
      const denial = denialOf(compiled, { capability, path, parameters });
      return denial && refusedByPolicy(denial);
    };
    expect(refused('read', 'p/a')).to.equal(undefined);
    expect(refused('delete', 'p/a')).to.deep.equal({
      constraint: 'capabilities.delete',
      rules: rules('p/*', 'reads', 'writes'),
    });
    expect(refused('read', 'x/secret')).to.deep.equal({ constraint: 'deny', rules: rules('+/secret', 'denies') });
    expect(refused('read', 'q')).to.deep.equal({ constraint: 'capabilities.read', rules: [] });
    expect(refused('update', 'p/a', { a: 1 })).to.deep.equal({
      constraint: 'denied_parameters.a',
      rules: rules('p/*', 'reads', 'writes'),
    });
    const rule = compiled.nameDenial('p/secrets', { first: 1, count: 1 });
    expect(compiled.nameDenial('p/secrets/', { first: 1, count: 1 })).to.equal(rule);
    expect(refusedByPolicy({ constraint: 'deny', rule })).to.deep.equal({
      constraint: 'deny',
      rules: rules('p/secret*', 'denies'),
    });
  });
});

describe('the matcher', () => {
  // The model: turns every rule into a regular expression, tries all, and sorts the matches by the five criteria.
  interface ModelRule {
    readonly path: string;
    readonly capability: Capability;
  }
  const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  const isSegments = (path: string): boolean => /(^|\/)\+(\/|$)/.test(path);
  const isGlob = (path: string): boolean => path.endsWith('*');
  const pattern = (path: string): RegExp => {
    const body = (isGlob(path) ? path.slice(0, -1) : path)
      .split('/')
      .map((segment) => (segment === '+' ? '[^/]*' : escaped(segment)))
      .join('/');
    return new RegExp(`^${body}${isGlob(path) ? '.*' : ''}$`, 's');
  };
  const firstWildcard = (path: string): number => {
    const plus = isSegments(path) ? (/(^|\/)\+(\/|$)/.exec(path)?.index ?? 0) : Number.POSITIVE_INFINITY;
    const at = plus === Number.POSITIVE_INFINITY ? plus : path.startsWith('+') && plus === 0 ? 0 : plus + 1;
    return Math.min(at, isGlob(path) ? path.length - 1 : Number.POSITIVE_INFINITY);
  };
  const strength = (path: string): readonly (number | string)[] => [
    firstWildcard(path),
    isGlob(path) ? 0 : 1,
    -path.split('/').filter((segment) => segment === '+').length,
    path.replace(/\*$/, '').length,
    path.replace(/\*$/, ''),
  ];
  const compare = (a: string, b: string): number => {
    const [one, other] = [strength(a), strength(b)];
    for (const [at, value] of one.entries()) {
      const against = other[at] ?? 0;
      if (value !== against) return value > against ? 1 : -1;
    }
    return 0;
  };
  const model = (rules: readonly ModelRule[], path: string, list: boolean): number => {
    const bits = (of: string): number =>
      rules.filter((rule) => rule.path === of).reduce((sum, { capability }) => sum | bitOf(capability), 0);
    const exact = (of: string): boolean => rules.some((rule) => rule.path === of && !isGlob(of) && !isSegments(of));
    const seen = list ? `${path}/` : path;
    if (exact(seen)) return bits(seen);
    if (list && exact(path)) return bits(path);
    const forms = list ? [seen, path] : [path];
    const matching = rules.filter(
      (rule) => (isGlob(rule.path) || isSegments(rule.path)) && forms.some((form) => pattern(rule.path).test(form)),
    );
    const [best] = matching.map((rule) => rule.path).sort((a, b) => compare(b, a));
    return best === undefined ? 0 : bits(best);
  };

  const segment = fc.constantFrom('a', 'b', 'ab', 'aa', '+', '+a');
  const rulePath = fc
    .tuple(fc.array(segment, { minLength: 1, maxLength: 4 }), fc.constantFrom('', '', '*', '/*', '/'))
    .map(([segments, end]) => segments.join('/') + end)
    .filter((path) => !path.includes('+*'));
  const rule = fc.record({ path: rulePath, capability: fc.constantFrom<Capability>('read', 'update', 'delete', 'list') });
  const path = fc
    .array(fc.constantFrom('a', 'b', 'ab', 'aa', 'aab', '+a'), { minLength: 1, maxLength: 5 })
    .map((parts) => parts.join('/'));

  it('finds the rule that the model finds, uncached and cached', () => {
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 12 }), fc.array(path, { minLength: 1, maxLength: 6 }), (rules, paths) => {
        const compiled = new Acl(rules.map((each) => policy({ [each.path]: [each.capability] })));
        for (const path of [...paths, ...paths]) {
          expect(compiled.ruleFor(path)?.capabilities ?? 0, path).to.equal(model(rules, path, false));
          expect(compiled.listRuleFor(path)?.capabilities ?? 0, `${path}/`).to.equal(model(rules, path, true));
        }
      }),
      { numRuns: 2000 },
    );
  });

  it('still decides correctly when its cache of decisions is full', () => {
    const compiled = acl({ 'a/*': ['read'], 'a/7*': ['deny'] });
    for (let round = 0; round < 2; round += 1)
      for (let n = 0; n < 1000; n += 1) expect(may(compiled, 'read', `a/${n}`), `${n}`).to.equal(!String(n).startsWith('7'));
    expect(may(compiled, 'read', `a/${'x'.repeat(5000)}`)).to.equal(true);
  });
});
