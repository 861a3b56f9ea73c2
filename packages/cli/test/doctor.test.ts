import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RefusedError, type TransitdClient } from '@transitd/client';
import { expect } from 'chai';
import { TestAuthority } from '../../cluster/test/test-authority.ts';
import { makeCertificate } from '../../process/test/certificate.ts';
import { checkConfiguration } from '../src/doctor/configuration.ts';
import { certificateFinding, diskFinding, revocationFinding } from '../src/doctor/finding.ts';
import { nodeVersion } from '../src/doctor/machine.ts';
import { endpointOf } from '../src/doctor/reach.ts';
import { checkService, clockFinding, memberFindings, stateFinding } from '../src/doctor/service.ts';
import { type ServiceUser, serviceUser } from '../src/doctor/service-user.ts';

const dayMs = 86_400_000;
const newPrivateKey = generateKeyPairSync('rsa', { modulusLength: 2048 })
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString();
const healthy = {
  initialized: true,
  sealed: false,
  standby: false,
  performance_standby: false,
  server_time_utc: 0,
  version: '',
  cluster_id: '',
  cluster_name: '',
  replication_dr_mode: 'disabled',
  clock_skew_ms: 0,
  echo_duration_ms: 0,
};
const mib = 2 ** 20;
/** A disk of 100 GiB. */
const disk = (freeMib: number) => ({ freeBytes: freeMib * mib, totalBytes: 100 * 1024 * mib });
const shamir = { type: 'shamir', progress: 0, t: 3 };

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
    { what: 'a revocation list for a day', finding: revocationFinding('c', dayMs, 0), state: 'ok' },
    { what: 'a revocation list without an end', finding: revocationFinding('c', undefined, 0), state: 'ok' },
    { what: 'a revocation list for five hours', finding: revocationFinding('c', 5 * 3_600_000, 0), state: 'warn' },
    { what: 'an expired revocation list', finding: revocationFinding('c', dayMs, dayMs), state: 'fail' },
    { what: 'free space of twice the reserve', finding: diskFinding(disk(2048), 1024 * mib), state: 'ok' },
    { what: 'free space below twice the reserve', finding: diskFinding(disk(2047), 1024 * mib), state: 'warn' },
    { what: 'free space below the reserve', finding: diskFinding(disk(1023), 1024 * mib), state: 'fail' },
    { what: 'a reserve of more than 5 % of the disk', finding: diskFinding(disk(20_000), 6000 * mib), state: 'warn' },
    {
      what: 'the reserve of a small disk',
      finding: diskFinding({ freeBytes: 400 * mib, totalBytes: 2000 * mib }, 512 * mib),
      state: 'ok',
    },
    { what: 'no reserve', finding: diskFinding(disk(1), 0), state: 'ok' },
    { what: 'Node.js 24', finding: nodeVersion('24.21.0'), state: 'ok' },
    { what: 'a newer Node.js', finding: nodeVersion('26.0.0'), state: 'warn' },
    { what: 'an active node', finding: stateFinding(healthy, { ...shamir, t: 1 }), state: 'ok' },
    { what: 'a sealed node', finding: stateFinding({ ...healthy, sealed: true }, { ...shamir, progress: 1 }), state: 'fail' },
    {
      what: 'a new node',
      finding: stateFinding({ ...healthy, initialized: false, sealed: true }, { ...shamir, t: 0 }),
      state: 'warn',
    },
    {
      what: 'a removed node',
      finding: stateFinding({ ...healthy, removed_from_cluster: true }, { ...shamir, t: 0 }),
      state: 'fail',
    },
    {
      what: 'a standby without contact to the active node',
      finding: stateFinding({ ...healthy, standby: true, ha_connection_healthy: false }, { ...shamir, t: 0 }),
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

  for (const { what, health, type, found, todo } of [
    {
      what: 'a node whose provider is away',
      health: { ...healthy, sealed: true, seal_failure: 'unreachable' },
      type: 'transit',
      found: /transit seal cannot be opened: unreachable/,
      todo: /provider/,
    },
    {
      what: 'a node that an operator sealed, with a static seal',
      health: { ...healthy, sealed: true },
      type: 'static',
      found: /needs no shares/,
      todo: /restart/,
    },
    {
      what: 'a secondary',
      health: { ...healthy, replication_dr_mode: 'secondary' },
      type: 'static',
      found: /secondary/,
      todo: undefined,
    },
  ])
    it(`advises no shares for ${what}, and says what it is`, () => {
      const finding = stateFinding(health, { type, progress: 0, t: 3 });
      expect(finding.found).to.match(found);
      if (todo === undefined) expect(finding.todo).to.equal(undefined);
      else
        expect(finding.todo)
          .to.match(todo)
          .and.not.match(/operator unseal/);
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

  it('asks a secondary only for what it serves, and judges its members by that', async () => {
    const disabled = () =>
      Promise.reject(
        new RefusedError({
          status: 400,
          request: 'GET sys/ha-status',
          errors: ['path disabled'],
          outcome: 'not_done',
          retryAfterS: undefined,
          body: {},
        }),
      );
    const state = { healthy: true, failure_tolerance: 1, servers: {} };
    const sys = {
      health: () => Promise.resolve({ ...healthy, replication_dr_mode: 'secondary' }),
      sealStatus: () => Promise.resolve({ ...shamir, storage_type: 'raft' }),
      ...{ haStatus: disabled, audits: disabled },
      raft: { autopilotState: () => Promise.resolve({ data: state }) },
    };
    const findings = await checkService({ sys } as unknown as TransitdClient, 'http://127.0.0.1:8200', true);
    expect(findings.filter(({ check }) => check === 'members').map(({ state: judged }) => judged)).to.deep.equal(['ok']);
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
    async function problems(more: Readonly<Record<string, unknown>>, userOf = serviceUser): Promise<readonly string[]> {
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
      const findings = await checkConfiguration(file, Date.now(), userOf);
      return findings.filter(({ state }) => state !== 'ok').map(({ state, check }) => `${state} ${check}`);
    }

    it('reports nothing for a valid configuration', async () => expect(await problems({})).to.deep.equal([]));

    describe('as root, for a service that reads its files by their group', () => {
      /** A user that owns none of the files, but has their group. */
      const service = (): ServiceUser => ({ name: 'service', uid: 4242, gids: [process.getegid?.() ?? 0], isOwn: false });

      it('accepts a key of root that the group of the service can read, and names the files that the service cannot read', async () => {
        chmodSync(folder, 0o770);
        const listeners = [{ address: '127.0.0.1:8200', tls: makeCertificate(folder, 'localhost') }];
        const key = listeners[0]?.tls.key_file ?? '';
        for (const { mode, found } of [
          { mode: 0o640, found: [] },
          { mode: 0o600, found: [`fail file ${key}`] },
          { mode: 0o644, found: ['warn listener 127.0.0.1:8200 key'] },
        ]) {
          chmodSync(key, mode);
          const ofModes = (await problems({ listeners }, service)).filter((one) => !one.endsWith(' certificate')); // it expires soon
          expect(ofModes, mode.toString(8)).to.deep.equal(found);
        }
        const secret = join(folder, 'secret');
        writeFileSync(secret, Buffer.alloc(32, 1), { mode: 0o600 });
        for (const more of [
          { seal: { type: 'static', key_id: 'a', key_file: secret } },
          { jwks_files: { keys: secret } },
          { pkcs11_libraries: [{ name: 'hsm', path: secret }] },
        ])
          expect(await problems(more, service), JSON.stringify(more)).to.deep.equal([`fail file ${secret}`]);
      });

      it('accepts a key of root and of the service, but of nobody else', async () => {
        chmodSync(folder, 0o770);
        const secret = join(folder, 'secret');
        writeFileSync(secret, Buffer.alloc(32, 1), { mode: 0o640 });
        const seal = { type: 'static', key_id: 'a', key_file: secret };
        const own = process.geteuid?.() ?? 0;
        // Only root can give files away.
        for (const owner of own === 0 ? [0, 4242, 4343] : [own]) {
          const found = owner === 0 || owner === 4242 ? [] : ['fail seal'];
          chownSync(secret, owner, process.getegid?.() ?? 0);
          expect(await problems({ seal }, service), String(owner)).to.deep.equal(found);
        }
      });

      it('names what the service cannot enter or write', async () => {
        chmodSync(folder, 0o750);
        const audit = [{ type: 'file', name: 'main', path: join(folder, 'audit.log') }];
        expect(await problems({ audit }, service)).to.deep.equal(['fail data directory', 'fail audit main']);
        chmodSync(folder, 0o700);
        expect(await problems({}, service)).to.include(`fail file ${join(folder, 'transitd.yaml')}`);
        mkdirSync(join(folder, 'data'), { mode: 0o700 });
        expect(await problems({}, service)).to.include('fail data directory');
      });

      it('takes the user from the unit that names the file, else from the owner of the data directory', () => {
        const [file, data] = [join(folder, 'transitd.yaml'), join(folder, 'data')];
        const options = { isRoot: true, folders: [folder] };
        writeFileSync(
          join(folder, 'transitd.service'),
          `[Service]\nUser=nobody\nExecStart=/usr/bin/transitd server --config ${file}\n`,
        );
        expect(serviceUser(file, data, options)).to.include({ name: 'nobody', isOwn: false });
        for (const other of [`${file}.old`, '/elsewhere.yaml']) expect(serviceUser(other, data, options).isOwn).to.equal(true);
        mkdirSync(data);
        expect(serviceUser('/elsewhere.yaml', data, options).uid).to.equal(process.geteuid?.());
      });

      it('reads the groups of the unit, and its drop-ins in the order of systemd', () => {
        const [file, above, below] = [join(folder, 'transitd.yaml'), join(folder, 'etc'), join(folder, 'lib')];
        const options = { isRoot: true, folders: [above, below] };
        for (const one of [above, below]) mkdirSync(join(one, 'transitd.service.d'), { recursive: true });
        const lines = (...settings: readonly string[]): string => `[Service]\n${settings.join('\n')}\n`;
        const unit = lines('User=nobody', 'Group = 0', `ExecStart=/usr/bin/transitd server \\\n  --config ${file}.old`);
        writeFileSync(join(below, 'transitd.service'), unit);
        const found = () => serviceUser(file, join(folder, 'data'), options);
        expect(found().isOwn, 'the unit has another file').to.equal(true);
        const dropIn = (at: string, name: string, text: string) => writeFileSync(join(at, 'transitd.service.d', name), text);
        dropIn(below, '20-start.conf', lines('ExecStart=', `ExecStart=/usr/bin/transitd server --config ${file}`));
        expect(found()).to.deep.include({ name: 'nobody', gids: [0] });
        dropIn(below, '30-groups.conf', lines('Group=4242', 'SupplementaryGroups=root 17'));
        expect(found().gids).to.deep.equal([4242, 0, 17]);
        dropIn(above, '30-groups.conf', lines('Group=4243'));
        expect(found().gids, 'the file with the same name in /etc replaces it').to.deep.equal([4243]);
        dropIn(below, '10-user.conf', lines('User=daemon'));
        dropIn(above, '40-reset.conf', lines('Group='));
        expect(found()).to.include({ name: 'daemon' });
        expect(found().gids).not.to.include(4243);
      });
    });

    it('reports a certificate for another host and an invalid key', async () => {
      const tls = makeCertificate(folder, 'localhost');
      const listeners = [{ address: '127.0.0.1:8200', tls }];
      const found = await problems({ listeners, api_addr: 'https://elsewhere.example:8200' });
      expect(found).to.include('warn listener 127.0.0.1:8200 name');
      writeFileSync(tls.key_file, 'no key');
      expect(await problems({ listeners })).to.deep.equal(['fail listener 127.0.0.1:8200']);
      const [fault] = await problems({ listeners: [{ address: '[::1]:8200', tls }] });
      expect(fault).to.equal('fail listener [::1]:8200');
    });

    it('reports an expired revocation list of a listener', async () => {
      const [client_ca_file, client_crl_file] = [join(folder, 'ca.pem'), join(folder, 'list.pem')];
      const authority = await TestAuthority.make();
      writeFileSync(client_ca_file, authority.cert);
      const tls = { ...makeCertificate(folder, 'localhost'), client_ca_file, client_crl_file };
      const listeners = [{ address: '127.0.0.1:8200', tls }];
      const check = 'listener 127.0.0.1:8200 revocation lists';
      writeFileSync(client_crl_file, await authority.revocations());
      expect((await problems({ listeners })).join()).not.to.contain(check);
      writeFileSync(client_crl_file, await authority.revocations([], new Date(Date.now() - 1000)));
      expect(await problems({ listeners })).to.include(`fail ${check}`);
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
      { what: 'a reserve that is larger than the disk', more: { raft: { disk_reserve: '4096TiB' } }, found: ['warn disk'] },
      {
        what: 'a missing library',
        more: { pkcs11_libraries: [{ name: 'hsm', path: '/nowhere/lib.so' }] },
        found: ['fail library hsm'],
      },
      {
        what: 'an unreachable node, but not this node itself, which need not run yet',
        more: {
          ...{ cluster_addr: '127.0.0.1:8201', api_addr: 'http://127.0.0.1:2' },
          retry_join: ['http://127.0.0.1:1', 'http://127.0.0.1:2'],
        },
        found: ['warn retry_join http://127.0.0.1:1'],
      },
      {
        what: 'an etcd that is unreachable, and no reserve of a node that keeps no records there',
        more: {
          cluster_addr: '127.0.0.1:8201',
          storage: { type: 'etcd', endpoints: ['http://127.0.0.1:1'] },
          raft: { disk_reserve: '4096TiB' },
        },
        found: ['fail etcd http://127.0.0.1:1'],
      },
    ])
      it(`reports ${what}`, async () => expect(await problems(more)).to.deep.equal(found));

    describe('and credentials of its seal', () => {
      const aws = { type: 'awskms', region: 'eu-central-1', kms_key_id: 'one' };
      const pkcs11 = { type: 'pkcs11', library: 'hsm', token_label: 't', key_label: 'k' };
      const azure = { type: 'azurekeyvault', vault_name: 'vault', key_name: 'k', tenant_id: 't', client_id: 'c' };
      const gcp = { type: 'gcpckms', project: 'p', region: 'r', key_ring: 'k', crypto_key: 'c' };
      const pkcs11_libraries = [{ name: 'hsm', path: import.meta.filename }];
      const profile = '[default]\naws_access_key_id = AKID\naws_secret_access_key = hidden-secret\n';
      const account = (private_key: string): string =>
        JSON.stringify({ type: 'service_account', client_email: 'a@b', private_key });

      /** Writes the credentials, and returns what the doctor finds, without this folder. */
      async function found(seal: object, content: string | undefined, mode = 0o400): Promise<readonly string[]> {
        const secret = join(folder, 'secret');
        if (content !== undefined) writeFileSync(secret, content, { mode });
        const text = JSON.stringify(seal).replaceAll('FILE', secret);
        writeFileSync(
          join(folder, 'transitd.json'),
          JSON.stringify({
            node_id: 'n1',
            data_dir: join(folder, 'data'),
            listeners: [{ address: '127.0.0.1:8200', tls_disable: true }],
            raft: { disk_reserve: 1 },
            pkcs11_libraries,
            ...JSON.parse(text),
          }),
        );
        const findings = await checkConfiguration(join(folder, 'transitd.json'), Date.now());
        const ofSeals = findings.filter(({ check }) => check === 'seal' || check === 'migrate_seal_from');
        expect(JSON.stringify(findings)).to.not.contain('hidden-secret');
        return ofSeals.map(({ state, check, found: text }) => `${state} ${check} ${text.replaceAll(folder, '')}`);
      }
      const withSecret = (seal: object, key: string) => ({ seal: { ...seal, [key]: 'FILE' } });

      for (const { what, config, content, first } of [
        { what: 'a PIN', config: withSecret(pkcs11, 'pin_file'), content: '1234\n', first: 'ok seal /secret can be used' },
        {
          what: 'a missing PIN',
          config: withSecret(pkcs11, 'pin_file'),
          content: undefined,
          first: /^fail seal seal.pin_file cannot be read: .*ENOENT/,
        },
        {
          what: 'an empty PIN',
          config: withSecret(pkcs11, 'pin_file'),
          content: '\n',
          first: 'fail seal seal.pin_file /secret does not contain a pin',
        },
        {
          what: 'a profile of AWS',
          config: withSecret(aws, 'credentials_file'),
          content: profile,
          first: 'ok seal /secret can be used',
        },
        {
          what: 'a file without the profile',
          config: withSecret({ ...aws, profile: 'other' }, 'credentials_file'),
          content: profile,
          first: 'fail seal seal.credentials_file /secret does not contain an access key in the profile other',
        },
        {
          what: 'a token of a web identity',
          config: withSecret({ ...aws, role_arn: 'arn:aws:iam::111122223333:role/unseal' }, 'web_identity_token_file'),
          content: 'hidden-secret',
          first: 'ok seal /secret can be used',
        },
        {
          what: 'a client secret of two lines',
          config: withSecret(azure, 'client_secret_file'),
          content: 'hidden-secret\nhidden-secret\n',
          first: 'fail seal seal.client_secret_file /secret does not contain a client_secret',
        },
        {
          what: 'a service account',
          config: withSecret(gcp, 'credentials_file'),
          content: account(newPrivateKey),
          first: 'ok seal /secret can be used',
        },
        {
          what: 'a file that is not JSON',
          config: withSecret(gcp, 'credentials_file'),
          content: 'hidden-secret',
          first: 'fail seal seal.credentials_file cannot be read: it is not JSON',
        },
        {
          what: 'a service account with half a key',
          config: withSecret(gcp, 'credentials_file'),
          content: account('-----BEGIN PRIVATE KEY-----\nhidden-secret'),
          first: 'fail seal /secret does not contain a private key that can be used',
        },
        {
          what: 'the credentials of the seal that the cluster moves from',
          config: { seal: { type: 'shamir' }, migrate_seal_from: { ...pkcs11, pin_file: 'FILE' } },
          content: '',
          first: 'ok seal shamir: each start of the node requires its shares',
        },
      ] as const)
        it(`judges ${what}`, async () => {
          const [one = '', two = ''] = await found(config, content);
          expect(one).to.satisfy((text: string) => (typeof first === 'string' ? text === first : first.test(text)), one);
          if (Object.hasOwn(config, 'migrate_seal_from'))
            expect(two).to.equal('fail migrate_seal_from seal.pin_file /secret does not contain a pin');
        });

      it('warns if every user can read them, and fails if others can write them', async () => {
        const [readable] = await found(withSecret(pkcs11, 'pin_file'), '1234', 0o444);
        expect(readable).to.equal('warn seal every user of this machine can read /secret');
        chmodSync(join(folder, 'secret'), 0o620);
        const [writable] = await found(withSecret(pkcs11, 'pin_file'), undefined);
        expect(writable).to.match(
          /^fail seal seal.pin_file cannot be read: \/secret has mode 0620, so users other than its owner/,
        );
      });

      it('reads the token and the certificates of a transit seal', async () => {
        const tls = makeCertificate(folder, 'localhost');
        const transit = { type: 'transit', address: 'http://127.0.0.1:1', key_name: 'k', token_file: 'FILE' };
        const [ca_file, cert_file, key_file] = [tls.cert_file, tls.cert_file, tls.key_file];
        const complete = { seal: { ...transit, tls: { ca_file, cert_file, key_file } } };
        chmodSync(key_file, 0o600);
        expect((await found(complete, 'token')).map((text) => text.split(' ')[0])).to.deep.equal([
          'ok',
          'ok',
          'ok',
          'ok',
          'warn',
        ]);
        writeFileSync(key_file, 'hidden-secret');
        writeFileSync(cert_file, 'no certificate');
        const faults = await found(complete, undefined);
        expect(faults.slice(1, 4).map((text) => text.replace(/^fail seal \S+ /, ''))).to.deep.equal([
          'does not contain a certificate in PEM',
          'does not contain a certificate in PEM',
          `does not contain the private key of ${cert_file.replace(folder, '')}`,
        ]);
      });
    });
  });
});
