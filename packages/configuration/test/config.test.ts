import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { isLoopback } from '../src/addresses.ts';
import { parseConfig, readConfigFile } from '../src/config.ts';
import type { ConfigInput } from '../src/schema.ts';
import { parseByteSize, parseDurationMs } from '../src/units.ts';

const minimal: ConfigInput = {
  node_id: 'n1',
  data_dir: '/var/lib/transitd',
  listeners: [{ address: '127.0.0.1:8200', tls_disable: true }],
};
const withSeal = (seal: unknown): unknown => ({ ...minimal, seal });

describe('configuration', () => {
  it('has a default for every optional key', () => {
    const config = parseConfig(minimal);
    expect(config.seal).to.deep.equal({ type: 'shamir' });
    expect(config.ciphertext_prefix).to.equal('svc');
    expect(config.listeners[0]).to.deep.include({
      max_request_size: 33_554_432,
      headers_timeout: 10_000,
      address: { host: '127.0.0.1', port: 8200 },
    });
    expect(config.raft).to.deep.equal({
      heartbeat: 50,
      election_timeout: 1000,
      lease: 150,
      snapshot_threshold: 50_000,
      trailing_logs: 10_000,
      disk_reserve: 512 * 2 ** 20,
    });
    expect(config.barrier_rotation).to.deep.equal({ max_operations: 2 ** 31, interval: 0 });
    expect(config.limits).to.deep.equal({
      reads: 1024,
      changes: 256,
      logins: 64,
      waiting: 1024,
      body_memory: 256 * 2 ** 20,
      connections: 4096,
    });
  });

  it('makes a lease three heartbeats long, within its limit, unless it is given', () => {
    const leaseOf = (raft: object): number => parseConfig({ ...minimal, raft }).raft.lease;
    expect(leaseOf({ heartbeat: '100ms' })).to.equal(300);
    expect(leaseOf({ heartbeat: '300ms' })).to.equal(800);
    expect(leaseOf({ heartbeat: '100ms', lease: '200ms' })).to.equal(200);
    expect(leaseOf({ lease: 0 })).to.equal(0);
  });

  it('creates an audit file with mode 0600 and without sync by default', () => {
    const { audit } = parseConfig({ ...minimal, audit: [{ type: 'file', name: 'main', path: '/var/log/a' }] });
    expect(audit).to.deep.equal([{ type: 'file', name: 'main', path: '/var/log/a', mode: 0o600, sync: false }]);
    expect(parseConfig(minimal).audit).to.deep.equal([]);
  });

  for (const { what, input, says } of [
    { what: 'a missing node name', input: { ...minimal, node_id: undefined }, says: /node_id: is missing: it must be a string/ },
    { what: 'an unknown key', input: { ...minimal, color: 'red' }, says: /color/ },
    {
      what: 'an unknown key of a listener',
      input: { ...minimal, listeners: [{ address: '127.0.0.1:1', tls_disable: true, x: 1 }] },
      says: /x/,
    },
    ...[
      { what: 'an audit device without a type', audit: [{ name: 'a' }], says: /audit\.0\.type/ },
      { what: 'an audit device of an unknown type', audit: [{ type: 'socket', name: 'a' }], says: /audit\.0\.type/ },
      { what: 'an audit file with a relative path', audit: [{ type: 'file', name: 'a', path: 'a' }], says: /audit\.0\.path/ },
      {
        what: 'an audit file that everybody may write',
        audit: [{ type: 'file', name: 'a', path: '/a', mode: '0666' }],
        says: /audit\.0\.mode/,
      },
      {
        what: 'an audit file that its owner may not write',
        audit: [{ type: 'file', name: 'a', path: '/a', mode: '0400' }],
        says: /mode/,
      },
      {
        what: 'two audit devices with one name',
        audit: [
          { type: 'stdout', name: 'a' },
          { type: 'file', name: 'a', path: '/a' },
        ],
        says: /audit.*same name twice/,
      },
      {
        what: 'two audit devices with one file',
        audit: [
          { type: 'file', name: 'a', path: '/a' },
          { type: 'file', name: 'b', path: '/x/../a' },
        ],
        says: /audit.*same file twice/,
      },
    ].map(({ what, audit, says }) => ({ what, input: { ...minimal, audit }, says })),
    ...[
      { what: 'a limit of 0 reads in flight', limits: { reads: 0 }, says: /limits\.reads/ },
      { what: 'a fractional limit of changes in flight', limits: { changes: 1.5 }, says: /limits\.changes/ },
      { what: 'a negative queue length', limits: { waiting: -1 }, says: /limits\.waiting/ },
      { what: 'a limit of 1 connection', limits: { connections: 1 }, says: /limits\.connections/ },
      { what: 'no memory for bodies', limits: { body_memory: 0 }, says: /limits\.body_memory/ },
      {
        what: 'less memory for bodies than one body may need',
        limits: { body_memory: '2MiB' },
        says: /body_memory.*listeners\.0\.max_request_size/,
      },
      { what: 'an unknown limit', limits: { rate: 1 }, says: /limits/ },
    ].map(({ what, limits, says }) => ({ what, input: { ...minimal, limits }, says })),
    {
      what: 'bodies that may not fit into a text',
      input: { ...minimal, listeners: [{ ...minimal.listeners[0], max_request_size: '257MiB' }] },
      says: /listeners\.0\.max_request_size: must be at most 256MiB/,
    },
    {
      what: 'fewer reads in flight than threads',
      input: { ...minimal, workers: 2, limits: { reads: 2 } },
      says: /workers: must be below limits\.reads \(2\)/,
    },
    ...[
      { workers: -1, says: /workers: must be at least 0/ },
      { workers: 65, says: /workers: must be at most 64/ },
      { workers: 1.5, says: /workers: must be auto or a whole number from 0 to 64/ },
      { workers: 'many', says: /workers: must be auto or a whole number from 0 to 64/ },
    ].map(({ workers, says }) => ({ what: `${workers} gateway threads`, input: { ...minimal, workers }, says })),
    {
      what: 'a leader lease longer than the promises of the voters',
      input: { ...minimal, raft: { lease: '801ms' } },
      says: /raft\.lease: must be at most 800ms/,
    },
    {
      what: 'an election timeout shorter than the leases of other nodes need',
      input: { ...minimal, raft: { election_timeout: '999ms' } },
      says: /raft\.election_timeout: must be between 1s and 1m/,
    },
    { what: 'no listener', input: { ...minimal, listeners: [] }, says: /listeners/ },
    {
      what: 'a PKCS#11 library with a relative path',
      input: { ...minimal, pkcs11_libraries: [{ name: 'hsm', path: 'libsofthsm2.so' }] },
      says: /pkcs11_libraries\.0\.path: must be an absolute path/,
    },
    {
      what: 'two PKCS#11 libraries with one name',
      input: { ...minimal, pkcs11_libraries: ['/a.so', '/b.so'].map((path) => ({ name: 'hsm', path })) },
      says: /pkcs11_libraries: has the same name twice/,
    },
    {
      what: 'a PKCS#11 library with an invalid name',
      input: { ...minimal, pkcs11_libraries: [{ name: 'a/b', path: '/a.so' }] },
      says: /pkcs11_libraries\.0\.name/,
    },
    {
      what: 'a listener without a TLS setting',
      input: { ...minimal, listeners: [{ address: '127.0.0.1:8200' }] },
      says: /needs tls/,
    },
    {
      what: 'TLS switched on and off',
      input: { ...minimal, listeners: [{ address: '127.0.0.1:1', tls_disable: true, tls: { cert_file: 'a', key_file: 'b' } }] },
      says: /both/,
    },
    ...[{ client_auth: 'optional' }, { client_crl_file: 'c' }].map((more) => ({
      what: `${Object.keys(more)} without authorities`,
      input: { ...minimal, listeners: [{ address: '127.0.0.1:1', tls: { cert_file: 'a', key_file: 'b', ...more } }] },
      says: /listeners\.0\.tls: needs client_ca_file/,
    })),
    {
      what: 'a port out of range',
      input: { ...minimal, listeners: [{ address: '127.0.0.1:70000', tls_disable: true }] },
      says: /address/,
    },
    {
      what: 'an address without a port',
      input: { ...minimal, listeners: [{ address: 'localhost', tls_disable: true }] },
      says: /address/,
    },
    { what: 'a node name with a slash', input: { ...minimal, node_id: 'a/b' }, says: /node_id/ },
    {
      what: 'a bad duration',
      input: { ...minimal, listeners: [{ address: '127.0.0.1:1', tls_disable: true, headers_timeout: 'soon' }] },
      says: /headers_timeout.*duration/,
    },
    ...['0', '900ms', '6m'].map((headers_timeout) => ({
      what: `a headers_timeout of ${headers_timeout}`,
      input: { ...minimal, listeners: [{ address: '127.0.0.1:1', tls_disable: true, headers_timeout }] },
      says: /headers_timeout.*1s and 5m/,
    })),
    {
      what: 'a rotation of the barrier key every hour',
      input: { ...minimal, barrier_rotation: { interval: '1h' } },
      says: /barrier_rotation.interval.*24h/,
    },
    { what: 'a bad size', input: { ...minimal, raft: { disk_reserve: '1 parsec' } }, says: /disk_reserve.*size/ },
    {
      what: 'compactions that free nothing',
      input: { ...minimal, raft: { snapshot_threshold: 1000, trailing_logs: 501 } },
      says: /trailing_logs/,
    },
    { what: 'a seal type that does not exist', input: withSeal({ type: 'wax' }), says: /seal/ },
    { what: 'a static seal without a key', input: withSeal({ type: 'static', key_id: 'a' }), says: /key_file and key_env/ },
    {
      what: 'a static seal with two key sources',
      input: withSeal({ type: 'static', key_id: 'a', key_file: 'a', key_env: 'b' }),
      says: /key_file and key_env/,
    },
    {
      what: 'a seal key inside the data directory',
      input: withSeal({ type: 'static', key_id: 'a', key_file: '/var/lib/transitd/seal.key' }),
      says: /inside data_dir/,
    },
    {
      what: 'a previous seal key inside the data directory',
      input: withSeal({
        type: 'static',
        key_id: 'a',
        key_env: 'K',
        previous: { key_id: 'b', key_file: '/var/lib/transitd/x/../old' },
      }),
      says: /inside data_dir/,
    },
    { what: 'a prefix that would break ciphertexts', input: { ...minimal, ciphertext_prefix: 'a:b' }, says: /ciphertext_prefix/ },
    {
      what: 'a default token TTL above the maximum',
      input: { ...minimal, tokens: { default_ttl: '2h', max_ttl: '1h' } },
      says: /tokens/,
    },
    { what: 'a token TTL of 0', input: { ...minimal, tokens: { default_ttl: 0 } }, says: /tokens.default_ttl/ },
    {
      what: 'a trusted proxy that is not an address',
      input: { ...minimal, trusted_proxies: ['proxy.example'] },
      says: /trusted_proxies/,
    },
    { what: 'a list instead of a document', input: [], says: /document/ },
  ]) {
    it(`refuses ${what}, in one sentence that names the key`, () => {
      expect(() => parseConfig(input))
        .to.throw(StartError, says)
        .with.property('message')
        .that.does.not.include('\n');
    });
  }

  describe('names', () => {
    let folder = '';
    before(() => {
      folder = mkdtempSync(join(tmpdir(), 'transitd-config-'));
    });
    after(() => rmSync(folder, { recursive: true }));
    /** Returns the error of a file with this text. */
    const faultsIn = (text: string, environment: NodeJS.ProcessEnv = {}): string => {
      const file = join(folder, 'c.yaml');
      writeFileSync(file, text);
      try {
        readConfigFile(file, environment);
      } catch (error) {
        if (error instanceof StartError) return error.message.replaceAll(file, 'c.yaml');
        throw error;
      }
      return 'none';
    };

    it('all faults at once: each with file, line, column, key, expected form, value and the name that was meant', () => {
      const text = [
        'node_di: n1',
        'data_dir: /d',
        'listeners:',
        '  - address: 127.0.0.1:8200',
        '    tls_disable: true',
        '    headers_timeout: 6m',
        '    max_requst_size: 5',
        'log: { level: inof }',
        'limits: { reads: many, changes: 0 }',
        'seal: { type: sttic }',
      ].join('\n');
      expect(faultsIn(text, { TRANSITD_RAFT_HEARTBEAT: '1ms', TRANSITD_RAFT_LAESE: '0' }).split('\n')).to.deep.equal([
        'configuration: 10 faults',
        '  TRANSITD_RAFT_LAESE: is not an environment variable of the configuration: correct its name or unset it; did you mean "TRANSITD_RAFT_LEASE"?',
        '  c.yaml:1:1: node_id: is missing: it must be a string',
        '  c.yaml:6:22: listeners.0.headers_timeout: must be between 1s and 5m, not "6m"',
        '  c.yaml:7:5: listeners.0.max_requst_size: is not a key of the configuration; did you mean "max_request_size"?',
        '  c.yaml:10:15: seal.type: must be one of shamir, static, transit, pkcs11, awskms, azurekeyvault, gcpckms, not "sttic"; did you mean "static"?',
        '  TRANSITD_RAFT_HEARTBEAT: raft.heartbeat: must be at least 20ms, not "1ms"',
        '  c.yaml:9:18: limits.reads: must be a number, not "many"',
        '  c.yaml:9:33: limits.changes: must be at least 1, not 0',
        '  c.yaml:8:15: log.level: must be one of trace, debug, info, warn, error, fatal, silent, not "inof"; did you mean "info"?',
        '  c.yaml:1:1: node_di: is not a key of the configuration; did you mean "node_id"?',
      ]);
    });

    it('all faults that involve several keys', () => {
      const text = 'node_id: n1\ndata_dir: /d\nlisteners: [{ address: "127.0.0.1:1", tls_disable: true }]\n';
      const more = 'retry_join: [http://a]\nlimits:\n  body_memory: 2MiB\nseal: { type: static, key_id: k, key_file: /d/k }\n';
      expect(
        faultsIn(text + more)
          .split('\n')
          .map((line) => line.trim().split(': ').slice(0, 2)),
      ).to.deep.equal([
        ['configuration', '3 faults'],
        ['c.yaml:1:1', 'cluster_addr'],
        ['c.yaml:6:16', 'limits.body_memory'],
        ['c.yaml:7:7', 'seal'],
      ]);
    });

    it('the file and the position of a single fault in one line', () => {
      const text = 'node_id: n1\ndata_dir: /d\nlisteners:\n  - { address: "127.0.0.1:1" }\n';
      expect(faultsIn(text)).to.equal('configuration: c.yaml:4:5: listeners.0: needs tls or tls_disable: true');
    });

    for (const [address, fault] of [
      ['n1.example', 'must be an address such as n1.example:8201'],
      ['n1?:8201', 'must be an address such as n1.example:8201'],
      ['n1:65536', 'must have a port up to 65535'],
      ['node-1.0:8201', 'must have a host that may stand in a URL'],
      ['[1::2::3]:8201', 'must have a host that may stand in a URL'],
    ] as const)
      it(`the cluster address ${address}, which no node could connect to`, () => {
        const text = 'node_id: n1\ndata_dir: /d\nlisteners: [{ address: "127.0.0.1:1", tls_disable: true }]\n';
        expect(faultsIn(`${text}cluster_addr: "${address}"\n`)).to.include(`c.yaml:4:15: cluster_addr: ${fault}`);
      });

    it('the value of an alias at its anchor', () => {
      const text = 'node_id: n1\ndata_dir: /d\nlisteners: [{ address: "127.0.0.1:1", tls_disable: true }]\n';
      expect(faultsIn(`${text}limits: &x { reads: 0 }\nraft: *x\n`)).to.include('c.yaml:4:14: raft.reads: is not a key');
    });

    it('no value of a seal, in which a key may have been pasted', () => {
      const text = 'node_id: n1\ndata_dir: /d\nlisteners: [{ address: "127.0.0.1:1", tls_disable: true }]\n';
      const secret = 'c2VjcmV0'.repeat(30);
      expect(faultsIn(`${text}seal: { type: static, key_id: ${secret}, key: ${secret} }\n`)).to.not.include('c2Vj');
    });

    it('every mistake of the YAML with its position', () => {
      expect(faultsIn('a: 1\na: 2\nb: [\n')).to.match(/c\.yaml:2:1: Map keys must be unique[\s\S]*c\.yaml:4:1: /);
    });

    for (const text of [
      '[',
      'a: *b',
      '- 1',
      '5',
      '',
      '{a: {b: [}]',
      '? [x]\n: 1',
      'listeners: [[]]',
      'listeners: {a: 1}',
      '\u0000',
    ]) {
      it(`a fault, and never fails otherwise, for ${JSON.stringify(text)}`, () =>
        expect(faultsIn(text)).to.match(/^configuration: /));
    }
  });

  it('reads settings from the environment', () => {
    const config = parseConfig(
      {},
      {
        TRANSITD_NODE_ID: '7',
        TRANSITD_DATA_DIR: '/d',
        TRANSITD_LISTEN_ADDRESS: '127.0.0.1:0',
        TRANSITD_LISTEN_TLS_DISABLE: 'true',
        TRANSITD_LOG_LEVEL: 'debug',
        TRANSITD_RAFT_TRAILING_LOGS: '50',
        TRANSITD_LIMITS_READS: '7',
        TRANSITD_LIMITS_BODY_MEMORY: '64MiB',
        TRANSITD_SEAL_TYPE: 'static',
        TRANSITD_SEAL_KEY_ID: '2026',
        TRANSITD_SEAL_KEY_ENV: 'K',
        TRANSITD_TOKEN: 'for the client in the same shell',
        PATH: '/bin',
      },
    );
    expect(config).to.deep.include({ node_id: '7', data_dir: '/d', seal: { type: 'static', key_id: '2026', key_env: 'K' } });
    expect(config.log.level).to.equal('debug');
    expect(config.raft.trailing_logs).to.equal(50);
    expect(config.limits).to.deep.include({ reads: 7, body_memory: 64 * 2 ** 20 });
  });

  it('refuses an unknown variable, except the one that holds the seal key', () => {
    expect(() => parseConfig(minimal, { TRANSITD_COLOR: 'red' })).to.throw(StartError, /TRANSITD_COLOR/);
    const seal = { type: 'static', key_id: 'a', key_env: 'TRANSITD_MY_SEAL' };
    expect(parseConfig({ ...minimal, seal }, { TRANSITD_MY_SEAL: 'secret' }).seal).to.deep.equal(seal);
  });

  it('accepts the variable of the seal key when only the environment names it', () => {
    const variables = { TRANSITD_SEAL_TYPE: 'static', TRANSITD_SEAL_KEY_ID: 'a', TRANSITD_SEAL_KEY_ENV: 'TRANSITD_MYKEY' };
    expect(parseConfig(minimal, { ...variables, TRANSITD_MYKEY: 'secret' }).seal).to.include({ key_env: 'TRANSITD_MYKEY' });
    expect(parseConfig(minimal, { TRANSITD_MYKEY: 'secret', ...variables }).seal).to.include({ key_env: 'TRANSITD_MYKEY' });
  });

  it('refuses a number with leading zeros', () => {
    expect(() => parseConfig(minimal, { TRANSITD_RAFT_TRAILING_LOGS: '0100' })).to.throw(StartError, /raft.trailing_logs/);
  });

  it('lets fixed settings replace the settings of the environment', () => {
    const environment = { TRANSITD_DATA_DIR: '/elsewhere', TRANSITD_NODE_ID: 'n2' };
    expect(parseConfig(minimal, environment, { data_dir: '/here' })).to.include({ data_dir: '/here', node_id: 'n2' });
  });

  it('refuses a seal key inside the data directory also through a symbolic link, or when its name starts with dots', () => {
    const folder = mkdtempSync(join(tmpdir(), 'transitd-config-'));
    try {
      mkdirSync(join(folder, 'data'));
      symlinkSync(join(folder, 'data'), join(folder, 'link'));
      writeFileSync(join(folder, 'data/key'), '');
      symlinkSync(join(folder, 'data/key'), join(folder, 'key'));
      const parse = (data_dir: string, key_file: string): unknown =>
        parseConfig({
          ...minimal,
          data_dir: join(folder, data_dir),
          seal: { type: 'static', key_id: 'a', key_file: join(folder, key_file) },
        });
      for (const [data, key] of [
        ['data', 'link/key'],
        ['link', 'data/later'],
        ['link/new', 'data/new/..key'],
        ['data', 'key'],
        ['data', 'data/..key'],
      ] as const)
        expect(() => parse(data, key), `${data} ${key}`).to.throw(StartError, /inside data_dir/);
      for (const [data, key] of [
        ['data', 'database/key'],
        ['data/deeper', 'key'],
        ['data', '..key'],
      ] as const)
        expect(() => parse(data, key), `${data} ${key}`).not.to.throw();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('reads YAML, and reports a file that is invalid or missing', () => {
    const folder = mkdtempSync(join(tmpdir(), 'transitd-config-'));
    try {
      const file = join(folder, 'c.yaml');
      writeFileSync(file, 'node_id: n1\ndata_dir: /d\nlisteners:\n  - address: "[::1]:8200"\n    tls_disable: true\n');
      expect(readConfigFile(file, {}).listeners[0]?.address).to.deep.equal({ host: '::1', port: 8200 });
      writeFileSync(file, 'node_id: n1\nnode_id: n2\n');
      expect(() => readConfigFile(file, {})).to.throw(StartError, /not valid YAML/);
      expect(() => readConfigFile(join(folder, 'none'), {})).to.throw(StartError, /cannot be read: ENOENT/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('accepts the example in deploy', () => {
    const example = join(import.meta.dirname, '../../../deploy/transitd.example.yaml');
    expect(readConfigFile(example, {}).seal).to.deep.equal({ type: 'shamir' });
  });

  it('recognizes loopback addresses', () => {
    expect(['127.0.0.1', '127.9.9.9', '::1', 'localhost'].filter((host) => !isLoopback(host))).to.deep.equal([]);
    expect(['0.0.0.0', '', '::', '10.0.0.1', '127.evil.example', 'example.org'].filter(isLoopback)).to.deep.equal([]);
  });
});

describe('units', () => {
  for (const [text, ms] of [
    ['10s', 10_000],
    ['150ms', 150],
    ['1h30m', 5_400_000],
    ['1.5h', 5_400_000],
    ['0', 0],
    [60, 60_000],
    ['2d', 172_800_000],
    ['x', undefined],
    ['-1s', undefined],
    ['1 s', undefined],
    ['', undefined],
  ] as const) {
    it(`reads the duration ${JSON.stringify(text)} as ${ms} ms`, () => expect(parseDurationMs(text)).to.equal(ms));
  }
  for (const [text, bytes] of [
    ['512MiB', 536_870_912],
    ['1KiB', 1024],
    [5, 5],
    ['5', 5],
    ['1MB', undefined],
    ['-1', undefined],
    ['99999999TiB', undefined],
  ] as const) {
    it(`reads the size ${JSON.stringify(text)} as ${bytes} bytes`, () => expect(parseByteSize(text)).to.equal(bytes));
  }
});
