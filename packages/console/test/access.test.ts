import { expect } from 'chai';
import { decisionIn, explain } from '../app/access/explanation.ts';
import { pathIn } from '../app/access/requests.ts';
import { leavesItsPlace, segments } from '../app/api/session.ts';

const decision = (policy: string, rule: string | null, ...capabilities: readonly string[]) =>
  decisionIn(policy, { decisions: [{ path: 'x', capabilities, rule }] });

describe('the explanation of a denial', () => {
  it('names the rule that decides, and the rules that do not count', () => {
    const decisions = [decision('wide', 'transit/*', 'update'), decision('exact', 'transit/encrypt/orders', 'deny')];
    const { isAllowed, sentences } = explain(['deny'], 'update', decisions, 'transit/encrypt/orders');
    expect(isAllowed).to.equal(false);
    expect(sentences).to.deep.equal([
      'Policy wide has the rule "transit/*"; it does not count here, because "transit/encrypt/orders" is more specific.',
      'Policy exact has the rule "transit/encrypt/orders", which denies it.',
    ]);
  });

  it('says that no policy has a rule, but only if all could be evaluated', () => {
    expect(explain(['deny'], 'read', [decision('a', null, 'deny')], '').sentences.join()).to.match(
      /No policy of the token has a rule/,
    );
    const unread = { ...decision('b', null), error: 'your token may not do this' };
    expect(explain(['deny'], 'read', [unread], undefined).sentences).to.deep.equal([
      'Policy b could not be evaluated: your token may not do this.',
    ]);
  });

  it('follows the decision of the node, not its own', () => {
    expect(explain(['read'], 'read', [], undefined).isAllowed).to.equal(true);
    expect(explain(['deny'], 'read', [decision('a', 'x', 'read')], 'x').isAllowed).to.equal(false);
    expect(explain(['root'], 'sudo', [], undefined).isAllowed).to.equal(true);
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
