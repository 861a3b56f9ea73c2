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
    { what: 'a region that is no host name', seal: { ...aws, region: 'evil.example/' }, says: /seal.region/ },
    { what: 'a file in the data directory', seal: { ...aws, credentials_file: '/var/lib/transitd/c' }, says: /inside data_dir/ },
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
});
