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
const transit = (more: object = {}) => ({
  type: 'transit',
  address: 'https://keys.example:8200',
  key_name: 'unseal',
  token_env: 'T',
  ...more,
});
const sealed = (more: object) => ({ ...minimal, seal: transit(more) });

describe('the configuration of a transit seal', () => {
  for (const { what, input, says } of [
    { what: 'no token', input: sealed({ token_env: undefined }), says: /token_file and token_env/ },
    { what: 'two tokens', input: sealed({ token_file: '/t' }), says: /token_file and token_env/ },
    {
      what: 'a token inside the data directory',
      input: sealed({ token_env: undefined, token_file: '/var/lib/transitd/t' }),
      says: /inside data_dir/,
    },
    { what: 'no TLS', input: sealed({ address: 'http://keys.example:8200' }), says: /seal.address.*https/ },
    {
      what: 'its own API address',
      input: { ...sealed({}), api_addr: 'https://keys.example:8200' },
      says: /seal.address.*unseal itself/,
    },
    { what: 'its own listener', input: sealed({ address: 'http://127.0.0.1:8200' }), says: /seal.address.*unseal itself/ },
    { what: 'an empty segment in the mount path', input: sealed({ mount_path: 'a//b' }), says: /seal.mount_path/ },
    { what: 'a client certificate without its key', input: sealed({ tls: { cert_file: '/c' } }), says: /seal.tls.*cert_file/ },
  ])
    it(`is refused with ${what}, in one sentence that names the key`, () => {
      expect(() => parseConfig(input))
        .to.throw(StartError, says)
        .with.property('message')
        .that.does.not.include('\n');
    });

  it('accepts http on loopback, and a token in a variable with the prefix of this program', () => {
    const config = parseConfig(sealed({ address: 'http://[::1]:8300', token_env: 'TRANSITD_UNSEAL' }), { TRANSITD_UNSEAL: 'x' });
    expect(config.seal).to.include({ address: 'http://[::1]:8300', mount_path: 'transit' });
  });

  it('takes variables of digits and of true as they are where a key is a string', () => {
    const names = { TRANSITD_SEAL_KEY_NAME: '2026', TRANSITD_SEAL_NAMESPACE: '7', TRANSITD_SEAL_MOUNT_PATH: 'true' };
    const config = parseConfig(sealed({}), { ...names, TRANSITD_SEAL_DISABLE_RENEWAL: 'true', TRANSITD_NODE_ID: '1' });
    expect(config.seal).to.include({ key_name: '2026', namespace: '7', mount_path: 'true', disable_renewal: true });
    expect(config.node_id).to.equal('1');
    const token = { type: 'pkcs11', library: '1', key_label: '2', pin_env: 'PIN' };
    const variables = { TRANSITD_SEAL_TOKEN_LABEL: '3', TRANSITD_SEAL_SLOT: '4', TRANSITD_RAFT_HEARTBEAT: '1' };
    const pkcs11_libraries = [{ name: '1', path: '/l' }];
    const input = { ...minimal, seal: token, pkcs11_libraries, raft: { election_timeout: '9s' } };
    const { seal, raft } = parseConfig(input, variables);
    expect([seal, raft.heartbeat]).to.deep.equal([{ ...token, token_label: '3', slot: 4 }, 1000]);
  });

  it('is filled from the variables of the peers, where neither the file nor a variable of this program sets a key', () => {
    const peers = {
      VAULT_SEAL_TYPE: 'transit',
      VAULT_ADDR: 'https://vault.example:8200',
      BAO_ADDR: 'https://bao.example:8200',
      BAO_TOKEN: 'secret',
      BAO_TRANSIT_SEAL_KEY_NAME: 'k',
      VAULT_TRANSIT_SEAL_MOUNT_PATH: 'seal/',
      VAULT_TRANSIT_SEAL_DISABLE_RENEWAL: 'true',
      VAULT_SKIP_VERIFY: '0',
      VAULT_CACERT: '/ca.pem',
    };
    expect(parseConfig(minimal, peers).seal).to.deep.equal({
      type: 'transit',
      address: 'https://vault.example:8200',
      token_env: 'BAO_TOKEN',
      key_name: 'k',
      mount_path: 'seal',
      disable_renewal: true,
      tls: { ca_file: '/ca.pem', skip_verify: false },
    });
    const given = { address: 'https://keys.example:8200', key_name: 'unseal', token_env: 'T' };
    expect(parseConfig({ ...minimal, seal: transit() }, peers).seal).to.include(given);
    expect(parseConfig(minimal, { ...peers, TRANSITD_SEAL_KEY_NAME: 'own' }).seal).to.include({ key_name: 'own' });
    expect(parseConfig({ ...minimal, seal: { type: 'shamir' } }, peers).seal).to.deep.equal({ type: 'shamir' });
  });

  describe('beside the seal that the cluster moves from', () => {
    const moved = (seal: object, before: object) => parseConfig({ ...minimal, seal, migrate_seal_from: before });

    it('may have the same type if one of them has another name', () => {
      const { seal, migrate_seal_from: before } = moved(transit({ name: 'new' }), transit());
      expect(seal).to.include({ name: 'new' });
      expect(before).to.not.have.property('name');
    });

    it('is accepted as the page on seals shows it', () => {
      const page = readFileSync(new URL('../../../docs/seals.md', import.meta.url), 'utf8');
      const section = page.slice(page.indexOf('\n## Migration\n'), page.indexOf('\n## transit\n'));
      const blocks = [...section.matchAll(/^( *)```yaml\n([\s\S]*?)^ *```$/gm)].map(([, indent = '', text = '']) =>
        text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
      );
      const seals = blocks.map((text) => parse(text) as { seal: object; migrate_seal_from: object });
      expect(seals.map(({ seal, migrate_seal_from }) => moved(seal, migrate_seal_from).seal.type)).to.deep.equal([
        'transit',
        'awskms',
      ]);
    });

    const key = { type: 'static', key_id: 'k', key_env: 'K' };
    for (const { what, seal, before, says } of [
      { what: 'the same type without names', seal: transit(), before: transit(), says: /give the new one another seal.name/ },
      { what: 'the same name', seal: transit({ name: 'a' }), before: transit({ name: 'a' }), says: /another seal.name/ },
      { what: 'two static keys', seal: key, before: { ...key, key_id: 'j' }, says: /seal.previous/ },
      { what: 'shares twice', seal: { type: 'shamir' }, before: { type: 'shamir' }, says: /sys\/rotate\/root/ },
      { what: 'a name of a seal without a provider', seal: { ...key, name: 'a' }, before: transit(), says: /name/ },
      { what: 'a name with a space', seal: transit({ name: 'a b' }), before: key, says: /seal.name/ },
    ])
      it(`is refused with ${what}`, () => {
        expect(() => moved(seal, before)).to.throw(StartError, says);
      });
  });
});
