// A configuration that contradicts the data directory ends the start with one sentence.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeMembership } from '@transitd/cluster';
import { parseConfig } from '@transitd/configuration';
import { StartError } from '@transitd/process';
import { bootstrapBase } from '@transitd/raft-core';
import { createNode } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { pino } from 'pino';
import { Node } from '../src/node.ts';

describe('a configuration that contradicts the data directory', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-contradiction-'));
    for (const [name, byte] of [
      ['a', 1],
      ['b', 2],
    ] as const)
      writeFileSync(join(folder, name), Buffer.alloc(32, byte), { mode: 0o600 });
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const staticSeal = (key_id: string, file: string) => ({ type: 'static', key_id, key_file: join(folder, file) });
  const lines: string[] = [];
  const open = (change: object): Promise<Node> =>
    Node.open({
      config: parseConfig({
        node_id: 'n1',
        data_dir: join(folder, 'data'),
        listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
        seal: staticSeal('one', 'a'),
        ...change,
      }),
      log: pino({ level: 'warn' }, { write: (line: string) => lines.push(line) }),
      onFatal: (error) => {
        throw error;
      },
    });
  /** Returns the refusal of a start; undefined if the node started. */
  const refusalOf = async (change: object): Promise<string | undefined> => {
    lines.length = 0;
    try {
      await (await open(change)).stop();
      return undefined;
    } catch (error) {
      expect(error).to.be.instanceOf(StartError);
      return (error as StartError).message;
    }
  };

  /** Creates the data directory of node 1, whose members have these names. */
  const dataOf = async (...names: readonly string[]): Promise<void> => {
    const members = names.map((name, i) => ({
      id: i + 1,
      name,
      apiAddress: `http://10.0.0.${i + 1}:8200`,
      clusterAddress: `10.0.0.${i + 1}:8201`,
      certificate: String(i + 1).repeat(64),
      nonVoter: false,
      levels: { oldest: 1, newest: 1 },
    }));
    const { conf, ...base } = bootstrapBase(1);
    const voters = members.map(({ id }) => id);
    const context = encodeMembership({ members, removed: [] });
    const node = { clusterId: '1f7a8e36-0a0a-4b54-8f0a-0c6b6a3b7c11', nodeId: 1 };
    await createNode(join(folder, 'data'), { ...node, base: { ...base, conf: { ...conf, voters, context } } });
  };
  /** Creates the data directory of an initialized node that no other can join. */
  const initialized = async (): Promise<void> => {
    const node = await open({});
    await node.initialize({ recoveryShares: 1, recoveryThreshold: 1 });
    await node.stop();
  };

  const cluster_addr = '127.0.0.1:1';
  for (const { what, data, change, says } of [
    {
      what: 'the name of another member',
      data: () => dataOf('n1', 'n2'),
      change: { cluster_addr, node_id: 'n2' },
      says: /^node_id is n2, but data_dir belongs to the member n1 of a cluster: set node_id to n1, or/,
    },
    {
      what: 'a new name',
      data: () => dataOf('n1', 'n2'),
      change: { cluster_addr, node_id: 'n9' },
      says: /^node_id is n9, but data_dir belongs to the member n1 of a cluster/,
    },
    {
      what: 'no cluster_addr',
      data: () => dataOf('n1', 'n2'),
      change: {},
      says: /^cluster_addr is missing, but data_dir belongs to a cluster that has or had other members: set cluster_addr/,
    },
    {
      what: 'another engine',
      data: initialized,
      change: { cluster_addr, storage: { type: 'etcd', endpoints: ['http://127.0.0.1:1'] } },
      says: /^storage.type is etcd, but data_dir holds a node/,
    },
    {
      what: 'another type of seal',
      data: initialized,
      change: { seal: { type: 'shamir' } },
      says: /^seal: the data was sealed with type static, the configuration says shamir: correct seal.type/,
    },
    {
      what: 'another id of the seal key',
      data: initialized,
      change: { seal: { type: 'static', key_id: 'two', key_file: 'a' } },
      says: /^seal: no seal key with the id "one" is configured/,
    },
    {
      what: 'another seal key',
      data: initialized,
      change: { seal: { type: 'static', key_id: 'one', key_file: 'b' } },
      says: /^seal: /,
    },
  ])
    it(`is refused in one sentence: ${what}`, async () => {
      await data();
      const { seal } = change as { readonly seal?: { readonly key_file?: string } };
      const given = seal?.key_file === undefined ? change : { seal: { ...seal, key_file: join(folder, seal.key_file) } };
      const refusal = await refusalOf(given);
      expect(refusal).to.match(says);
      expect(refusal).not.to.include('\n');
    });

  it('is accepted, with a line in the log, when only the name of the sole member changed', async () => {
    await dataOf('n1');
    expect(await refusalOf({ cluster_addr, node_id: 'n9' })).to.equal(undefined);
    expect(lines.filter((line) => line.includes('node_id was changed'))).to.have.length(1);
  });

  it('does not keep a member from starting whose name another member has too', async () => {
    await dataOf('n1', 'n1', 'n3');
    expect(await refusalOf({ cluster_addr })).to.equal(undefined);
  });
});
