// @live
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseConfig } from '@transitd/configuration';
import { Connections } from '@transitd/http';
import { expect } from 'chai';
import { pino } from 'pino';
import { makeCertificate } from '../../process/test/certificate.ts';
import { NodeListeners, type NodeListenersParts } from '../src/node-listeners.ts';

describe('the listeners of a node', () => {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-listeners-'));
  after(() => rmSync(folder, { recursive: true }));

  it('use renewed certificates, also if they are told to reload while they are being opened', async () => {
    const names = ['one', 'two'];
    const listeners = names.map((name) => ({ address: '127.0.0.1:0', tls: makeCertificate(folder, name) }));
    const config = parseConfig({ node_id: 'n1', data_dir: folder, listeners, workers: 0 });
    const reloads: Promise<number>[] = [];
    const parts = {
      ...{ config, routes: [], log: pino({ level: 'silent' }), connections: new Connections({ own: 10 }) },
      node: { serveForwarded: () => undefined, listeningAt: () => undefined },
      isStopRequested: () => false,
      onListening: () => {
        for (const name of names) makeCertificate(folder, name);
        reloads.push(opened.reload(opened.settings));
      },
    };
    const opened = new NodeListeners(parts as unknown as NodeListenersParts);
    try {
      await opened.open();
      expect(await Promise.all(reloads), 'certificates of each reload').to.deep.equal([2, 2]);
      const renewed = listeners.map(({ tls }) => readFileSync(tls.cert_file, 'utf8'));
      expect(opened.certificates.map(({ chain }) => chain)).to.deep.equal(renewed);
    } finally {
      await opened.close();
    }
  });
});
