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
const well = {
  initialized: true,
  sealed: false,
  standby: false,
  performance_standby: false,
  server_time_utc: 0,
  version: '',
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
    { what: 'one for 29 days', finding: certificateFinding('c', { fromMs: 0, untilMs: 30 * dayMs }, dayMs), state: 'warn' },
    { what: 'one that has run out', finding: certificateFinding('c', { fromMs: 0, untilMs: dayMs }, dayMs), state: 'fail' },
    {
      what: 'one of tomorrow',
      finding: certificateFinding('c', { fromMs: 2 * dayMs, untilMs: 99 * dayMs }, dayMs),
      state: 'fail',
    },
    { what: 'room for more than twice the reserve', finding: diskFinding(2048, 1024), state: 'ok' },
    { what: 'less than twice the reserve', finding: diskFinding(2047, 1024), state: 'warn' },
    { what: 'less than the reserve', finding: diskFinding(1023, 1024), state: 'fail' },
    { what: 'Node.js 24', finding: nodeVersion('24.21.0'), state: 'ok' },
    { what: 'an older Node.js', finding: nodeVersion('22.1.0'), state: 'fail' },
    { what: 'a newer one', finding: nodeVersion('26.0.0'), state: 'warn' },
    { what: 'an active node', finding: stateFinding(well, { progress: 0, t: 1 }), state: 'ok' },
    { what: 'a sealed node', finding: stateFinding({ ...well, sealed: true }, { progress: 1, t: 3 }), state: 'fail' },
    {
      what: 'a new node',
      finding: stateFinding({ ...well, initialized: false, sealed: true }, { progress: 0, t: 0 }),
      state: 'warn',
    },
    {
      what: 'a removed node',
      finding: stateFinding({ ...well, removed_from_cluster: true }, { progress: 0, t: 0 }),
      state: 'fail',
    },
    {
      what: 'a standby that hears nobody',
      finding: stateFinding({ ...well, standby: true, ha_connection_healthy: false }, { progress: 0, t: 0 }),
      state: 'fail',
    },
    {
      what: 'clocks together',
      finding: clockFinding({ ...well, server_time_utc: 10 }, { askedMs: 10_900, answeredMs: 11_000 }),
      state: 'ok',
    },
    {
      what: 'a node 3 s behind',
      finding: clockFinding({ ...well, server_time_utc: 7 }, { askedMs: 10_999, answeredMs: 11_000 }),
      state: 'warn',
    },
    {
      what: 'a node 3 s ahead',
      finding: clockFinding({ ...well, server_time_utc: 14 }, { askedMs: 10_000, answeredMs: 10_999 }),
      state: 'warn',
    },
    {
      what: 'nodes 3 s apart',
      finding: clockFinding({ server_time_utc: 10, clock_skew_ms: -3000 }, { askedMs: 10_000, answeredMs: 10_100 }),
      state: 'warn',
    },
  ])
    it(`finds ${what} ${state}`, () => {
      expect(finding.state, finding.found).to.equal(state);
      expect(finding.todo === undefined, 'what is not well has something to do').to.equal(state === 'ok');
    });

  it('names each member that is not healthy', () => {
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
    it(`asks ${address} at ${endpoint.host} ${endpoint.port}`, () => expect(endpointOf(address)).to.deep.equal(endpoint));

  describe('with a configuration', () => {
    let folder = '';
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), 'transitd-doctor-'));
    });
    afterEach(() => rmSync(folder, { recursive: true }));

    /** What is found, as `state check`, without what is well. */
    async function ills(more: Readonly<Record<string, unknown>>): Promise<readonly string[]> {
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

    it('finds nothing where nothing is wrong', async () => expect(await ills({})).to.deep.equal([]));

    it('finds certificates that fit, and ones that do not', async () => {
      const tls = makeCertificate(folder, 'localhost');
      const listeners = [{ address: '127.0.0.1:8200', tls }];
      const found = await ills({ listeners, api_addr: 'https://elsewhere.example:8200' });
      expect(found).to.include('warn listener 127.0.0.1:8200 name');
      writeFileSync(tls.key_file, 'no key');
      expect(await ills({ listeners })).to.deep.equal(['fail listener 127.0.0.1:8200']);
    });

    for (const { what, more, found } of [
      { what: 'a key that is unknown', more: { colour: 'red' }, found: ['fail configuration'] },
      {
        what: 'a listener for everybody without TLS',
        more: { listeners: [{ address: '0.0.0.0:1', tls_disable: true }] },
        found: ['warn listener 0.0.0.0:1'],
      },
      {
        what: 'a seal key that is not there',
        more: { seal: { type: 'static', key_id: 'a', key_file: '/nowhere/key' } },
        found: ['fail seal'],
      },
      { what: 'no audit', more: { audit: [] }, found: ['warn audit'] },
      {
        what: 'an audit file where none can be',
        more: { audit: [{ type: 'file', name: 'main', path: join(import.meta.filename, 'audit.log') }] },
        found: ['fail audit main'],
      },
      { what: 'a disk that is too full', more: { raft: { disk_reserve: '4096TiB' } }, found: ['fail disk'] },
      {
        what: 'a library that is not there',
        more: { pkcs11_libraries: [{ name: 'hsm', path: '/nowhere/lib.so' }] },
        found: ['fail library hsm'],
      },
      {
        what: 'another node that is not there',
        more: { cluster_addr: '127.0.0.1:8201', retry_join: ['http://127.0.0.1:1'] },
        found: ['warn retry_join http://127.0.0.1:1'],
      },
    ])
      it(`finds ${what}`, async () => expect(await ills(more)).to.deep.equal(found));
  });
});
