// @live
// The audit of a real process: its files, refusals without a working device, and the check of the hash chain.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { startAudited } from './audited-server.ts';
import { entry, nodeBinary, processMs, Workbench } from './live-server.ts';

const verify = (...files: string[]) => spawnSync(nodeBinary, [entry, 'audit', 'verify', ...files], { encoding: 'utf8' });

describe('the audit of a node', () => {
  const bench = new Workbench();
  afterEach(() => bench.clean());

  it('continues in a new file on SIGHUP, and the chain over both files is intact', async function () {
    this.timeout(processMs);
    const { server, rootToken, auditFile } = await startAudited(bench, { settings: { workers: 1 } });
    await server.call('POST', 'transit/keys/a', {}, rootToken);
    const moved = `${auditFile}.1`;
    renameSync(auditFile, moved);
    server.child.kill('SIGHUP');
    await server.log(/"msg":"reloaded"/);
    await server.call('POST', 'transit/keys/b', {}, rootToken);
    expect((await server.stop()).code).to.equal(0);
    expect(statSync(auditFile).mode & 0o777).to.equal(0o600);
    expect(readFileSync(auditFile, 'utf8')).to.include('transit/keys/b').and.not.to.include('transit/keys/a');
    expect(verify(moved, auditFile)).to.deep.include({ status: 0, stderr: '' });

    const text = readFileSync(moved, 'utf8');
    writeFileSync(moved, text.replace('"operation":"update"', '"operation":"delete"'));
    const broken = verify(moved, auditFile);
    expect(broken.status).to.equal(2);
    expect(broken.stdout).to.match(/^broken at .*audit\.log\.1:2: "prev" is not the hash of the previous line$/m);
    expect(verify(join(dirname(moved), 'none'))).to.deep.include({ status: 1 });
  });

  it('notices that its file was removed or renamed without SIGHUP, and keeps the entries of later requests', async function () {
    this.timeout(processMs);
    const { server, rootToken, auditFile } = await startAudited(bench);
    await server.call('POST', 'transit/keys/a', {}, rootToken);
    rmSync(auditFile);
    await server.call('POST', 'transit/keys/b', {}, rootToken);
    await server.log(/"level":"error".*"device":"conformance".*the file was removed while in use/);
    await server.call('POST', 'transit/keys/c', {}, rootToken);
    const moved = `${auditFile}.1`;
    renameSync(auditFile, moved);
    await server.log(/"level":"warn".*"device":"conformance".*the file was renamed, and SIGHUP has not followed/);
    const metrics = (await server.call('GET', 'sys/metrics?format=prometheus', undefined, rootToken)).text;
    for (const [change, count] of Object.entries({ renamed: 1, removed: 1, truncated: 0 }))
      expect(metrics).to.match(new RegExp(`^svc_audit_file_changes\\{device="conformance",change="${change}"\\} ${count}$`, 'm'));
    expect((await server.stop()).code).to.equal(0);
    for (const key of ['b', 'c']) expect(readFileSync(moved, 'utf8')).to.include(`transit/keys/${key}`);
    expect(readFileSync(auditFile, 'utf8')).to.include('sys/metrics');
    expect(verify(moved, auditFile)).to.deep.include({ status: 0, stderr: '' });
  });

  it('refuses requests that cannot be recorded, answers health, and needs no restart when a device works again', async function () {
    this.timeout(processMs);
    const { server, rootToken, auditFile } = await startAudited(bench, { settings: { workers: 1 } });
    const folder = dirname(auditFile);
    const aside = `${folder}-aside`;
    const call = (method: string, path: string, body?: unknown) => server.call(method, path, body, rootToken);
    // A file replaces the folder, so that nobody can open a file below it.
    renameSync(folder, aside);
    writeFileSync(folder, '');
    server.child.kill('SIGHUP');
    await server.log(/cannot write entries/);
    for (const name of ['a', 'b', 'c']) expect((await call('POST', `transit/keys/${name}`, {})).status).to.equal(503);
    expect((await server.call('GET', 'sys/health', undefined, null)).status).to.equal(200);
    expect((await server.call('PUT', 'auth/token/create', {}, null)).status, 'a refusal is audited too').to.equal(503);

    rmSync(folder);
    mkdirSync(folder);
    renameSync(join(aside, 'audit.log'), auditFile);
    expect((await call('GET', 'transit/keys/a')).status, 'nothing was done').to.equal(404);
    await server.log(/this device works again/);
    const metrics = (await call('GET', 'sys/metrics?format=prometheus')).text;
    expect(metrics).to.match(/^svc_audit_log_request_failure\{device="conformance"\} 4$/m);
    expect(server.stderr.match(/cannot write entries/g), 'told once').to.have.length(1);
    expect((await server.stop()).code).to.equal(0);
    expect(verify(auditFile).status).to.equal(0);
  });

  it('continues with one device of two', async function () {
    this.timeout(processMs);
    const folder = bench.folder();
    const [first, second] = [join(folder, 'one/a.log'), join(folder, 'two/b.log')];
    const sinks = [
      { type: 'file', name: 'one', path: first },
      { type: 'file', name: 'two', path: second, sync: true },
    ];
    const { server, rootToken } = await startAudited(bench, { folder, sinks });
    renameSync(dirname(first), join(folder, 'aside'));
    writeFileSync(dirname(first), '');
    server.child.kill('SIGHUP');
    await server.log(/"device":"one".*cannot write entries/);
    expect((await server.call('POST', 'transit/keys/a', {}, rootToken)).status).to.equal(200);
    expect((await server.stop()).code).to.equal(0);
    expect(readFileSync(second, 'utf8').trim().split('\n')).to.have.length(2);
  });

  it('writes to standard output', async function () {
    this.timeout(processMs);
    const { server, rootToken } = await startAudited(bench, { sinks: [{ type: 'stdout', name: 'out' }] });
    await server.call('POST', 'transit/keys/a', {}, rootToken);
    expect((await server.stop()).code).to.equal(0);
    const types = server.stdout
      .trim()
      .split('\n')
      .map((line) => Reflect.get(JSON.parse(line), 'type'));
    expect(types).to.deep.equal(['request', 'response']);
  });

  it('does not start a node if a device cannot be opened', async function () {
    this.timeout(processMs);
    const folder = bench.folder();
    writeFileSync(join(folder, 'file'), '');
    const started = startAudited(bench, { folder, sinks: [{ type: 'file', name: 'main', path: join(folder, 'file/a.log') }] });
    const error = await started.then(
      () => '',
      (reason: Error) => reason.message,
    );
    expect(error).to.match(/"level":"fatal".*"msg":"audit: device main cannot be opened: (ENOTDIR|EEXIST)/);
  });
});
