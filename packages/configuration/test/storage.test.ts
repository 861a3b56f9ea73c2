import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { parseConfig } from '../src/config.ts';

const endpoints = ['https://etcd-1.example:2379'];
const minimal = {
  node_id: 'n1',
  data_dir: '/var/lib/transitd',
  cluster_addr: 'n1.example:8201',
  listeners: [{ address: '127.0.0.1:8200', tls_disable: true }],
};

describe('the storage', () => {
  it('is Raft unless it is configured', () => {
    expect(parseConfig(minimal).storage).to.deep.equal({ type: 'raft' });
    expect(parseConfig({ ...minimal, storage: { type: 'raft' } }).storage).to.deep.equal({ type: 'raft' });
  });

  it('may be in etcd', () => {
    const tls = { ca_file: 'ca', cert_file: 'cert', key_file: 'key' };
    const storage = { type: 'etcd', endpoints, prefix: 'a/b', tls, username: 'transitd', password_file: 'password' };
    expect(parseConfig({ ...minimal, storage }).storage).to.deep.equal(storage);
    expect(parseConfig({ ...minimal, storage: { type: 'etcd', endpoints } }).storage).to.include({ prefix: 'transitd' });
    for (const host of ['127.0.0.1', 'localhost', '[::1]'])
      expect(() => parseConfig({ ...minimal, storage: { type: 'etcd', endpoints: [`http://${host}:2379`] } })).not.to.throw();
  });

  it('takes its settings from the environment, too', () => {
    const { storage } = parseConfig({ ...minimal, storage: { type: 'etcd', endpoints } }, { TRANSITD_STORAGE_PREFIX: 'other' });
    expect(storage).to.include({ prefix: 'other' });
  });

  for (const { what, storage = {}, more = {}, says } of [
    { what: 'no endpoint', storage: { endpoints: [] }, says: /storage\.endpoints/ },
    {
      what: 'an endpoint without TLS elsewhere',
      storage: { endpoints: [...endpoints, 'http://etcd-2.example:2379'] },
      says: /storage\.endpoints\.1: must be an https URL/,
    },
    ...['https://user:secret@etcd-1.example:2379', 'https://etcd-1.example:2379/v3', 'https://etcd-1.example:2379/?a=b'].map(
      (url) => ({
        what: `the endpoint ${url}`,
        storage: { endpoints: [url] },
        says: /storage\.endpoints\.0: must be only a scheme, a host and a port, such as https:\/\/etcd-1\.example:2379$/m,
      }),
    ),
    { what: 'a prefix with an empty segment', storage: { prefix: 'a//b' }, says: /storage\.prefix: must be a path/ },
    { what: 'a certificate without a key', storage: { tls: { cert_file: 'c' } }, says: /storage\.tls: needs both/ },
    {
      what: 'TLS without an https URL',
      storage: { endpoints: ['http://127.0.0.1:1'], tls: {} },
      says: /storage\.tls: is set, but no endpoint is an https URL/,
    },
    { what: 'a user without a password', storage: { username: 'u' }, says: /storage\.password_file: is missing/ },
    { what: 'a password without a user', storage: { password_file: 'p' }, says: /storage\.username: is missing/ },
    { what: 'an unknown key', storage: { endpoint: 'x' }, says: /storage\.endpoint: is not a key .*endpoints/ },
    { what: 'another engine', storage: { type: 'consul' }, says: /storage\.type/ },
    {
      what: 'a heartbeat interval that is long against the leases',
      more: { cluster_heartbeat_interval: '2001ms' },
      says: /cluster_heartbeat_interval: must be at most 2s with storage\.type etcd/,
    },
    { what: 'no cluster_addr', more: { cluster_addr: undefined }, says: /cluster_addr: is required with storage\.type etcd/ },
    {
      what: 'retry_join',
      more: { retry_join: ['https://n2.example'] },
      says: /retry_join: has no meaning with storage\.type etcd/,
    },
    { what: 'non_voter', more: { non_voter: true }, says: /non_voter: has no meaning with storage\.type etcd/ },
  ])
    it(`in etcd refuses ${what}`, () => {
      const input = { ...minimal, ...more, storage: { type: 'etcd', endpoints, ...storage } };
      expect(() => parseConfig(input)).to.throw(StartError, says);
    });
});
