import { parseConfig } from '@transitd/configuration';
import { noObserver } from '@transitd/process';
import { expect } from 'chai';
import { pino } from 'pino';
import type { Joining } from '../src/join/joining.ts';
import { Phases } from '../src/phases.ts';
import { errorOf } from './opened-nodes.ts';

describe('the phases of a node', () => {
  it('end a join when the node creates a cluster, even if it cannot be opened: later shares must not admit it to another one', async () => {
    const calls: string[] = [];
    const host = {
      config: parseConfig({ node_id: 'n1', data_dir: '/nowhere', listeners: [{ address: '127.0.0.1:0', tls_disable: true }] }),
      log: pino({ level: 'silent' }),
      observer: noObserver,
      directory: {
        holdsNode: async () => false,
        bootstrapCluster: async () => void calls.push('cluster created'),
        openStorage: () => Promise.reject(new Error('the disk is full')),
      },
    };
    const phases = new Phases(host as unknown as ConstructorParameters<typeof Phases>[0]);
    phases.join({ close: () => void calls.push('join closed') } as unknown as Joining);
    expect(String(await errorOf(phases.found()))).to.equal('Error: the disk is full');
    expect(calls).to.deep.equal(['cluster created', 'join closed']);
    expect(phases.present.kind).to.equal('noCluster');
  });
});
