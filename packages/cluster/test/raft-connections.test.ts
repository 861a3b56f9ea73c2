import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Logger, noObserver } from '@transitd/process';
import { LogDamage } from '@transitd/raft-core';
import { StorageDamaged } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { until } from '../../process/test/until.ts';
import { type ClusterHost, ForwardedRequests } from '../src/ports/cluster-host.ts';
import { MemberEvents } from '../src/ports/member-events.ts';
import { RaftConnections } from '../src/raft-connections.ts';

describe('the connections of a node whose log is not open', () => {
  let directory: string;
  let fatal: Error[];
  let heard: string[];
  let logged: object[];
  let host: ClusterHost;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'transitd-connections-'));
    [fatal, heard, logged] = [[], [], []];
    const events = new MemberEvents();
    for (const kind of ['members', 'removed', 'removalNotice'] as const) events.on(kind, () => void heard.push(kind));
    host = {
      config: { cluster_addr: '127.0.0.1:1' } as ClusterHost['config'],
      log: { error: (facts: object) => void logged.push(facts) } as unknown as Logger,
      ...{ observer: noObserver, directory, api: { url: '' }, events, forwarded: new ForwardedRequests() },
      onFatal: (error) => void fatal.push(error),
    };
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  it('report changes of the configuration as changes of the members', async () => {
    await RaftConnections.open(host);
    host.events.emit('configuration');
    expect(heard).to.deep.equal(['members']);
  });

  it('reach no peer', async () => {
    const connections = await RaftConnections.open(host);
    expect(() => connections.peers).to.throw('only once its log is open');
    await connections.close();
  });

  it('report the end of the membership once, and remember it at the next start', async () => {
    const connections = await RaftConnections.open(host);
    let wasRemoved: boolean | undefined;
    host.events.on('removed', () => {
      wasRemoved = connections.removed;
    });
    for (let notice = 0; notice < 2; notice++) connections.endMembership(7);
    expect(heard).to.deep.equal(['removed']);
    expect(wasRemoved, 'as the listeners see it').to.equal(true);
    await connections.close();
    const again = await RaftConnections.open(host);
    expect([again.removed, again.ports.driver.removed]).to.deep.equal([true, true]);
  });

  it('end without an error if the disk refuses to record the end of the membership, and log that', async () => {
    const connections = await RaftConnections.open(host);
    rmSync(directory, { recursive: true });
    connections.endMembership(7);
    await until(() => logged.length > 0);
    expect(logged).to.have.length(1);
    expect(logged[0]).to.have.property('reason').that.includes('ENOENT');
    await connections.close();
  });

  it('end the process when the storage fails, and let it start again', async () => {
    const connections = await RaftConnections.open(host);
    const failure = new Error('the disk is gone');
    connections.storageFailed(failure);
    expect(fatal).to.deep.equal([failure]);
    await RaftConnections.open(host);
  });

  it('end the process when the log is damaged, once, after recording that this data directory must not be used again', async () => {
    const connections = await RaftConnections.open(host);
    const damage = new LogDamage('entries are missing');
    connections.storageFailed(damage);
    connections.storageFailed(new Error('a consequence'));
    expect(fatal).to.deep.equal([]);
    await until(() => fatal.length > 0);
    expect(fatal).to.deep.equal([damage]);
    const refusal = await RaftConnections.open(host).catch((error: unknown) => error);
    expect(refusal).to.be.instanceOf(StorageDamaged);
  });
});
