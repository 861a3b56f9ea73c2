import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { connectionSettings, namesServer, tokenFile } from '../../src/session/environment.ts';
import { openSession } from '../../src/session/session.ts';
import { forgetToken, keepToken, keptToken } from '../../src/session/token-file.ts';

describe('where a command asks', () => {
  for (const { options = {}, environment = {}, expected, because } of [
    { expected: 'http://127.0.0.1:8200', because: 'nothing is said' },
    { environment: { BAO_ADDR: 'http://b' }, expected: 'http://b', because: 'of three variables only the last is set' },
    { environment: { BAO_ADDR: 'http://b', VAULT_ADDR: 'http://v' }, expected: 'http://v', because: 'VAULT_ goes before BAO_' },
    {
      environment: { VAULT_ADDR: 'http://v', TRANSITD_ADDR: 'http://t' },
      expected: 'http://t',
      because: 'ours goes before both',
    },
    { environment: { VAULT_ADDR: 'http://v', TRANSITD_ADDR: '' }, expected: 'http://v', because: 'an empty one is not set' },
    {
      environment: { TRANSITD_ADDR: 'http://t' },
      options: { address: 'http://o' },
      expected: 'http://o',
      because: 'an option is nearest',
    },
    { environment: { TRANSITD_ADDR: 'http://a, http://b' }, expected: 'http://a http://b', because: 'there may be several' },
  ])
    it(`is ${expected}: ${because}`, () => {
      expect(connectionSettings(options, environment).addresses.join(' ')).to.equal(expected);
      expect(namesServer(options, environment)).to.equal(because !== 'nothing is said');
    });

  it('takes authority, namespace and token in the same way', () => {
    const environment = { TRANSITD_CACERT: 'ca', VAULT_NAMESPACE: 'ns', BAO_TOKEN: 'b', VAULT_TOKEN: 'v' };
    expect(connectionSettings({}, environment)).to.include({ caFile: 'ca', namespace: 'ns', token: 'v' });
    expect(connectionSettings({ caCert: 'x', namespace: 'y' }, environment)).to.include({ caFile: 'x', namespace: 'y' });
  });
});

describe('the token of the last login', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-token-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('is kept in a file that its owner alone can read, replaced whole, and forgotten', () => {
    const file = tokenFile({ HOME: folder });
    expect(file).to.equal(join(folder, '.transitd-token'));
    expect(keptToken(file)).to.equal(undefined);
    keepToken(file, 's.one');
    keepToken(file, 's.two');
    expect(keptToken(file)).to.equal('s.two');
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    expect(readFileSync(file, 'utf8')).to.equal('s.two\n');
    forgetToken(file);
    expect(keptToken(file)).to.equal(undefined);
  });

  it('is not used from a file that others can read', () => {
    const file = join(folder, 't');
    writeFileSync(file, 's.one', { mode: 0o644 });
    expect(() => keptToken(file)).to.throw(StartError, /has mode 0644/);
  });

  it('is not lost without a word when it cannot be kept', () => {
    expect(() => keepToken(join(folder, 'no/such/folder'), 's.one')).to.throw(StartError, /cannot be written: ENOENT/);
  });

  it('comes behind the environment', () => {
    keepToken(tokenFile({ HOME: folder }), 's.kept');
    expect(openSession({}, { HOME: folder }).token).to.equal('s.kept');
    expect(openSession({}, { HOME: folder, BAO_TOKEN: 's.given' }).token).to.equal('s.given');
  });

  for (const [what, environment] of [
    ['an address that is none', { TRANSITD_ADDR: 'nonsense' }],
    ['a token with a line end in it', { TRANSITD_TOKEN: 's.one\ntwo' }],
    ['an authority that is not there', { TRANSITD_CACERT: '/nowhere/ca.pem' }],
    ['an authority that is no certificate', { TRANSITD_CACERT: import.meta.filename }],
  ] as const)
    it(`does not begin with ${what}`, () => {
      expect(() => openSession({}, { HOME: folder, ...environment }))
        .to.throw(StartError)
        .with.property('message')
        .that.does.not.include('s.one');
    });
});
