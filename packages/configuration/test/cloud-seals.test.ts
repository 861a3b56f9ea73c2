import { readFileSync } from 'node:fs';
import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { parse } from 'yaml';
import { parseConfig } from '../src/config.ts';

const minimal = {
  node_id: 'n1',
  data_dir: '/var/lib/transitd',
  listeners: [{ address: '127.0.0.1:8200', tls_disable: true }],
};
const aws = { type: 'awskms', region: 'eu-central-1', kms_key_id: 'alias/unseal' };
const role = 'arn:aws:iam::111122223333:role/unseal';
const azure = { type: 'azurekeyvault', vault_name: 'transitd-seal', key_name: 'unseal' };
const google = { type: 'gcpckms', project: 'p', region: 'global', key_ring: 'r', crypto_key: 'k' };
const sealOf = (seal: object, environment: NodeJS.ProcessEnv = {}) => parseConfig({ ...minimal, seal }, environment).seal;

describe('the configuration of a seal with a key service', () => {
  it('is accepted as the page on seals shows it', () => {
    const page = readFileSync(new URL('../../../docs/seals.md', import.meta.url), 'utf8');
    for (const type of ['awskms', 'azurekeyvault', 'gcpckms']) {
      const [, block = ''] = new RegExp(`\\n## ${type}\\n[^]*?\`\`\`yaml\\n([^]*?)\`\`\``).exec(page) ?? [];
      const { seal } = parse(block) as { seal: object };
      expect(sealOf(seal)).to.include({ type });
    }
  });

  for (const { what, seal, says } of [
    { what: 'an endpoint without TLS', seal: { ...aws, endpoint: 'http://kms.example' }, says: /seal.endpoint.*https/ },
    { what: 'a secret', seal: { ...aws, secret_key: 'x' }, says: /secret_key/ },
    ...['fips-us-east-1', 'us-east-1-fips', 'aws-global'].map((one) => ({
      ...{ what: `the pseudo-region ${one}`, seal: { ...aws, region: one }, says: /seal.region: must be a region/ },
    })),
    { what: 'a region that is no host name', seal: { ...aws, region: 'evil.example/' }, says: /seal.region/ },
    { what: 'a file in the data directory', seal: { ...aws, credentials_file: '/var/lib/transitd/c' }, says: /inside data_dir/ },
    {
      what: 'a token in the data directory',
      seal: { ...aws, role_arn: role, web_identity_token_file: '/var/lib/transitd/t' },
      says: /inside data_dir/,
    },
    { what: 'a token without a role', seal: { ...aws, web_identity_token_file: '/run/t' }, says: /needs role_arn/ },
    { what: 'the name of a session without a role', seal: { ...aws, role_session_name: 'n1' }, says: /needs role_arn/ },
    {
      what: 'two sources of credentials',
      seal: { ...aws, role_arn: role, web_identity_token_file: '/run/t', credentials_file: '/run/c' },
      says: /both credentials_file and web_identity_token_file/,
    },
    { what: 'a role that is no ARN', seal: { ...aws, role_arn: 'unseal' }, says: /seal.role_arn.*arn:aws:iam::/ },
    { what: 'a vault that is another host', seal: { ...azure, vault_name: 'a.evil.example' }, says: /seal.vault_name/ },
    { what: 'a secret without an application', seal: { ...azure, client_secret_env: 'S' }, says: /tenant_id and client_id/ },
    {
      what: 'two secrets',
      seal: { ...azure, tenant_id: 't', client_id: 'c', client_secret_env: 'S', client_secret_file: '/s' },
      says: /both client_secret_file and client_secret_env/,
    },
    { what: 'a path in a name', seal: { ...google, crypto_key: 'k/../other' }, says: /seal.crypto_key/ },
  ])
    it(`is refused with ${what}, in one sentence that names the key`, () => {
      expect(() => sealOf(seal))
        .to.throw(StartError, says)
        .with.property('message')
        .that.does.not.include('\n');
    });

  for (const [seal, names] of [
    [aws, ['AWS_SHARED_CREDENTIALS_FILE', 'AWS_WEB_IDENTITY_TOKEN_FILE', 'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE']],
    [azure, ['AZURE_FEDERATED_TOKEN_FILE']],
  ] as const)
    it(`is refused if a variable of ${seal.type} names a file in the data directory`, () => {
      for (const name of names) {
        expect(() => sealOf(seal, { [name]: '/var/lib/transitd/x' })).to.throw(StartError, /the file \S+x is inside data_dir/);
        expect(sealOf(seal, { [name]: '/run/x' })).to.include({ type: seal.type });
      }
    });

  it('is filled from the variables of the peers, which never replace the file', () => {
    const variables = {
      AWS_REGION: 'us-east-1',
      AWS_DEFAULT_REGION: 'us-east-2',
      BAO_AWSKMS_SEAL_KEY_ID: 'alias/other',
      AZURE_TENANT_ID: 'tenant',
      AZURE_CLIENT_ID: 'client',
      AZURE_CLIENT_SECRET: 'secret',
      VAULT_AZUREKEYVAULT_VAULT_NAME: 'vault',
      VAULT_AZUREKEYVAULT_KEY_NAME: 'key',
      GOOGLE_PROJECT: 'project',
      GOOGLE_REGION: 'europe-west3',
      GOOGLE_APPLICATION_CREDENTIALS: '/run/secrets/account.json',
      VAULT_GCPCKMS_SEAL_KEY_RING: 'ring',
      VAULT_GCPCKMS_SEAL_CRYPTO_KEY: 'key',
    };
    const filled = (type: string) => parseConfig(minimal, { ...variables, VAULT_SEAL_TYPE: type }).seal;
    expect(filled('awskms')).to.deep.equal({ type: 'awskms', region: 'us-east-1', kms_key_id: 'alias/other' });
    expect(filled('azurekeyvault')).to.deep.equal({
      ...{ type: 'azurekeyvault', vault_name: 'vault', key_name: 'key', tenant_id: 'tenant', client_id: 'client' },
      ...{ client_secret_env: 'AZURE_CLIENT_SECRET', environment: 'AZUREPUBLICCLOUD' },
    });
    expect(filled('gcpckms')).to.deep.equal({
      ...{ type: 'gcpckms', project: 'project', region: 'europe-west3', key_ring: 'ring', crypto_key: 'key' },
      credentials_file: '/run/secrets/account.json',
    });
    expect(sealOf(aws, variables)).to.deep.equal(aws);
    const secret = { tenant_id: 't', client_id: 'c', client_secret_file: '/run/secrets/s' };
    expect(sealOf({ ...azure, ...secret }, variables))
      .to.include(secret)
      .and.not.have.property('client_secret_env');
  });

  describe('and the seal that the cluster moves from', () => {
    const variables = {
      VAULT_SEAL_TYPE: 'awskms',
      AWS_REGION: 'us-east-1',
      VAULT_AWSKMS_SEAL_KEY_ID: 'alias/one',
      VAULT_ADDR: 'https://keys.example:8200',
      VAULT_TOKEN: 'secret',
      VAULT_TRANSIT_SEAL_KEY_NAME: 'unseal',
    };
    const moved = (input: object, more: object = {}) => parseConfig({ ...minimal, ...input }, { ...variables, ...more });

    it('are both filled from the variables of the peers, each from those of its type', () => {
      const { seal, migrate_seal_from: before } = moved({ migrate_seal_from: { type: 'transit' } });
      expect(seal).to.deep.equal({ type: 'awskms', region: 'us-east-1', kms_key_id: 'alias/one' });
      expect(before).to.include({
        type: 'transit',
        address: 'https://keys.example:8200',
        key_name: 'unseal',
        token_env: 'VAULT_TOKEN',
      });
    });

    it('keep what the file says', () => {
      const migrate_seal_from = { type: 'transit', address: 'https://other.example', token_file: '/run/secrets/token' };
      const { migrate_seal_from: before } = moved({ migrate_seal_from });
      expect(before)
        .to.include({ ...migrate_seal_from, key_name: 'unseal' })
        .and.not.have.property('token_env');
    });

    it('do not share variables if they have one type: the present seal is complete in the file', () => {
      const from = (migrate_seal_from: object) => () => moved({ seal: { type: 'awskms', name: 'new' }, migrate_seal_from });
      expect(from({ type: 'awskms' })).to.throw(StartError, /migrate_seal_from\.(region|kms_key_id)/);
      const complete = { type: 'awskms', region: 'us-east-2', kms_key_id: 'alias/two' };
      expect(from(complete)()).to.deep.include({ migrate_seal_from: complete });
    });

    it('need a type in the file: no variable begins a migration', () => {
      expect(moved({})).to.not.have.property('migrate_seal_from');
    });
  });
});
