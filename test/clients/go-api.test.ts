// @live
// The Go clients of Vault and OpenBao, on which Go services and most tools build, unchanged against a live node.
import { expect } from 'chai';
import { type LiveServer, Workbench } from '../process/live-server.ts';
import { build, runProgram } from './go-programs.ts';
import { startLoneNode } from './lone-node.ts';
import { startWorkloadNode } from './workload-node.ts';

const denied = { errors: ['permission denied'], status: 403 };

const exercises = {
  'reads health, seal status, leader, nodes and audit devices, and rotates the barrier’s key': {
    exercise: 'status',
    outcome: {
      initialized: true,
      health: [true, false, false],
      same_cluster: true,
      same_version: true,
      sealed: false,
      leader: true,
      active_since: true,
      active_nodes: [true],
      rotated: 1,
      installed_later: true,
      audit: 0,
    },
  },
  'enables, reads, tunes, moves and disables mounts': {
    exercise: 'mounts',
    outcome: {
      type: 'transit',
      description: true,
      accessor: true,
      uuid: true,
      lease: [3_600, 7_200],
      tuned: [3_600, 10_800],
      retold: true,
      method: 10_800,
      visibility: 'unauth',
      moved: 'orders',
      listed: ['crew/', 'sys/', 'transit/'],
      gone: 404,
      unknown: 400,
    },
  },
  'writes, reads, lists and deletes policies, and reads the capabilities of a token': {
    exercise: 'policies',
    outcome: {
      read: true,
      listed: true,
      self: ['update'],
      other: ['update'],
      by_accessor: ['update'],
      none: ['deny'],
      broken: 400,
      missing: '',
    },
  },
  'creates, looks up, renews and revokes tokens': {
    exercise: 'tokens',
    outcome: {
      policies: ['default'],
      metadata: { team: 'orders' },
      ttl: true,
      renewable: true,
      by_accessor: true,
      renewed: 300,
      renewed_self: 1_200,
      renewed_as: 240,
      renewed_by: 180,
      by_role: 300,
      orphan: true,
      listed: true,
      revoked: [403, 403, 403, 403],
    },
  },
  'keeps a token alive, and reports one that is not renewable': {
    exercise: 'watcher',
    outcome: { lease: 7_200, same: true, fixed: 'secret is not renewable' },
  },
  'logs in with a password, and with a wrapped secret id that works once': {
    exercise: 'auth',
    outcome: {
      person: ['clerk', 'default'],
      metadata: { username: 'ann' },
      service: ['clerk', 'default'],
      wrong: 400,
      spent: 400,
      may: [0, 403],
      methods: ['userpass', 'approle', 'token'],
      ended: 403,
    },
  },
  'reads, writes, lists and deletes by path': {
    exercise: 'logical',
    outcome: {
      created: 'plain',
      request_id: true,
      listed: ['other', 'plain'],
      paged: ['plain'],
      read: 1,
      bytes: 1,
      raw: 200,
      deleted: true,
      missing: true,
      missing_list: true,
      patched: 405,
    },
  },
  'requests wrapped responses, and unwraps each once': {
    exercise: 'wrapping',
    outcome: {
      ttl: 90,
      path: 'transit/datakey/plaintext/sealed',
      empty: true,
      not_for_read: true,
      lookup: 'transit/datakey/plaintext/sealed',
      opened: 32,
      by_itself: true,
      twice: 400,
      note: 'hello',
      accessor: true,
    },
  },
  'reports errors with their status and text': {
    exercise: 'refusals',
    outcome: {
      unknown: 404,
      invalid: { errors: ['encryption key not found'], status: 400 },
      stranger: denied,
      nobody: denied,
      namespace: { errors: ['namespace not found'], status: 404 },
      root_namespace: null,
      raw: { errors: ['cannot unmount "sys/"'], status: 400 },
    },
  },
  'respects a rate limit': {
    exercise: 'limits',
    outcome: { limit: '1', remaining: '0', retry_after: '1', refused: 429, patient: 0, cleared: true },
  },
  'sends the index of its writes with its reads': {
    exercise: 'index',
    outcome: { told: true, sent: true, resent: true, latest: 2 },
  },
  'encrypts, decrypts, signs, verifies, rotates, trims, exports and restores': {
    exercise: 'transit',
    outcome: {
      prefixes: ['svc:v1:', 'svc:v2:'],
      decrypted: 'hello',
      as_vault: 'hello',
      exported: 2,
      random: 32,
      hash: 64,
      data_key: 64,
      data_key_opened: true,
      batch: { reference: 'a', versions: [2, 2], half: 400, lenient: true, opened: ['one', 'two'] },
      signed: { here: true, there: [true, false], hmac: [true, false] },
      trimmed: 400,
      deleted: 400,
      restored: 'hello',
    },
  },
  'imports keys': {
    exercise: 'import',
    outcome: { opened_here: ['hello', 'again'], signed: true, latest: 2, imported: true },
  },
  'lists members, saves a snapshot and restores it': {
    exercise: 'raft',
    outcome: {
      archive: ['meta.json', 'state.bin', 'SHA256SUMS', 'SHA256SUMS.sealed'],
      late: true,
      damaged: 400,
      healthy: true,
      voters: 1,
      leader: 'leader',
      servers: 1,
      autopilot: 500,
      last_contact: '10s',
    },
  },
} as const;

for (const { client, program } of [
  { client: 'github.com/hashicorp/vault/api', program: 'vault-api' },
  { client: 'github.com/openbao/openbao/api/v2', program: 'openbao-api' },
] as const)
  describe(client, () => {
    const bench = new Workbench();
    let server: LiveServer;
    let token = '';

    const outcomeOf = (exercise: string): Promise<Record<string, unknown>> =>
      outcomeWith(exercise, { TRANSITD_ADDR: server.url, TRANSITD_TOKEN: token });

    const outcomeWith = async (exercise: string, env: Readonly<Record<string, string>>): Promise<Record<string, unknown>> => {
      const { code, stdout, stderr } = await runProgram(program, [exercise], { env });
      expect(code, stderr).to.equal(0);
      return JSON.parse(stdout) as Record<string, unknown>;
    };

    before(async function () {
      await build(this, program);
      server = await startLoneNode(bench);
    });
    after(() => bench.clean());

    it('initializes, unseals and seals a node, and changes its shares', async () => {
      const { root_token, ...outcome } = await outcomeOf('init');
      token = String(root_token);
      expect(outcome).to.deep.equal({
        fresh: false,
        shares: [3, 3, 2, 3],
        progress: [1, 1], // the node ignores a reset for one minute after a valid share
        unsealed: true,
        sealed_again: true,
        while_sealed: 503,
        made_root: ['root'],
        new_shares: 2,
        serves: true,
      });
    });

    for (const [does, { exercise, outcome }] of Object.entries(exercises))
      it(does, async () => {
        expect(await outcomeOf(exercise)).to.deep.equal(outcome);
      });

    it('logs in with the identities that workloads have', async () => {
      const { node, workload, close } = await startWorkloadNode(bench);
      const env = {
        TRANSITD_ADDR: node.server.url,
        TRANSITD_CA: workload['ca'] ?? '',
        TRANSITD_TOKEN: node.rootToken,
        TRANSITD_WORKLOAD: JSON.stringify(workload),
      };
      const entered = { policies: ['default', 'writer'], ttl: '10m0s', renewable: true, same: true, renewed: 300 };
      try {
        const { cert, ...others } = await outcomeWith('logins', env);
        expect(others).to.deep.equal({
          kubernetes: {
            login: {
              ...entered,
              name: 'kubernetes-shop-web',
              metadata: {
                role: 'web',
                service_account_name: 'web',
                service_account_namespace: 'shop',
                service_account_secret_name: '',
                service_account_uid: '7d2c',
              },
            },
            unknown: 403,
          },
          jwt: { login: { ...entered, name: 'jwt-pipeline', metadata: { role: 'ci' } }, other: 400 },
        });
        expect(cert).to.deep.include({ without: 400, other: 400 });
        expect(cert)
          .to.have.property('login')
          .that.deep.includes({ ...entered, name: 'cert-web' });
        expect(cert).to.nested.include({ 'login.metadata.cert_name': 'web', 'login.metadata.common_name': 'web' });
      } finally {
        close();
      }
    });
  });
