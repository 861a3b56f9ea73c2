// @live
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeCertificate } from '../../process/test/certificate.ts';
import { fetchText, keySources } from '../src/key-sources.ts';

describe('key sets', () => {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-keys-'));
  const { cert_file, key_file } = makeCertificate(folder, 'localhost');
  const [cert, key] = [readFileSync(cert_file, 'utf8'), readFileSync(key_file)];
  let server: Server;
  let answer: RequestListener;
  let url = '';

  before(async () => {
    server = createServer({ cert, key }, (req, res) => answer(req, res)).listen(0, 'localhost');
    await once(server, 'listening');
    url = `https://localhost:${(server.address() as AddressInfo).port}/keys`;
  });
  after(() => {
    server.close();
    server.closeAllConnections();
    rmSync(folder, { recursive: true });
  });

  const outcome = (ca = cert): Promise<string> => fetchText(url, ca).catch((error: Error) => `refused: ${error.message}`);

  it('are the body of the response', async () => {
    answer = (_req, res) => res.end('{"keys":[]}');
    expect(await outcome()).to.equal('{"keys":[]}');
  });

  it('are refused from a server with an untrusted certificate', async () => {
    answer = (_req, res) => res.end('{"keys":[]}');
    expect(await outcome('')).to.match(/^refused: /);
  });

  it('are not fetched through a redirect', async () => {
    answer = (_req, res) => res.writeHead(302, { location: url }).end();
    expect(await outcome()).to.equal('refused: the response has status 302');
  });

  it('are refused when they are too long', async () => {
    answer = (_req, res) => res.end(Buffer.alloc(1024 * 1024 + 1, 0x20));
    expect(await outcome()).to.equal('refused: the response is too long');
  });

  it('are refused when the response is cut short', async () => {
    answer = (_req, res) => {
      res.writeHead(200, { 'content-length': 100 }).write('{');
      setImmediate(() => res.destroy());
    };
    expect(await outcome()).to.match(/^refused: /);
  });

  it('are refused when the server switches protocols instead of answering', async () => {
    answer = (_req, res) => res.writeHead(101, { connection: 'Upgrade', upgrade: 'other' }).flushHeaders();
    expect(await outcome()).to.equal('refused: the connection ended without an answer');
  });

  it('are read only from files that the configuration names', async () => {
    const file = join(folder, 'jwks.json');
    writeFileSync(file, '{"keys":[]}');
    const sources = keySources({ one: file });
    expect(await sources.file('one')).to.equal('{"keys":[]}');
    for (const name of ['two', file, 'toString', '../one']) expect(await sources.file(name), name).to.equal(undefined);
  });
});
