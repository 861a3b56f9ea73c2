import { expect } from 'chai';
import { parseConfig } from '../src/config.ts';
import { changedKeys, reloaded } from '../src/reload.ts';
import type { Config, ConfigInput } from '../src/schema.ts';

type ListenerInput = ConfigInput['listeners'][number];
const files = { cert_file: '/a.crt', key_file: '/a.key' };
const first: ListenerInput = { address: '127.0.0.1:8200', tls: files };
const second: ListenerInput = { address: '127.0.0.1:8210', tls: { cert_file: '/b.crt', key_file: '/b.key' } };
const config = (more: Partial<ConfigInput>): Config =>
  parseConfig({ node_id: 'n1', data_dir: '/var/lib/transitd', listeners: [first], ...more });

/** The files that the first listener uses after a reload from one configuration to another, and the keys that need a restart. */
const reload = (present: Partial<ConfigInput>, next: Partial<ConfigInput>) => {
  const after = reloaded(config(present), config(next));
  return { tls: after.listeners[0]?.tls, level: after.log.level, restart: changedKeys(after, config(next)) };
};
const withTls = (tls: Partial<NonNullable<ListenerInput['tls']>>): Partial<ConfigInput> => ({
  listeners: [{ ...first, tls: { ...files, ...tls } }],
});

describe('a reload of the configuration', () => {
  it('changes nothing if nothing changed', () => {
    expect(reload({}, {}).restart).to.deep.equal([]);
    expect(changedKeys(config({}), reloaded(config({}), config({})))).to.deep.equal([]);
  });

  it('applies the log level, the TLS files and the TLS version', () => {
    const { tls, level, restart } = reload(withTls({ client_ca_file: '/a.ca' }), {
      ...withTls({
        cert_file: '/c.crt',
        key_file: '/c.key',
        client_ca_file: '/c.ca',
        client_crl_file: '/c.crl',
        min_version: '1.3',
      }),
      log: { level: 'debug' },
    });
    expect(level).to.equal('debug');
    expect(tls).to.include({ cert_file: '/c.crt', key_file: '/c.key', client_ca_file: '/c.ca', client_crl_file: '/c.crl' });
    expect(tls?.min_version).to.equal('1.3');
    expect(restart).to.deep.equal([]);
  });

  it('applies them whatever else has changed, and names what needs a restart', () => {
    const { tls, restart } = reload(
      { raft: { disk_reserve: '1GiB' } },
      {
        listeners: [{ ...first, tls: { ...files, cert_file: '/c.crt' }, headers_timeout: '5s' }],
        telemetry: { address: '127.0.0.1:8202' },
        retry_join: ['https://n2.example:8200'],
        log: { format: 'pretty' },
        cluster_addr: 'n1.example:8201',
      },
    );
    expect(tls?.cert_file).to.equal('/c.crt');
    expect(restart).to.have.members([
      ...['listeners.0.headers_timeout', 'telemetry.address', 'retry_join', 'log.format', 'cluster_addr', 'raft.disk_reserve'],
    ]);
  });

  for (const { title, listeners, restart } of [
    { title: 'another address', listeners: [{ ...second, address: '127.0.0.1:8201' }], restart: ['listeners.0.address'] },
    { title: 'another order', listeners: [second, first], restart: ['listeners'] },
    { title: 'no TLS', listeners: [{ address: first.address, tls_disable: true }], restart: ['listeners.0.tls'] },
  ]) {
    it(`leaves a listener its own files if the entry in its place has ${title}`, () => {
      const { tls, restart: named } = reload({}, { listeners });
      expect(tls).to.include(files);
      expect(named).to.include.members(restart);
    });
  }

  it('lets a listener neither begin nor stop to ask for certificates, nor change whether it requires them', () => {
    const begun = reload({}, withTls({ cert_file: '/c.crt', client_ca_file: '/c.ca', client_crl_file: '/c.crl' }));
    expect(begun.tls).to.include({ cert_file: '/c.crt', client_ca_file: undefined, client_crl_file: undefined });
    expect(begun.restart).to.deep.equal(['listeners.0.tls.client_ca_file', 'listeners.0.tls.client_crl_file']);
    const asking = withTls({ client_ca_file: '/a.ca', client_crl_file: '/a.crl' });
    const stopped = reload(asking, withTls({ cert_file: '/c.crt' }));
    expect(stopped.tls).to.include({ cert_file: '/c.crt', client_ca_file: '/a.ca', client_crl_file: '/a.crl' });
    expect(stopped.restart).to.deep.equal(['listeners.0.tls.client_ca_file', 'listeners.0.tls.client_crl_file']);
    const optional = reload(asking, withTls({ client_ca_file: '/c.ca', client_auth: 'optional' }));
    expect(optional.tls).to.include({ client_ca_file: '/c.ca', client_crl_file: undefined, client_auth: undefined });
    expect(optional.restart).to.deep.equal(['listeners.0.tls.client_auth']);
  });
});
