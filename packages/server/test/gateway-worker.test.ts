// @live
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../../process/test/until.ts';
import { GatewayWorker, type GatewayWorkerParts } from '../src/gateways/gateway-worker.ts';

describe('a gateway thread that is terminated', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'gateway-worker-'));
  });
  after(() => rmSync(folder, { recursive: true }));

  function start(program: string, endMsMax: number) {
    const calls: string[] = [];
    const worker = new GatewayWorker({
      data: { row: 0 } as GatewayWorkerParts['data'],
      onMessage: () => void calls.push('message'),
      onEnd: () => void calls.push('ended'),
      onStuck: () => void calls.push('stuck'),
      endMsMax,
      script: new URL(`data:text/javascript,${encodeURIComponent(program)}`),
    });
    return { worker, calls };
  }

  it('ends, even in an endless loop', async () => {
    const { worker, calls } = start(`(await import('node:worker_threads')).parentPort.postMessage('begins'); for (;;);`, 60_000);
    await until(() => calls.includes('message'));
    await worker.terminate();
    expect(calls).to.deep.equal(['message', 'ended']);
  });

  it('is reported as stuck while it hangs in a call that cannot be canceled, and nobody waits for it', async () => {
    const [begun, pipe] = [join(folder, 'begun'), join(folder, 'pipe')];
    execFileSync('mkfifo', [pipe]);
    const call = JSON.stringify(['-c', 'echo > "$0"; read line < "$1"', begun, pipe]);
    const { worker, calls } = start(`(await import('node:child_process')).spawnSync('sh', ${call});`, 1);
    await until(() => existsSync(begun));
    await worker.terminate();
    expect(calls).to.deep.equal(['stuck']);
    writeFileSync(pipe, 'go on\n');
    await until(() => calls.includes('ended'));
  });
});
