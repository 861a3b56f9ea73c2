import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseConfig } from '@transitd/configuration';
import { expect } from 'chai';
import { pino } from 'pino';
import { until } from '../../process/test/until.ts';
import { awsMock, awsRegion } from '../../seals/test/awskms/aws-mock.ts';
import { KeysOfAProvider } from '../../seals/test/contract/keys-of-a-provider.ts';
import { Node } from '../src/node.ts';

const variables = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'the+secret' };

describe('a node with an awskms seal', () => {
  let folder = '';
  const nodes: Node[] = [];
  const before = { ...process.env };
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-node-'));
    Object.assign(process.env, variables);
  });
  afterEach(async () => {
    for (const node of nodes.splice(0)) await node.stop();
    for (const name of Object.keys(variables)) delete process.env[name];
    Object.assign(process.env, before);
    rmSync(folder, { recursive: true });
  });

  const mockWith = async (keys?: KeysOfAProvider) => {
    const mock = await awsMock(keys);
    Object.defineProperty(mock.state, 'nowMs', { get: () => Date.now() });
    mock.state.credentials.set('AKIDEXAMPLE', { secret: 'the+secret', session: undefined });
    return mock;
  };
  const open = async (endpoint: string): Promise<Node> => {
    const config = parseConfig({
      ...{ node_id: 'n1', data_dir: join(folder, 'data'), listeners: [{ address: '127.0.0.1:0', tls_disable: true }] },
      seal: { type: 'awskms', region: awsRegion, kms_key_id: 'one', endpoint },
    });
    const onFatal = (error: Error): never => {
      throw error;
    };
    const node = await Node.open({ config, log: pino({ level: 'silent' }), onFatal });
    nodes.push(node);
    return node;
  };

  it('is initialized, and unseals by itself after a restart; with another key it stays sealed and says why', async () => {
    const mock = await mockWith();
    // A key service with keys of the same names that were made again.
    const other = await mockWith(new KeysOfAProvider('one'));
    try {
      const first = await open(mock.address);
      await first.initialize({ recoveryShares: 1, recoveryThreshold: 1 });
      expect(first.sealStatus).to.include({ type: 'awskms', sealed: false, recoverySeal: true });
      await first.stop();
      const again = await open(mock.address);
      await until(() => again.sealStatus.sealed === false);
      await again.stop();
      const sealed = await open(other.address);
      await until(() => sealed.sealHealth?.failure === 'wrong_key');
      expect(sealed.sealStatus.sealed).to.equal(true);
    } finally {
      await mock.close();
      await other.close();
    }
  });
});
