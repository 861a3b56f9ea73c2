import { type RecordClock, systemClock } from '@transitd/process';
import { memoryStore } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { clockOf } from '../../../process/test/test-clock.ts';
import { AccessError, Policies } from '../../src/index.ts';
import { denies, permits } from '../../src/policy/acl.ts';
import { gatedStore } from '../gated-store.ts';

const grants = (path: string): string => `path "${path}" { capabilities = ["read"] }`;
const reads = { capability: 'read' } as const;

function setup(inner = memoryStore(), clock: RecordClock = systemClock) {
  const store = gatedStore(inner);
  return { store, policies: new Policies({ store, clock }) };
}

async function refusal(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
  } catch (error) {
    if (error instanceof AccessError) return `${error.code}: ${error.message}`;
    throw error;
  }
  return 'none';
}

describe('Policies', () => {
  it('are written with a warning about a path that matches no request', async () => {
    const { policies } = await setup();
    expect(await policies.write('a', 'path "a//b" { capabilities = ["deny"] } path "c//" {} path "d/" {}')).to.deep.equal([
      '2 of its paths have an empty segment: they match no request',
    ]);
    expect(await policies.write('a', 'path "a/b/" { capabilities = ["list"] }')).to.deep.equal([]);
  });

  for (const [text, warning] of [
    ['path "a" { capabilities = ["read", "scan"] } path "b" { capabilities = ["scan"] }', /^the capability scan grants nothing/],
    ['path "a" { capabilities = ["recover"] }', /^the capability recover grants nothing/],
    [
      'path "a" { capabilities = ["subscribe"] subscribe_event_types = ["kv*"] }',
      /^the capability subscribe grants nothing: there are no event notifications$/,
    ],
    ['path "a" { capabilities = ["read"] expiration = "2030-01-31T12:00:00Z" }', /^1 of its rules have an expiration/],
    ['path "a/{{identity.entity.id}}/*" { capabilities = ["read"] }', /^1 of its paths have a template/],
    ['path "//a" { capabilities = ["read"] }', /^1 of its paths have an empty segment/],
    ['path "a/*/b" {} path "a*b*" {} path "a/*" {} path "*" {}', /^2 of its paths have a \* before their end/],
    ['path "a/b+" {} path "+a/b" {} path "+/a/+/b/+" {}', /^2 of its paths have a \+ beside other characters/],
    ['path "v1/transit/*" {} path "v1" {} path "/v1/x" {} path "v1x" {}', /^2 of its paths begin with v1\//],
  ] as const)
    it(`are written with a warning about ${text}`, async () => {
      const { policies } = setup();
      const warnings = await policies.write('a', text);
      expect(warnings).to.have.lengthOf(1);
      expect(warnings[0]).to.match(warning);
    });

  it('keep the restrictions but not the grants of a rule that has expired by only one of two clocks', async () => {
    const clock = { now: 500, dueNow: 500 };
    const store = memoryStore();
    const policies = new Policies({
      store,
      clock: clockOf(
        () => clock.now,
        () => clock.dueNow,
      ),
    });
    await policies.write('p', `${grants('a')} ${grants('b/*')} ${grants('d')}`);
    await policies.write('q', 'path "a" { capabilities = ["deny"] expiration = 1 }');
    await policies.write('r', 'path "b/c" { capabilities = ["list"] expiration = 1 }');
    await policies.write('s', 'path "d" { capabilities = ["read", "update"] expiration = 1 }');
    const may = async (path: string, capability: 'read' | 'update' = 'read'): Promise<boolean> =>
      permits(await policies.compile(['p', 'q', 'r', 's']), { capability, path });
    const all = async () => [await may('a'), await may('b/c'), await may('d'), await may('d', 'update')];
    expect(await all()).to.deep.equal([false, false, true, true]);
    clock.now = 1500;
    expect(await all(), 'by the later clock alone').to.deep.equal([false, false, true, false]);
    clock.now = 2600;
    clock.dueNow = 2600;
    expect(await all(), 'by both').to.deep.equal([true, true, true, false]);
  });

  it("with a template match no request, not even for the template's literal text", async () => {
    const { policies } = setup();
    await policies.write('p', 'path "a/{{x}}/*" { capabilities = ["read"] } path "b" { capabilities = ["read"] }');
    const acl = await policies.compile(['p']);
    expect(permits(acl, { ...reads, path: 'a/{{x}}/y' })).to.equal(false);
    expect(permits(acl, { ...reads, path: 'b' })).to.equal(true);
  });

  it('lose a rule at its expiration, in each time format', async () => {
    for (const expiration of ['"1970-01-01T00:00:10Z"', '"1970-01-01t01:00:10.0+01:00"', '10', '"10"']) {
      let now = 9_999;
      const { policies } = setup(
        memoryStore(),
        clockOf(() => now),
      );
      await policies.write('p', `path "a" { capabilities = ["read"] expiration = ${expiration} } ${grants('b')}`);
      await policies.write('q', `path "b" { capabilities = ["deny"] expiration = ${expiration} }`);
      const may = async (path: string) => permits(await policies.compile(['p', 'q']), { ...reads, path });
      const acl = await policies.compile(['p', 'q']);
      expect(acl.goodUntilMs, expiration).to.equal(10_000);
      expect([await may('a'), await may('b')], expiration).to.deep.equal([true, false]);
      now = 10_000;
      expect(policies.compiled(['p', 'q']), expiration).to.equal(undefined);
      expect([await may('a'), await may('b')], expiration).to.deep.equal([false, true]);
    }
  });

  it('have at most 10,000 rules in force together; a token with more is refused', async () => {
    let now = 1_000;
    const { policies } = setup(
      memoryStore(),
      clockOf(() => now),
    );
    const rules = (word: string, count: number): string =>
      Array.from({ length: count }, (_, n) => `path "${word}/+/${n}" { capabilities = ["read"] }`).join('\n');
    await policies.write('a', rules('a', 5000));
    await policies.write('b', rules('b', 5000));
    await policies.write('c', 'path "a/x/1" { capabilities = ["deny"] expiration = 2 }');
    expect(await refusal(policies.compile(['a', 'b', 'c']))).to.equal(
      'too_many_rules: the policies of this token have more than 10000 rules together',
    );
    const acl = await policies.compile(['a', 'b']);
    expect(permits(acl, { ...reads, path: 'b/x/4999' })).to.equal(true);
    now = 2_000;
    expect(permits(await policies.compile(['a', 'b', 'c']), { ...reads, path: 'a/x/1' })).to.equal(true);
  });

  it('list at most 131,072 parameters and values together; a token with more is refused', async () => {
    const { policies } = setup();
    const rule = (list: string, count: number): string =>
      `path "a" { capabilities = ["update"] ${list} = { x = [${Array.from({ length: count }, (_, n) => n).join()}] } }`;
    await policies.write('a', rule('allowed_parameters', 70_000));
    await policies.write('b', rule('denied_parameters', 61_070));
    await policies.write('c', 'path "b" { capabilities = ["update"] required_parameters = ["x"] }');
    await policies.compile(['a', 'b']);
    await policies.write('ended', rule('allowed_parameters', 70_000).replace('capabilities', 'expiration = 1 capabilities'));
    await policies.compile(['a', 'b', 'ended']);
    expect(await refusal(policies.compile(['a', 'b', 'c']))).to.equal(
      'too_many_rules: the policies of this token list more than 131072 parameters and values together',
    );
  });

  it('are read and compiled while other work runs', async () => {
    const { policies } = setup();
    let turns = 0;
    const others = setInterval(() => {
      turns += 1;
    });
    const items = Array.from({ length: 20_000 }, (_, n) => `"v${n}"`).join();
    const long = `path "a" { capabilities = ["update"] denied_parameters = { x = [${items}] } }`;
    const many = Array.from({ length: 4999 }, (_, n) => `path "+/${n}" { capabilities = ["read"] }`).join('\n');
    await policies.write('p', `${long}\n${many}`);
    const written = turns;
    await policies.compile(['p']);
    clearInterval(others);
    expect(written).to.be.greaterThan(1);
    expect(turns - written).to.be.greaterThan(1);
  });

  it('keep the text as written, under a case-insensitive name', async () => {
    const { policies } = setup();
    await policies.write('My-App', `# Grüße\n${grants('a')}\n`);
    expect(await policies.read('my-app')).to.equal(`# Grüße\n${grants('a')}\n`);
    expect(await policies.list()).to.deep.equal(['default', 'my-app', 'root']);
    expect(await policies.exists('my-app')).to.equal(true);
    await policies.delete('MY-APP');
    expect(await refusal(policies.read('my-app'))).to.match(/^not_found/);
    await policies.delete('my-app');
  });

  it('list all names, also more than one page of the store', async () => {
    const { policies } = setup();
    for (let n = 0; n < 1100; n += 1) await policies.write(`p${n}`, grants('a'));
    expect(await policies.list()).to.have.lengthOf(1102);
  });

  it('refuse to write a text that cannot be parsed', async () => {
    const { policies } = setup();
    await policies.write('p', grants('a'));
    expect(await refusal(policies.write('p', 'path "x" {'))).to.match(/^invalid_policy: failed to parse policy: 1:11: /);
    expect(await policies.read('p')).to.equal(grants('a'));
  });

  it('protect root and default', async () => {
    const { policies } = setup();
    expect(await policies.read('root')).to.equal('');
    expect(await policies.read('default')).to.include('auth/token/lookup-self');
    expect(await refusal(policies.write('Root', grants('a')))).to.equal('invalid_request: cannot update "root" policy');
    expect(await refusal(policies.delete('root'))).to.equal('invalid_request: cannot delete "root" policy');
    expect(await refusal(policies.delete('default'))).to.equal('invalid_request: cannot delete "default" policy');
    await policies.write('default', grants('mine'));
    const acl = await policies.compile(['default']);
    expect([permits(acl, { ...reads, path: 'mine' }), permits(acl, { ...reads, path: 'auth/token/lookup-self' })]).to.deep.equal([
      true,
      false,
    ]);
  });

  for (const name of ['', ' ', 'a//b', '/a', 'a/', 'a/../b', 'a\nb', 'x'.repeat(513), '\ud800'])
    it(`refuse the name ${JSON.stringify(name.slice(0, 10))}`, async () => {
      expect(await refusal(setup().policies.write(name, grants('a')))).to.match(/^invalid_request/);
    });

  it('are compiled once until a policy changes', async () => {
    const { store, policies } = setup();
    await policies.write('p', grants('a'));
    const acl = await policies.compile(['default', 'none', 'p']);
    const { reads: before } = store;
    expect(await policies.compile(['default', 'none', 'p'])).to.equal(acl);
    expect(policies.compiled(['default', 'none', 'p'])).to.equal(acl);
    expect(store.reads).to.equal(before);
    await policies.write('p', grants('b'));
    expect(policies.compiled(['default', 'none', 'p'])).to.equal(undefined);
    const anew = await policies.compile(['default', 'none', 'p']);
    expect([permits(anew, { ...reads, path: 'a' }), permits(anew, { ...reads, path: 'b' })]).to.deep.equal([false, true]);
    await policies.delete('p');
    expect(permits(await policies.compile(['default', 'none', 'p']), { ...reads, path: 'b' })).to.equal(false);
  });

  it('keep compiled sets that do not contain a changed policy', async () => {
    const { policies } = setup();
    for (const name of ['p', 'pp']) await policies.write(name, grants('a'));
    const [other, both] = [await policies.compile(['default', 'pp']), await policies.compile(['p', 'pp'])];
    await policies.write('p', grants('b'));
    expect(await policies.compile(['default', 'pp'])).to.equal(other);
    expect(await policies.compile(['p', 'pp'])).not.to.equal(both);
  });

  it('drop all compiled sets when any record may have changed', async () => {
    const { policies } = setup(memoryStore({ reportsEverything: true }));
    await policies.write('p', grants('a'));
    const before = await policies.compile(['p']);
    const { generation } = policies;
    await policies.write('q', grants('b'));
    expect(policies.generation).to.be.above(generation);
    expect(policies.compiled(['p'])).to.equal(undefined);
    expect(await policies.compile(['p'])).not.to.equal(before);
  });

  it('refuse a policy with more than 5,000 path blocks', async () => {
    const { policies } = setup();
    await policies.write('p', 'path "a" {}\n'.repeat(5000));
    expect(await refusal(policies.write('p', 'path "a" {}\n'.repeat(5001)))).to.equal(
      'invalid_policy: failed to parse policy: 5001:6: a policy must have at most 5000 path blocks',
    );
  });

  it('merge blocks for one path in time linear in the text', async () => {
    const { policies } = setup();
    const begun = process.cpuUsage();
    const block = (n: number): string =>
      `path "a" { capabilities = ["update"] allowed_parameters = { x = ["${n}"] "${n}" = [] } required_parameters = ["x"] }\n`;
    await policies.write('p', Array.from({ length: 5000 }, (_, n) => block(n)).join(''));
    const acl = await policies.compile(['p']);
    const may = (x: string): boolean => permits(acl, { capability: 'update', path: 'a', parameters: { x } });
    expect([may('0'), may('4999'), may('5000')]).to.deep.equal([true, true, false]);
    // CPU time, which does not depend on other processes.
    const { user, system } = process.cpuUsage(begun);
    expect(user + system).to.be.below(5_000_000);
  });

  it('neither return nor cache a policy that was read before a change', async () => {
    const { store, policies } = setup();
    await policies.write('p', grants('a'));
    store.afterGet = async () => {
      delete store.afterGet;
      await policies.write('p', 'path "a" { capabilities = ["deny"] }');
    };
    expect(denies(await policies.compile(['p']), 'a')).to.equal(true);
    expect(denies(await policies.compile(['p']), 'a')).to.equal(true);
  });

  it('fail for a text that this version cannot parse', async () => {
    const { store, policies } = setup();
    await store.commit({ conditions: [], writes: [{ path: 'access/policy/p', value: Buffer.from('\u0001future "x" {}') }] });
    await store.commit({ conditions: [], writes: [{ path: 'access/policy/q', value: Buffer.from('\u0002') }] });
    for (const name of ['p', 'q']) expect(await refusal(policies.compile([name]))).to.match(/^record_unreadable/);
  });
});
