import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseConfig } from '@transitd/configuration';
import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { clientVariables, connectionSettings, formatOf, hasAddress, tokenFile } from '../../src/session/environment.ts';
import { openSession } from '../../src/session/session.ts';
import { deleteToken, readToken, storeToken } from '../../src/session/token-file.ts';

describe('the server address', () => {
  for (const { options = {}, environment = {}, expected, because } of [
    { expected: 'http://127.0.0.1:8200', because: 'neither option nor variable is set' },
    { environment: { BAO_ADDR: 'http://b' }, expected: 'http://b', because: 'only the last of three variables is set' },
    {
      environment: { BAO_ADDR: 'http://b', VAULT_ADDR: 'http://v' },
      expected: 'http://v',
      because: 'VAULT_ takes precedence over BAO_',
    },
    {
      environment: { VAULT_ADDR: 'http://v', TRANSITD_ADDR: 'http://t' },
      expected: 'http://t',
      because: 'TRANSITD_ takes precedence over both',
    },
    {
      environment: { VAULT_ADDR: 'http://v', TRANSITD_ADDR: '' },
      expected: 'http://v',
      because: 'an empty variable counts as unset',
    },
    {
      environment: { TRANSITD_ADDR: 'http://t' },
      options: { address: 'http://o' },
      expected: 'http://o',
      because: 'an option takes precedence over variables',
    },
    {
      environment: { TRANSITD_ADDR: 'http://a, http://b' },
      expected: 'http://a http://b',
      because: 'a variable may hold several addresses',
    },
  ])
    it(`is ${expected}: ${because}`, () => {
      expect(connectionSettings(options, environment).addresses.join(' ')).to.equal(expected);
      expect(hasAddress(options, environment)).to.equal(because !== 'neither option nor variable is set');
    });

  it('comes with other settings, which have the same precedence', () => {
    const environment = {
      ...{ TRANSITD_CACERT: 'ca', VAULT_NAMESPACE: 'ns', BAO_TOKEN: 'b', VAULT_TOKEN: 'v', BAO_TLS_SERVER_NAME: 'n1' },
      ...{ VAULT_CLIENT_CERT: 'cert', BAO_CLIENT_KEY: 'key', VAULT_SKIP_VERIFY: 'T' },
    };
    const { tls, ...settings } = connectionSettings({}, environment);
    expect(settings).to.include({ namespace: 'ns', token: 'v' });
    expect(tls).to.deep.equal({ caFile: 'ca', certFile: 'cert', keyFile: 'key', serverName: 'n1', skipVerify: true });
    const options = {
      caCert: 'x',
      clientCert: 'c',
      clientKey: 'k',
      tlsServerName: 's',
      tlsSkipVerify: true,
      namespace: 'y',
    } as const;
    const chosen = connectionSettings(options, { ...environment, VAULT_SKIP_VERIFY: 'false' });
    expect(chosen.namespace).to.equal('y');
    expect(chosen.tls).to.deep.equal({ caFile: 'x', certFile: 'c', keyFile: 'k', serverName: 's', skipVerify: true });
    expect(connectionSettings({}, {}).tls.skipVerify).to.equal(false);
  });

  it('takes a file of authorities before a folder, and an option before a variable', () => {
    const authorities = (...given: Parameters<typeof connectionSettings>) => {
      const { caFile, caPath } = connectionSettings(...given).tls;
      return { caFile, caPath };
    };
    const both = { VAULT_CACERT: 'file', TRANSITD_CAPATH: 'folder' };
    expect(authorities({}, { VAULT_CAPATH: 'folder' })).to.deep.equal({ caFile: undefined, caPath: 'folder' });
    expect(authorities({}, both)).to.deep.equal({ caFile: 'file', caPath: undefined });
    expect(authorities({ caPath: 'mine' }, both)).to.deep.equal({ caFile: undefined, caPath: 'mine' });
    expect(authorities({ caCert: 'own', caPath: 'mine' }, both)).to.deep.equal({ caFile: 'own', caPath: undefined });
  });
});

describe('the format of the output', () => {
  it('comes from the option, a variable, or is a table', () => {
    expect(formatOf(undefined, {})).to.equal('table');
    expect(formatOf(undefined, { VAULT_FORMAT: 'json' })).to.equal('json');
    expect(formatOf(undefined, { TRANSITD_FORMAT: 'table', VAULT_FORMAT: 'json' })).to.equal('table');
    expect(formatOf('table', { TRANSITD_FORMAT: 'yaml' })).to.equal('table');
    expect(() => formatOf(undefined, { VAULT_FORMAT: 'yaml' })).to.throw(StartError, /VAULT_FORMAT must be table or json/);
  });
});

it('a node ignores every variable of the client when it reads its configuration', () => {
  const environment = Object.fromEntries(clientVariables.map((name) => [`TRANSITD_${name}`, 'x']));
  expect(
    parseConfig({ node_id: 'n1', data_dir: '/data', listeners: [{ address: '127.0.0.1:0', tls_disable: true }] }, environment),
  ).to.include({
    node_id: 'n1',
  });
});

describe('the stored token of the last login', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-token-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('is stored in a file that only its owner can read, replaced and deleted', () => {
    const file = tokenFile({ HOME: folder });
    expect(file).to.equal(join(folder, '.transitd-token'));
    expect(readToken(file)).to.equal(undefined);
    storeToken(file, 's.one');
    storeToken(file, 's.two');
    expect(readToken(file)).to.equal('s.two');
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    expect(readFileSync(file, 'utf8')).to.equal('s.two\n');
    deleteToken(file);
    expect(readToken(file)).to.equal(undefined);
  });

  it('is refused if other users can read its file', () => {
    const file = join(folder, 't');
    writeFileSync(file, 's.one', { mode: 0o644 });
    expect(() => readToken(file)).to.throw(StartError, /has mode 0644/);
  });

  it('fails with an error when it cannot be stored', () => {
    expect(() => storeToken(join(folder, 'no/such/folder'), 's.one')).to.throw(StartError, /cannot be written: ENOENT/);
  });

  it('is used only if the environment has no token', () => {
    storeToken(tokenFile({ HOME: folder }), 's.stored');
    expect(openSession({}, { HOME: folder }).token).to.equal('s.stored');
    expect(openSession({}, { HOME: folder, BAO_TOKEN: 's.environment' }).token).to.equal('s.environment');
  });

  for (const [what, environment] of [
    ['an invalid address', { TRANSITD_ADDR: 'nonsense' }],
    ['a token that contains a newline', { TRANSITD_TOKEN: 's.one\ntwo' }],
    ['a CA file that does not exist', { TRANSITD_CACERT: '/nowhere/ca.pem' }],
    ['a CA folder that does not exist', { VAULT_CAPATH: '/nowhere' }],
    ['a CA folder with a file that is not a certificate', { VAULT_CAPATH: import.meta.dirname }],
    ['neither true nor false for verification', { BAO_SKIP_VERIFY: 's.one' }],
    ['a CA file that is not a certificate', { TRANSITD_CACERT: import.meta.filename }],
  ] as const)
    it(`refuses ${what}`, () => {
      expect(() => openSession({}, { HOME: folder, ...environment }))
        .to.throw(StartError)
        .with.property('message')
        .that.does.not.include('s.one');
    });
});
