// @live
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { connectEtcd, type EtcdConnection } from '../../src/client/connect-etcd.ts';
import { EtcdError } from '../../src/etcd.ts';
import { type LiveEtcd, liveEtcd } from '../live-etcd.ts';

describe('an etcd with certificates', () => {
  let folder = '';
  let etcd: LiveEtcd;
  const file = (name: string): string => join(folder, name);
  const pem = (name: string): string => readFileSync(file(name), 'utf8');
  const openssl = (...args: readonly string[]): void => void execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });

  /** Makes an authority, and a certificate for this machine that it has signed. */
  function makeCertificates(name: string): void {
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    openssl('req', '-x509', ...key, '-keyout', `${name}-ca.key`, '-out', `${name}-ca.pem`, '-days', '2', '-subj', `/CN=${name}`);
    openssl('req', ...key, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', '/CN=node');
    writeFileSync(file('extensions'), 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n');
    const signs = ['-CA', `${name}-ca.pem`, '-CAkey', `${name}-ca.key`, '-CAcreateserial', '-extfile', 'extensions'];
    openssl('x509', '-req', '-in', `${name}.csr`, ...signs, '-out', `${name}.pem`, '-days', '2');
  }

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'etcd-tls-'));
    for (const name of ['ours', 'strangers']) makeCertificates(name);
    const client = { ca: pem('ours-ca.pem'), cert: pem('ours.pem'), key: pem('ours.key') };
    const files = { ca: file('ours-ca.pem'), cert: file('ours.pem'), key: file('ours.key') };
    etcd = await liveEtcd({ tls: { files, client } });
  });
  after(async () => {
    await etcd?.stop();
    rmSync(folder, { recursive: true });
  });

  const reads = async (tls: EtcdConnection['tls']): Promise<unknown> => {
    const connection = connectEtcd({ endpoint: etcd.endpoint, timeoutMs: 30_000, ...(tls && { tls }) });
    try {
      return (await connection.range({ key: 'any' })).rows;
    } catch (error) {
      return error;
    } finally {
      connection.close();
    }
  };

  it('answers a client with a certificate', async () => {
    expect(await reads({ ca: pem('ours-ca.pem'), cert: pem('ours.pem'), key: pem('ours.key') })).to.deep.equal([]);
  });

  it('is not trusted with a certificate of another authority', async () => {
    const ca = pem('strangers-ca.pem');
    expect(await reads({ ca, cert: pem('ours.pem'), key: pem('ours.key') })).to.be.instanceOf(EtcdError);
    expect(await reads(undefined)).to.be.instanceOf(EtcdError);
  });

  it('refuses a client without a certificate, or with one of another authority', async () => {
    const ca = pem('ours-ca.pem');
    expect(await reads({ ca })).to.be.instanceOf(EtcdError);
    expect(await reads({ ca, cert: pem('strangers.pem'), key: pem('strangers.key') })).to.be.instanceOf(EtcdError);
  });

  it('does not keep a process alive after it refused its certificate, or was refused, while the client is open', async () => {
    for (const ca of ['ours-ca.pem', 'strangers-ca.pem']) {
      const code = `
        import { readFileSync } from 'node:fs';
        import { connectEtcd } from ${JSON.stringify(new URL('../../src/client/connect-etcd.ts', import.meta.url).href)};
        const [cert, key, ca] = ['strangers.pem', 'strangers.key', '${ca}'].map((name) => readFileSync(name, 'utf8'));
        const etcd = connectEtcd({ endpoint: '${etcd.endpoint}', timeoutMs: 200_000, tls: { ca, cert, key } });
        await etcd.range({ key: 'any' }).catch((error) => console.log(error.name));`;
      const args = ['--input-type=module-typescript', '--eval', code];
      const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder, timeout: 120_000 });
      expect(stdout.trim(), ca).to.equal('EtcdError');
    }
  });
});
