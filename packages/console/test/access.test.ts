// @live
import { expect } from 'chai';
import { decisionIn, explain } from '../app/access/explanation.ts';
import { pathIn } from '../app/access/requests.ts';
import { needsSudo } from '../app/access/sudo-paths.ts';
import { leavesItsPlace, segments } from '../app/api/request.ts';

const decision = (policy: string, rule: string | null, ...capabilities: readonly string[]) =>
  decisionIn(policy, { decisions: [{ path: 'x', capabilities, rule }] });

describe('the explanation of a denial', () => {
  it('names the rule that decides, and the rules that do not count', () => {
    const decisions = [decision('wide', 'transit/*', 'update'), decision('exact', 'transit/encrypt/orders', 'deny')];
    const { isAllowed, sentences } = explain(
      ['deny'],
      { capability: 'update', sudo: false },
      decisions,
      'transit/encrypt/orders',
    );
    expect(isAllowed).to.equal(false);
    expect(sentences).to.deep.equal([
      'Policy wide has the rule "transit/*"; it does not count here, because "transit/encrypt/orders" is more specific.',
      'Policy exact has the rule "transit/encrypt/orders", which denies it.',
    ]);
  });

  it('says that no policy has a rule, but only if all could be evaluated', () => {
    expect(explain(['deny'], { capability: 'read', sudo: false }, [decision('a', null, 'deny')], '').sentences.join()).to.match(
      /No policy of the token has a rule/,
    );
    const unread = { ...decision('b', null), error: 'your token may not do this' };
    expect(explain(['deny'], { capability: 'read', sudo: false }, [unread], undefined).sentences).to.deep.equal([
      'Policy b could not be evaluated: your token may not do this.',
    ]);
  });

  it('follows the decision of the node, not its own', () => {
    expect(explain(['read'], { capability: 'read', sudo: false }, [], undefined).isAllowed).to.equal(true);
    expect(explain(['deny'], { capability: 'read', sudo: false }, [decision('a', 'x', 'read')], 'x').isAllowed).to.equal(false);
    expect(explain(['root'], { capability: 'sudo', sudo: true }, [], undefined).isAllowed).to.equal(true);
  });

  it('says that a request needs sudo as well', () => {
    const [granting, needed] = [[decision('a', 'sys/seal', 'update')], { capability: 'update', sudo: true }];
    const { isAllowed, sentences } = explain(['update'], needed, granting, 'sys/seal');
    expect(isAllowed).to.equal(false);
    expect(sentences).to.deep.equal([
      'Policy a has the rule "sys/seal", which grants update.',
      'This request needs sudo as well, which is not granted.',
    ]);
    expect(explain(['sudo', 'update'], needed, granting, 'sys/seal').isAllowed).to.equal(true);
  });
});

describe('the need of sudo', () => {
  const document = {
    paths: {
      '/sys/auth/{method}': { get: { 'x-vault-sudo': true }, delete: {} },
      '/sys/auth/known': { get: {} },
      '/auth/token/accessors': { get: { 'x-vault-sudo': true } },
    },
  };
  for (const [path, capability, needed] of [
    ['sys/auth/userpass', 'read', true],
    ['sys/auth/userpass', 'delete', false],
    ['sys/auth/userpass', 'sudo', false],
    ['sys/auth/known', 'read', false],
    ['sys/auth/userpass/tune', 'read', false],
    ['sys/auth', 'read', false],
    ['auth/token/accessors/', 'list', true],
    ['constructor', 'read', false],
  ] as const)
    it(`of ${capability} on ${path} is ${needed ? '' : 'not '}in the document of the API`, () =>
      expect(needsSudo(document, path, capability)).to.equal(needed));

  it('is unknown without a document, and then denies nothing', () => {
    for (const odd of [{}, { paths: null }, { paths: { '/sys/seal': 7 } }])
      expect(needsSudo(odd, 'sys/seal', 'update')).to.equal(false);
  });
});

describe('a typed path', () => {
  for (const [typed, capability, path] of [
    ['transit/encrypt/a', 'update', 'transit/encrypt/a'],
    [' /v1/transit/keys ', 'list', 'transit/keys/'],
    ['https://node:8200/v1/sys/health', 'read', 'sys/health'],
    ['transit/keys/', 'list', 'transit/keys/'],
  ] as const)
    it(`${typed} is ${path}`, () => expect(pathIn(typed, capability)).to.equal(path));
});

describe('a path with names from a link', () => {
  it('is refused if the browser would send a path other than the one that the page built', () => {
    const target = (mount: string, name: string): string => `${segments(mount)}/keys/${encodeURIComponent(name)}`;
    const resolves = (path: string): boolean => new URL(`http://a/v1/${path}`).pathname !== `/v1/${path}`;
    for (const part of ['..', '.', '../..', '%2e%2e', '..%2f', '...', '.a', 'a..b', '\\..\\', '\t..', ' ..'])
      for (const path of [target('transit', part), target(part, 'k'), target(`sys/mounts/${part}`, 'k')])
        expect(leavesItsPlace(path), path).to.equal(resolves(path));
    expect([leavesItsPlace(target('sys/mounts/transit', '..')), leavesItsPlace('sys/x?prefix=../a')]).to.deep.equal([
      true,
      false,
    ]);
  });
});
