// The SDK reads many variables and two files by itself. None of them may change what a node does.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { awsMock, stsMock, webToken } from './aws-mock.ts';

/** Variables that docs/seals.md describes. */
const documented: readonly string[] =
  readFileSync(new URL('../../../../docs/seals.md', import.meta.url), 'utf8').match(/\bAWS_[A-Z_0-9]+/g) ?? [];

/** Returns every name in the code of the SDK that looks like one of its variables. */
function variablesOfSdk(): readonly string[] {
  const modules = dirname(dirname(dirname(createRequire(import.meta.url).resolve('@aws-sdk/client-kms/package.json'))));
  const names = ['@aws-sdk', '@smithy', '@aws'].flatMap((scope) =>
    readdirSync(join(modules, scope), { recursive: true, encoding: 'utf8' })
      .filter((file) => /dist-cjs.*\.js$/.test(file))
      .flatMap((file) => readFileSync(join(modules, scope, file), 'utf8').match(/\b_?(AWS|SMITHY|X_AMZN)_[A-Z_0-9]+\b/g) ?? []),
  );
  return [
    ...new Set([...names, 'AWS_ENDPOINT_URL_KMS', 'AWS_ENDPOINT_URL_STS', 'AWS_CA_BUNDLE', 'HTTPS_PROXY', 'HTTP_PROXY']),
  ].sort();
}

describe('the calls of an awskms seal', () => {
  let home = '';
  let mocks: readonly [Awaited<ReturnType<typeof awsMock>>, Awaited<ReturnType<typeof stsMock>>];
  before(async () => {
    home = mkdtempSync(join(tmpdir(), 'transitd-aws-home-'));
    const aws = await awsMock();
    Object.defineProperty(aws.state, 'nowMs', { get: () => Date.now() });
    mocks = [aws, await stsMock(aws.state)];
    writeFileSync(join(home, 'token'), webToken, { mode: 0o600 });
    mkdirSync(join(home, '.aws'));
    const settings = [
      'endpoint_url = http://127.0.0.1:9',
      'region = us-gov-west-1',
      'use_fips_endpoint = true',
      'retry_mode = adaptive',
    ];
    const text = `${settings.join('\n')}\ndefaults_mode = auto\ncredential_process = /bin/touch ${home}/ran\nmax_attempts = 4\n`;
    for (const file of ['config', 'credentials']) writeFileSync(join(home, '.aws', file), `[default]\n${text}`);
  });
  after(async () => {
    await Promise.all(mocks.map((mock) => mock.close()));
    rmSync(home, { recursive: true });
  });

  /** Wraps, unwraps and draws in a process of its own with these variables; returns what that process saw and what it sent. */
  async function called(variables: Readonly<Record<string, string>>) {
    const [kms, sts] = mocks;
    const before = mocks.map(({ requests }) => requests.length);
    const env = {
      HOME: home,
      PATH: process.env['PATH'],
      ...variables,
      AWS_ROLE_ARN: 'arn:aws:iam::111122223333:role/unseal',
      AWS_WEB_IDENTITY_TOKEN_FILE: join(home, 'token'),
    };
    const script = join(import.meta.dirname, 'watched-calls.ts');
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [script, kms.address, sts.address], { env });
    expect(stderr).to.equal('');
    const requests = mocks.flatMap((mock, index) =>
      mock.requests.slice(before[index]).map(({ method, path, headers, text }) => {
        const { host, authorization = '', ...rest } = headers;
        const scope = /\/([^/]+\/[^/]+)\/aws4_request/.exec(authorization)?.[1];
        return {
          to: host,
          method,
          path,
          scope,
          agent: rest['user-agent'],
          headers: Object.keys(rest).sort(),
          size: text.length > 0,
        };
      }),
    );
    return { ...(JSON.parse(stdout) as { loaded: string[]; files: string[]; connections: string[] }), requests };
  }

  it('read only the files that were named, connect only to the services, and load the SDK when the first one begins', async () => {
    const { loaded, files, connections, requests } = await called({});
    expect(loaded).to.deep.equal([]);
    expect(new Set(files)).to.deep.equal(new Set([join(home, 'token')]));
    expect(connections).to.have.members(mocks.map(({ address }) => address));
    expect(requests.map(({ scope }) => scope)).to.deep.equal([
      ...Array(3).fill('eu-central-1/kms'),
      ...[undefined, 'eu-central-1/sts'],
    ]);
    expect(readdirSync(home)).to.not.include('ran');
  });

  it('do the same whatever the variables are that the SDK reads', async () => {
    const others = variablesOfSdk().filter((name) => !documented.includes(name));
    expect(others).to.include.members(['AWS_MAX_ATTEMPTS', 'AWS_ENDPOINT_URL', 'AWS_USE_FIPS_ENDPOINT', 'AWS_CONFIG_FILE']);
    const plain = await called({});
    for (const value of ['true', 'auto', 'http://127.0.0.1:9', join(home, '.aws/config')]) {
      const disturbed = await called(Object.fromEntries(others.map((name) => [name, value])));
      expect(disturbed, value).to.deep.equal(plain);
    }
  });
});
