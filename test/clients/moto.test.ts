// @live
// The awskms seal against moto, which has the requests of AWS KMS and STS. It checks neither signatures, tokens nor the key of a
// decryption: the mock of the package does. It is installed from the Python registry.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { cloudSeal } from '../../packages/seals/src/cloud-seal.ts';
import { type Connect, exchangeWith } from '../../packages/seals/src/http/exchange.ts';
import { providerErrorOf } from '../../packages/seals/test/contract/provider-error-of.ts';
import { freePort } from '../cluster/harness/free-port.ts';
import { until } from '../cluster/harness/until.ts';
import { Workbench } from '../process/live-server.ts';
import { pythonWith } from './python.ts';

const packages = ['moto==5.1.18', 'flask==3.1.2', 'flask-cors==6.0.1'];
const region = 'eu-central-1';
/** In moto's own account, which has the keys. */
const role = 'arn:aws:iam::123456789012:role/unseal';

describe('moto', () => {
  const bench = new Workbench();
  let moto: ChildProcess | undefined;
  after(async () => {
    if (moto !== undefined && moto.exitCode === null) {
      moto.kill();
      await once(moto, 'exit');
    }
    await bench.clean();
  });

  it('encrypts, decrypts and draws random bytes for the awskms seal, also in roles that it assumes', async function () {
    this.timeout(600_000);
    const python = await pythonWith(packages);
    if (python === undefined) return this.skip();
    const port = await freePort('127.0.0.1');
    const address = `http://127.0.0.1:${port}`;
    moto = spawn(join(dirname(python), 'moto_server'), ['-H', '127.0.0.1', '-p', String(port)], { stdio: 'ignore' });
    const server = moto;
    await until('moto answers', async () => {
      expect(server.exitCode, 'the exit code of moto').to.equal(null);
      return fetch(`${address}/moto-api/`).then(
        ({ status }) => status === 200,
        () => false,
      );
    });
    const newKey = async (): Promise<string> => {
      const scope = `Credential=AKIDEXAMPLE/20261123/${region}/kms/aws4_request, SignedHeaders=host, Signature=none`;
      const headers = {
        authorization: `AWS4-HMAC-SHA256 ${scope}`,
        'content-type': 'application/x-amz-json-1.1',
        'x-amz-target': 'TrentService.CreateKey',
      };
      const answer = await fetch(address, { method: 'POST', headers, body: '{}' });
      const { KeyMetadata } = (await answer.json()) as { KeyMetadata: { KeyId: string } };
      return KeyMetadata.KeyId;
    };
    const callers: string[] = [];
    const connect: Connect = (to) => {
      const exchange = exchangeWith(to.includes('//sts.') ? address : to, { skipVerify: false });
      return (request) => {
        const [, caller = 'nobody'] = /Credential=(\w+)/.exec(request.headers?.['authorization'] ?? '') ?? [];
        callers.push(caller.replace(/^ASIA.*/, 'role'));
        return exchange(request);
      };
    };
    const accessKey = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'secret' };
    const sealOf = (keyId: string, env: Readonly<Record<string, string>> = accessKey, more: object = {}) =>
      cloudSeal(
        { type: 'awskms', region, kms_key_id: keyId, endpoint: address, ...more },
        { env, connect, nowMs: () => Date.now() },
      );
    const keyId = await newKey();
    const one = sealOf(keyId);
    const key = randomBytes(32);
    const wrapped = await one.wrap(key);
    expect(await one.unwrap(wrapped)).to.deep.equal(key);
    expect((await providerErrorOf(sealOf(randomBytes(16).toString('hex')).wrap(key))).failure).to.equal('wrong_key');
    expect(new Set(callers)).to.deep.equal(new Set(['AKIDEXAMPLE']));
    const tokenFile = join(bench.folder(), 'token');
    writeFileSync(tokenFile, 'eyJhbGciOiJSUzI1NiJ9.e30.c2ln', { mode: 0o600 });
    for (const [seal, expected] of [
      [sealOf(keyId, { AWS_ROLE_ARN: role, AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile }), ['nobody', 'role']],
      [sealOf(keyId, {}, { role_arn: role, web_identity_token_file: tokenFile }), ['nobody', 'role']],
      [sealOf(keyId, accessKey, { role_arn: role }), ['AKIDEXAMPLE', 'role']],
    ] as const) {
      callers.length = 0;
      expect(await seal.unwrap(wrapped)).to.deep.equal(key);
      expect(callers).to.deep.equal(expected);
    }
    for (const bytes of [1, 1024]) expect(await one.random?.(bytes)).to.have.lengthOf(bytes);
  });
});
