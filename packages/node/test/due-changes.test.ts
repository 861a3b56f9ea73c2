import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AuditWriter } from '@transitd/audit';
import { parseConfig } from '@transitd/configuration';
import { expect } from 'chai';
import { pino } from 'pino';
import { Node } from '../src/node.ts';

describe('an automatic change of a key', () => {
  let folder = '';
  let node: Node;
  let isWorking = true;
  /** The audit entries and the lines of the log, in the order in which they were written. */
  const entries: { type: string; error?: string; request: object; auth: object; response?: object; time?: string }[] = [];
  const lines: { msg: string }[] = [];
  const audit: AuditWriter = {
    names: ['main'],
    write: async (_, entryFor) => {
      if (!isWorking) throw new Error('the disk is full');
      entries.push(JSON.parse(entryFor('main')));
    },
    buildFailed: (error) => expect.fail(String(error)),
  };
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-rotation-'));
    const key_file = join(folder, 'key');
    writeFileSync(key_file, Buffer.alloc(32, 1), { mode: 0o600 });
    const config = parseConfig({
      node_id: 'n1',
      data_dir: join(folder, 'data'),
      listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
      seal: { type: 'static', key_id: 'one', key_file },
    });
    const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
    node = await Node.open({ config, log, audit, onFatal: (error) => expect.fail(error.message) });
    node.maintenance.stop(); // its own rounds would be audited too
    await node.initialize({ recoveryShares: 1, recoveryThreshold: 1 });
    await node.services?.mounts.enable({ path: 'team/a', type: 'transit' });
  });
  after(async () => {
    await node.stop();
    rmSync(folder, { recursive: true });
  });
  beforeEach(() => {
    isWorking = true;
    entries.splice(0);
    lines.splice(0);
  });

  /** Runs a round of the tasks in which one key of `team/a` is due; returns whether it was rotated. */
  const round = async (rotate: () => Promise<number | undefined>): Promise<boolean> => {
    const engine = node.services?.mounts.engines.get('team/a');
    if (engine === undefined) throw new Error('not mounted');
    let isAsked = false;
    engine.rotateDue = async (_, around = (_name, run) => run()) => {
      const run = (): Promise<number | undefined> => {
        isAsked = true;
        return rotate();
      };
      return around('orders', run).then(
        (version) => ({ done: version === undefined ? 0 : 1, failed: [] }),
        (error: unknown) => ({ done: 0, failed: [{ name: 'orders', error }] }),
      );
    };
    await node.maintenance.runActiveTasks();
    return isAsked;
  };
  /** Runs a round of the tasks in which versions of one key of `team/a` are due to be deleted. */
  const trimRound = async (trim: () => Promise<number | undefined>): Promise<void> => {
    const engine = node.services?.mounts.engines.get('team/a');
    if (engine === undefined) throw new Error('not mounted');
    engine.rotateDue = async () => ({ done: 0, failed: [] });
    engine.trimDue = async (_, __, around = (_name, run) => run()) =>
      around('orders', trim).then(
        () => ({ done: 1, failed: [] }),
        (error: unknown) => ({ done: 0, failed: [{ name: 'orders', error }] }),
      );
    await node.maintenance.runActiveTasks();
  };
  const linesAbout = (text: string) => lines.filter(({ msg }) => msg.includes(text));

  it('is audited before and after it as a request without a caller, and logged with mount, key and version', async () => {
    expect(
      await round(async () => {
        expect(entries.map(({ type }) => type)).to.deep.equal(['request']);
        return 7;
      }),
    ).to.equal(true);
    const [request, response] = entries;
    expect(entries).to.have.length(2);
    expect(request).to.deep.include({ type: 'request', auth: {} });
    expect(request?.request).to.deep.include({
      operation: 'update',
      path: 'team/a/keys/orders/rotate',
      mount_point: 'team/a/',
      mount_type: 'transit',
      remote_address: '',
      data: { automatic: true },
    });
    expect(response?.request).to.deep.equal(request?.request);
    expect(response?.response).to.deep.include({ status: 200, data: { latest_version: 7 } });
    expect(linesAbout('rotated a key that was due')[0]).to.deep.include({ mount: 'team/a', key: 'orders', version: 7 });
  });

  it('is audited and logged as failed if it fails', async () => {
    await round(() => Promise.reject(new Error('no material')));
    expect(entries[1]?.response).to.deep.include({ status: 500 });
    expect(entries[1]?.error).to.equal('no material');
    expect(linesAbout('could not rotate')[0]).to.deep.include({
      ...{ level: 40, mount: 'team/a', key: 'orders', reason: 'no material', failed: 1 },
    });
  });

  it('is audited as without effect if the key is not due any more', async () => {
    await round(async () => undefined);
    expect(entries[1]?.response).to.deep.include({ status: 409 });
    expect(linesAbout('rotate')).to.deep.equal([]);
  });

  it('is put off while no device can record it', async () => {
    isWorking = false;
    expect(await round(async () => 8), 'not rotated').to.equal(false);
    expect(linesAbout('could not rotate')[0]).to.have.property('reason').that.contains('no audit device could write');
  });

  it('that deletes versions is audited as a request to trim it, and logged with the oldest version that is left', async () => {
    await trimRound(async () => 3);
    const [request, response] = entries;
    expect(request?.request).to.deep.include({ path: 'team/a/keys/orders/trim', data: { automatic: true } });
    expect(response?.response).to.deep.include({ status: 200, data: { min_available_version: 3 } });
    expect(linesAbout('deleted versions of a key')[0]).to.deep.include({ mount: 'team/a', key: 'orders', version: 3 });
    await trimRound(() => Promise.reject(new Error('too large')));
    expect(linesAbout('could not delete versions')[0]).to.deep.include({ key: 'orders', reason: 'too large' });
  });

  it('that deletes it is audited as its deletion, and logged with its name', async () => {
    const engine = node.services?.mounts.engines.get('team/a');
    if (engine === undefined) throw new Error('not mounted');
    const deleteRound = async (remove: () => Promise<number | undefined>): Promise<void> => {
      engine.deleteDue = async (_, __, around = (_name, run) => run()) =>
        around('orders', remove).then(
          () => ({ done: 1, failed: [] }),
          (error: unknown) => ({ done: 0, failed: [{ name: 'orders', error }] }),
        );
      await trimRound(async () => undefined);
    };
    await deleteRound(async () => 3);
    const [request, response] = entries.slice(-2);
    expect(request?.request).to.deep.include({ operation: 'delete', path: 'team/a/keys/orders', data: { automatic: true } });
    expect(response?.response).to.deep.include({ status: 204 });
    expect(linesAbout('deleted a key whose scheduled deletion was due')[0]).to.deep.include({ mount: 'team/a', key: 'orders' });
    await deleteRound(() => Promise.reject(new Error('not allowed')));
    expect(linesAbout('could not delete keys')[0]).to.deep.include({ key: 'orders', reason: 'not allowed' });
  });
});
