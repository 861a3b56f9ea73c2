import { type ScryptOptions, scrypt, scryptSync } from 'node:crypto';
import { expect } from 'chai';
import { refusal } from '../../../access/test/fixtures.ts';
import { Passwords } from '../../src/auth/userpass/passwords.ts';
import { withMethod } from './login-setup.ts';

const wrong = 'invalid_request: invalid username or password';

async function withAmy() {
  const all = await withMethod('userpass');
  await all.userpass.write(await all.mount(), 'Amy', { password: 'correct horse', token: { policies: ['A'], ttlS: 600 } });
  const guess = async (name: string, password: string, address?: string) =>
    all.userpass.login(await all.login(`auth/m/login/${name}`, address), name, password);
  return { ...all, guess };
}

describe('a userpass login', () => {
  it('creates a token with the settings of the user, for any case of the name', async () => {
    const { guess, who } = await withAmy();
    const { token, record, ttlS } = await guess('aMy', 'correct horse');
    expect(record).to.deep.include({
      policies: ['a', 'default'],
      displayName: 'm-amy',
      meta: { username: 'amy' },
      path: 'auth/m/login/aMy',
      parent: '',
      renewable: true,
    });
    expect(ttlS).to.equal(600);
    expect((await who(token))?.record).to.deep.equal(record);
  });

  it('gets the same refusal for a wrong password, an unknown name and an invalid name', async () => {
    const { guess } = await withAmy();
    for (const [name, password] of [
      ['amy', 'Correct horse'],
      ['amy', 'correct horse '],
      ['amy', 'x'.repeat(70_000)],
      ['nobody', 'correct horse'],
      ['a b', 'correct horse'],
      ['x'.repeat(500), 'correct horse'],
    ] as const)
      expect(await refusal(guess(name, password))).to.equal(wrong);
  });

  it('stores only a salted hash of the password', async () => {
    const { userpass, mount, records } = await withAmy();
    await userpass.write(await mount(), 'bob', { password: 'correct horse', token: {} });
    const [amy, bob] = (await records('access/login/')).map(({ value }) => Buffer.from(value).toString());
    expect(amy).not.to.include('correct horse');
    expect(JSON.parse(amy ?? '').password.hash).not.to.equal(JSON.parse(bob ?? '').password.hash);
  });

  it('requires a new password as soon as it is written', async () => {
    const { userpass, guess, mount } = await withAmy();
    await userpass.write(await mount(), 'amy', { password: 'another', token: {} });
    expect(await refusal(guess('amy', 'correct horse'))).to.equal(wrong);
    expect((await guess('amy', 'another')).record.policies).to.deep.equal(['a', 'default']);
  });

  it('is locked out for 15 minutes after five failures, also for unknown names', async () => {
    const { guess, clock } = await withAmy();
    for (const name of ['amy', 'nobody']) {
      for (let failures = 0; failures < 5; failures += 1) expect(await refusal(guess(name, 'x'))).to.equal(wrong);
      expect(await refusal(guess(name, 'correct horse'))).to.equal('locked_out: permission denied');
    }
    clock.now += 15 * 60_000 - 1;
    expect(await refusal(guess('amy', 'correct horse'))).to.equal('locked_out: permission denied');
    clock.now += 1;
    expect(await refusal(guess('amy', 'correct horse'))).to.equal('none');
  });

  it('counts every one of many concurrent failures', async () => {
    const { guess } = await withAmy();
    const outcomes = await Promise.all(Array.from({ length: 12 }, () => refusal(guess('amy', 'x'))));
    expect(outcomes.filter((outcome) => outcome === wrong)).to.have.lengthOf(5);
  });

  it('is unlocked by a write of the user, and a correct password clears the failures', async () => {
    const { userpass, guess, mount } = await withAmy();
    const fail = async (times: number) => {
      for (let failures = 0; failures < times; failures += 1) await refusal(guess('amy', 'x'));
    };
    await fail(4);
    await guess('amy', 'correct horse');
    await fail(4);
    expect(await refusal(guess('amy', 'correct horse'))).to.equal('none');
    await fail(5);
    await userpass.write(await mount(), 'amy', { password: 'another', token: {} });
    expect(await refusal(guess('amy', 'another'))).to.equal('none');
  });

  it('is refused outside the bound CIDRs of the user, and binds its token to them', async () => {
    const { userpass, guess, mount } = await withAmy();
    await userpass.write(await mount(), 'amy', { token: { boundCidrs: ['10.0.0.0/8'] } });
    expect(await refusal(guess('amy', 'correct horse'))).to.equal(await refusal(guess('amy', 'wrong')));
    expect((await guess('amy', 'correct horse', '10.1.2.3')).record.boundCidrs).to.deep.equal(['10.0.0.0/8']);
  });

  for (const password of ['correct horse', 'wrong'])
    it(`locks the user after five logins outside the bound CIDRs with the password ${password}`, async () => {
      const { userpass, guess, mount } = await withAmy();
      await userpass.write(await mount(), 'amy', { token: { boundCidrs: ['10.0.0.0/8'] } });
      for (let i = 0; i < 5; i++) expect(await refusal(guess('amy', password))).to.match(/^invalid_request: invalid username/);
      expect(await refusal(guess('amy', password))).to.equal('locked_out: permission denied');
      expect(await refusal(guess('amy', password, '10.1.2.3'))).to.equal('locked_out: permission denied');
    });

  it('creates no token if the user is deleted at the same time', async () => {
    const { userpass, guess, mount, store } = await withAmy();
    const { id } = await mount();
    store.afterGet = async (path) => {
      if (!path.endsWith('/user/amy')) return;
      delete store.afterGet;
      await userpass.users.delete(id, 'amy');
    };
    expect(await refusal(guess('amy', 'correct horse'))).to.match(/^too_many_conflicts/);
  });

  it('creates a token that can be renewed only while the user exists', async () => {
    const { userpass, guess, mount, registry, who } = await withAmy();
    const { token } = await guess('amy', 'correct horse');
    expect((await registry.renew({ token }, 0))?.ttlS).to.equal(600);
    await userpass.users.delete((await mount()).id, 'amy');
    expect(await refusal(registry.renew({ token }, 0))).to.match(/not renewable/);
    expect(await who(token)).to.include({ root: false });
  });

  it('can create batch tokens', async () => {
    const { logins, userpass, guess, mount, who } = await withAmy();
    await userpass.write(await mount(), 'amy', { token: { type: 'batch' } });
    const { token, record } = await guess('amy', 'correct horse');
    expect([token.slice(0, 2), record.renewable]).to.deep.equal(['b.', false]);
    expect((await who(token))?.record.policies).to.deep.equal(['a', 'default']);
    await logins.mounts.disable('m');
    expect(await who(token)).to.equal(undefined);
  });
});

describe('a password', () => {
  it('is hashed by scrypt (RFC 7914) with 32 MiB and three passes', async () => {
    const { salt, hash, ...work } = await new Passwords().hash('p');
    expect(work).to.deep.equal({ cost: 32_768, blockSize: 8, parallelization: 3 });
    const { N, r, p } = { N: work.cost, r: work.blockSize, p: work.parallelization };
    const expected = scryptSync('p', Buffer.from(salt, 'base64'), 32, { N, r, p, maxmem: 2 ** 28 });
    expect(hash).to.equal(expected.toString('base64'));
  });

  it('takes the same work for an unknown user, and is not hashed when too many wait', async () => {
    const passwords = new Passwords({ cost: 16, blockSize: 8, parallelization: 1 });
    const stored = await passwords.hash('p');
    expect(await passwords.matches('p', stored, '10.0.0.1')).to.equal(true);
    expect(await passwords.matches('q', stored, '10.0.0.1')).to.equal(false);
    expect(await passwords.matches('p', undefined, '10.0.0.1')).to.equal(false);
    const outcomes = await Promise.all(Array.from({ length: 200 }, () => refusal(passwords.matches('p', stored, '10.0.0.1'))));
    expect(outcomes.filter((outcome) => outcome.startsWith('busy_logins'))).to.have.lengthOf(200 - 130);
    expect(await passwords.matches('p', stored, '10.0.0.1')).to.equal(true);
  });

  it('waits for at most one hash of each other address; a full queue drops from the address with the most', async () => {
    const begun: string[] = [];
    const hash = ((password: string, ...rest: [Buffer, number, ScryptOptions, (error: Error | null, key: Buffer) => void]) => {
      begun.push(password);
      scrypt(password, ...rest);
    }) as typeof scrypt;
    const passwords = new Passwords({ cost: 16, blockSize: 8, parallelization: 1 }, hash);
    const matches = (password: string, address: string) => refusal(passwords.matches(password, undefined, address));
    const flood = Array.from({ length: 200 }, () => matches('flood', '10.0.0.1'));
    const others = [matches('another', '::ffff:10.0.0.2'), passwords.hash('operator')];
    await Promise.all([...flood, ...others]);
    expect(begun).to.have.lengthOf(130);
    expect(begun.slice(0, 5)).to.deep.equal(['flood', 'flood', 'flood', 'another', 'operator']);
  });
});

describe('a user', () => {
  for (const [change, text] of [
    [{ token: {} }, 'missing password'],
    [{ password: '', token: {} }, 'a password must have 1 to 4096'],
    [{ password: 'x'.repeat(4097), token: {} }, 'a password must have 1 to 4096'],
    [{ password: 'p', token: { policies: ['ROOT'] } }, 'auth methods cannot create root tokens'],
    [{ password: 'p', token: { ttlS: 2, maxTtlS: 1 } }, "'token_ttl' cannot be greater"],
    [{ password: 'p', token: { type: 'batch', periodS: 1 } }, "'token_type' cannot be 'batch'"],
    [{ password: 'p', token: { boundCidrs: ['x'] } }, 'token_bound_cidrs must hold address blocks'],
    [{ password: 'p', token: { numUses: -1 } }, 'cannot be negative'],
  ] as const)
    it(`is refused with ${JSON.stringify(change).slice(0, 60)}`, async () => {
      const { userpass, mount } = await withMethod('userpass');
      expect(await refusal(userpass.write(await mount(), 'u', change))).to.match(new RegExp(`^invalid_request: .*${text}`));
    });

  it('is not written after its auth method was disabled', async () => {
    const { logins, userpass, mount, records } = await withMethod('userpass');
    const before = await mount();
    await logins.mounts.disable('m');
    expect(await refusal(userpass.write(before, 'u', { password: 'p', token: {} }))).to.match(/^too_many_conflicts/);
    expect(await records('access/login/')).to.deep.equal([]);
  });
});
