import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeCertificate } from '../../process/test/certificate.ts';
import { checkConfiguration } from '../src/doctor/configuration.ts';
import { certificateFinding, diskFinding } from '../src/doctor/finding.ts';
import { nodeVersion } from '../src/doctor/machine.ts';
import { endpointOf } from '../src/doctor/reach.ts';
import { clockFinding, memberFindings, stateFinding } from '../src/doctor/service.ts';

const dayMs = 86_400_000;
const healthy = {
  initialized: true,
  sealed: false,
  standby: false,
  performance_standby: false,
  server_time_utc: 0,
  version: '',
  cluster_id: '',
  cluster_name: '',
  clock_skew_ms: 0,
  echo_duration_ms: 0,
};

describe('the doctor', () => {
  for (const { what, finding, state } of [
    {
      what: 'a certificate for a year',
      finding: certificateFinding('c', { fromMs: 0, untilMs: 366 * dayMs }, dayMs),
      state: 'ok',
    },
    {
      what: 'a certificate for 29 days',
      finding: certificateFinding('c', { fromMs: 0, untilMs: 30 * dayMs }, dayMs),
      state: 'warn',
    },
    { what: 'an expired certificate', finding: certificateFinding('c', { fromMs: 0, untilMs: dayMs }, dayMs), state: 'fail' },
    {
      what: 'a certificate that is not yet valid',
      finding: certificateFinding('c', { fromMs: 2 * dayMs, untilMs: 99 * dayMs }, dayMs),
      state: 'fail',
    },
    { what: 'free space of twice the reserve', finding: diskFinding(2048, 1024), state: 'ok' },
    { what: 'free space below twice the reserve', finding: diskFinding(2047, 1024), state: 'warn' },
    { what: 'free space below the reserve', finding: diskFinding(1023, 1024), state: 'fail' },
    { what: 'Node.js 24', finding: nodeVersion('24.21.0'), state: 'ok' },
    { what: 'an older Node.js', finding: nodeVersion('22.1.0'), state: 'fail' },
    { what: 'a newer Node.js', finding: nodeVersion('26.0.0'), state: 'warn' },
    { what: 'an active node', finding: stateFinding(healthy, { progress: 0, t: 1 }), state: 'ok' },
    { what: 'a sealed node', finding: stateFinding({ ...healthy, sealed: true }, { progress: 1, t: 3 }), state: 'fail' },
    {
      what: 'a new node',
      finding: stateFinding({ ...healthy, initialized: false, sealed: true }, { progress: 0, t: 0 }),
      state: 'warn',
    },
    {
      what: 'a removed node',
      finding: stateFinding({ ...healthy, removed_from_cluster: true }, { progress: 0, t: 0 }),
      state: 'fail',
    },
    {
      what: 'a standby without contact to the active node',
      finding: stateFinding({ ...healthy, standby: true, ha_connection_healthy: false }, { progress: 0, t: 0 }),
      state: 'fail',
    },
    {
      what: 'clocks in agreement',
      finding: clockFinding({ ...healthy, server_time_utc: 10 }, { requestedMs: 10_900, answeredMs: 11_000 }),
      state: 'ok',
    },
    {
      what: 'a node 3 s behind',
      finding: clockFinding({ ...healthy, server_time_utc: 7 }, { requestedMs: 10_999, answeredMs: 11_000 }),
      state: 'warn',
    },
    {
      what: 'a node 3 s ahead',
      finding: clockFinding({ ...healthy, server_time_utc: 14 }, { requestedMs: 10_000, answeredMs: 10_999 }),
      state: 'warn',
    },
    {
      what: 'nodes with clocks 3 s apart',
      finding: clockFinding({ server_time_utc: 10, clock_skew_ms: -3000 }, { requestedMs: 10_000, answeredMs: 10_100 }),
      state: 'warn',
    },
  ])
    it(`reports ${state} for ${what}`, () => {
      expect(finding.state, finding.found).to.equal(state);
      expect(finding.todo === undefined, 'every other state has a suggestion').to.equal(state === 'ok');
    });

  it('names each unhealthy member', () => {
    const server = {
      id: '',
      address: '',
      node_status: 'failed',
      last_contact: '9s',
      last_term: 0,
      last_index: 0,
      status: 'voter',
      version: '',
    };
    const findings = memberFindings({
      healthy: false,
      failure_tolerance: 0,
      servers: { n1: { ...server, healthy: true }, n2: { ...server, healthy: false } },
    });
    expect(findings.map(({ state, check }) => `${state} ${check}`)).to.deep.equal(['warn members', 'fail member n2']);
  });

  for (const [address, endpoint] of [
    ['https://n1.example:8200', { host: 'n1.example', port: 8200 }],
    ['https://n1.example', { host: 'n1.example', port: 443 }],
    ['http://[::1]/', { host: '::1', port: 80 }],
  ] as const)
    it(`resolves ${address} to ${endpoint.host} ${endpoint.port}`, () => expect(endpointOf(address)).to.deep.equal(endpoint));

  describe('with a configuration', () => {
    let folder = '';
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), 'transitd-doctor-'));
    });
    afterEach(() => rmSync(folder, { recursive: true }));

    /** Returns the findings that are not ok, as `state check`. */
    async function problems(more: Readonly<Record<string, unknown>>): Promise<readonly string[]> {
      const file = join(folder, 'transitd.yaml');
      const config = {
        node_id: 'n1',
        data_dir: join(folder, 'data'),
        listeners: [{ address: '127.0.0.1:8200', tls_disable: true }],
        audit: [{ type: 'stdout', name: 'out' }],
        raft: { disk_reserve: 1 },
        ...more,
      };
      writeFileSync(file, JSON.stringify(config));
      const findings = await checkConfiguration(file, Date.now());
      return findings.filter(({ state }) => state !== 'ok').map(({ state, check }) => `${state} ${check}`);
    }

    it('reports nothing for a valid configuration', async () => expect(await problems({})).to.deep.equal([]));

    it('reports a certificate for another host and an invalid key', async () => {
      const tls = makeCertificate(folder, 'localhost');
      const listeners = [{ address: '127.0.0.1:8200', tls }];
      const found = await problems({ listeners, api_addr: 'https://elsewhere.example:8200' });
      expect(found).to.include('warn listener 127.0.0.1:8200 name');
      writeFileSync(tls.key_file, 'no key');
      expect(await problems({ listeners })).to.deep.equal(['fail listener 127.0.0.1:8200']);
    });

    for (const { what, more, found } of [
      { what: 'an unknown key', more: { color: 'red' }, found: ['fail configuration'] },
      {
        what: 'a public listener without TLS',
        more: { listeners: [{ address: '0.0.0.0:1', tls_disable: true }] },
        found: ['warn listener 0.0.0.0:1'],
      },
      {
        what: 'a missing seal key',
        more: { seal: { type: 'static', key_id: 'a', key_file: '/nowhere/key' } },
        found: ['fail seal'],
      },
      { what: 'missing audit devices', more: { audit: [] }, found: ['warn audit'] },
      {
        what: 'an audit file that cannot be created',
        more: { audit: [{ type: 'file', name: 'main', path: join(import.meta.filename, 'audit.log') }] },
        found: ['fail audit main'],
      },
      { what: 'a full disk', more: { raft: { disk_reserve: '4096TiB' } }, found: ['fail disk'] },
      {
        what: 'a missing library',
        more: { pkcs11_libraries: [{ name: 'hsm', path: '/nowhere/lib.so' }] },
        found: ['fail library hsm'],
      },
      {
        what: 'an unreachable node',
        more: { cluster_addr: '127.0.0.1:8201', retry_join: ['http://127.0.0.1:1'] },
        found: ['warn retry_join http://127.0.0.1:1'],
      },
    ])
      it(`reports ${what}`, async () => expect(await problems(more)).to.deep.equal(found));
  });
});
