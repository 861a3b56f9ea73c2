// @live
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeCertificate } from '../../../process/test/certificate.ts';
import { deadline, fetchText } from '../../src/providers/fetch-text.ts';

describe('a text from a server outside the cluster', () => {
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

  const outcome = (ca = cert): Promise<string> =>
    fetchText({ url, ca, hosts: 'any', signal: deadline() }).catch((error: Error) => `refused: ${error.message}`);

  it('is the body of the response', async () => {
    answer = (_req, res) => res.end('{"keys":[]}');
    expect(await outcome()).to.equal('{"keys":[]}');
  });

  it('is refused from a server with an untrusted certificate', async () => {
    answer = (_req, res) => res.end('{"keys":[]}');
    expect(await outcome('')).to.match(/^refused: /);
  });

  it('is not fetched through a redirect', async () => {
    answer = (_req, res) => res.writeHead(302, { location: url }).end();
    expect(await outcome()).to.equal('refused: the response has status 302');
  });

  it('is refused when the answer is too long', async () => {
    answer = (_req, res) => res.end(Buffer.alloc(1024 * 1024 + 1, 0x20));
    expect(await outcome()).to.equal('refused: the response is too long');
  });

  it('is refused when the answer is cut short', async () => {
    answer = (_req, res) => {
      res.writeHead(200, { 'content-length': 100 }).write('{');
      setImmediate(() => res.destroy());
    };
    expect(await outcome()).to.match(/^refused: /);
  });

  it('is refused when the server switches protocols instead of answering', async () => {
    answer = (_req, res) => res.writeHead(101, { connection: 'Upgrade', upgrade: 'other' }).flushHeaders();
    expect(await outcome()).to.equal('refused: the connection ended without an answer');
  });

  it('is refused from a private host, by address or by name, if the host must be public', async () => {
    let calls = 0;
    answer = (_req, res) => {
      calls += 1;
      res.end();
    };
    const port = new URL(url).port;
    for (const host of ['localhost', '127.0.0.1', '[::1]', '[::ffff:127.0.0.1]'])
      expect(
        await fetchText({ url: `https://${host}:${port}/`, ca: cert, hosts: 'public', signal: deadline() }).catch(
          (error: Error) => error.message,
        ),
      ).to.equal('the host has a private address');
    expect(calls).to.equal(0);
  });

  it('is refused without encryption', async () => {
    expect(
      await fetchText({ url: url.replace('https', 'http'), ca: '', hosts: 'any', signal: deadline() }).catch(
        (error: Error) => error.message,
      ),
    ).to.match(/Protocol "http:" not supported/);
  });
});
