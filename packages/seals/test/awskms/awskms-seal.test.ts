import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { SealBackend } from '../../src/backend/seal-backend.ts';
import { cloudSeal } from '../../src/cloud-seal.ts';
import { exchangeWith } from '../../src/http/exchange.ts';
import { describeContract } from '../contract/contract.ts';
import { providerErrorOf } from '../contract/provider-error-of.ts';
import { connectTo } from '../http/connect-to.ts';
import { type StubAnswer, stubProvider } from '../http/stub-provider.ts';
import { awsMock, awsRegion } from './aws-mock.ts';

const secret = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
const fromEnvironment = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: secret };
const key = randomBytes(32);

type Mock = Awaited<ReturnType<typeof awsMock>>;

/** Requests are signed for the mock's own address, as for an endpoint that is configured. */
const sealAt = (
  mock: Mock,
  keyId = 'one',
  env: Readonly<Record<string, string>> = fromEnvironment,
  more: object = {},
): SealBackend =>
  cloudSeal(
    { type: 'awskms', region: awsRegion, kms_key_id: keyId, endpoint: mock.address, ...more },
    { env, connect: (address) => exchangeWith(address, { skipVerify: false }), nowMs: () => mock.state.nowMs },
  );

describeContract('awskms', async () => {
  const mock = await awsMock();
  mock.state.credentials.set('AKIDEXAMPLE', { secret, session: undefined });
  return {
    seal: sealAt(mock),
    otherKey: sealAt(mock, `arn:aws:kms:${awsRegion}:111122223333:key/two`),
    secrets: [secret],
    behave: (behavior) => {
      mock.state.answer = (
        {
          serves: undefined,
          away: (res) => void res.destroy(),
          refuses: [400, { __type: 'AccessDeniedException', Message: 'User is not authorized' }],
          throttles: [400, { __type: 'com.amazonaws.kms#ThrottlingException', message: 'Rate exceeded' }],
          garbles: [200, { CiphertextBlob: 7 }],
        } as const satisfies Record<string, StubAnswer | undefined>
      )[behavior];
    },
    close: mock.close,
  };
}, ['rotates']);

describe('an awskms seal', () => {
  let mock: Mock;
  let folder = '';
  beforeEach(async () => {
    mock = await awsMock();
    mock.state.credentials.set('AKIDEXAMPLE', { secret, session: undefined });
    folder = mkdtempSync(join(tmpdir(), 'transitd-aws-'));
  });
  afterEach(async () => {
    await mock.close();
    rmSync(folder, { recursive: true });
  });

  it('is known by the ARN of its key, which an alias that moves shows', async () => {
    expect((await sealAt(mock, 'alias/one').wrap(key)).keyId).to.equal(`arn:aws:kms:${awsRegion}:111122223333:key/one`);
  });

  it('uses the address of its region, also in China', async () => {
    for (const [region, host] of [
      ['eu-central-1', 'kms.eu-central-1.amazonaws.com'],
      ['cn-north-1', 'kms.cn-north-1.amazonaws.com.cn'],
    ] as const) {
      const seen: string[] = [];
      const connect = (address: string) => {
        seen.push(address);
        return async () => ({ status: 500, json: undefined });
      };
      const seal = cloudSeal({ type: 'awskms', region, kms_key_id: 'one' }, { env: fromEnvironment, connect, nowMs: () => 0 });
      expect((await providerErrorOf(seal.wrap(key))).failure).to.equal('unreachable');
      expect(seen).to.deep.equal([`https://${host}`]);
    }
  });

  for (const { what, change } of [
    { what: 'a wrong secret', change: () => mock.state.credentials.set('AKIDEXAMPLE', { secret: 'other', session: undefined }) },
    {
      what: 'a clock that is six minutes off',
      change: () => {
        const { nowMs } = mock.state;
        let reads = 0;
        // The seal reads its clock first; the mock then has another time.
        Object.defineProperty(mock.state, 'nowMs', { get: () => (reads++ === 0 ? nowMs : nowMs + 360_000) });
      },
    },
  ])
    it(`is refused by a service that checks the signature, with ${what}`, async () => {
      change();
      const error = await providerErrorOf(sealAt(mock).wrap(key));
      expect(error.failure).to.equal('permission');
      expect(error.message).to.match(
        /refuses the credentials of this node, which need kms:Encrypt and kms:Decrypt.*: status 400: /,
      );
    });

  for (const [type, failure] of [
    ['DisabledException', 'wrong_key'],
    ['KMSInvalidStateException', 'wrong_key'],
    ['IncorrectKeyException', 'wrong_key'],
    ['ExpiredTokenException', 'permission'],
    ['ThrottlingException', 'throttled'],
    ['UnheardOfException', 'malformed'],
  ] as const)
    it(`reports ${type} as ${failure}, with the text of AWS`, async () => {
      mock.state.answer = [400, { __type: type, message: 'because\nof this' }];
      const error = await providerErrorOf(sealAt(mock).wrap(key));
      expect(error.failure).to.equal(failure);
      expect(error.message).to.contain(`status 400: ${type}: because?of this`);
    });

  it('takes credentials from the configured file, reads it again for each call, and prefers it to the environment', async () => {
    const file = join(folder, 'credentials');
    const write = (text: string): void => writeFileSync(file, text, { mode: 0o600 });
    write(
      `[default]\naws_access_key_id = OTHER\naws_secret_access_key = x\n\n[unseal]\naws_access_key_id=AKIDEXAMPLE\naws_secret_access_key=${secret}\n`,
    );
    const seal = sealAt(mock, 'one', fromEnvironment, { credentials_file: file, profile: 'unseal' });
    await seal.wrap(key);
    write('[unseal]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = y\n');
    expect((await providerErrorOf(seal.wrap(key))).failure).to.equal('permission');
    write('[default]\naws_access_key_id = AKIDEXAMPLE\n');
    expect((await providerErrorOf(seal.wrap(key))).message).to.match(/does not contain an access key in the profile unseal/);
    rmSync(file);
    expect((await providerErrorOf(seal.wrap(key))).message).to.match(/seal.credentials_file cannot be read: .*ENOENT/);
    write('');
    await sealAt(mock, 'one', { ...fromEnvironment, AWS_SHARED_CREDENTIALS_FILE: file }).wrap(key);
  });

  describe('takes temporary credentials', () => {
    const given = (id: string, endsAtMs: number) => ({
      Code: 'Success',
      AccessKeyId: id,
      SecretAccessKey: `secret of ${id}`.replaceAll(' ', '+'),
      Token: `session-of-${id}`,
      Expiration: new Date(endsAtMs).toISOString(),
    });
    const accept = (id: string): void => {
      mock.state.credentials.set(id, { secret: `secret+of+${id}`, session: `session-of-${id}` });
    };

    it('from the instance by a session (IMDSv2), and others before they end', async () => {
      let issued = 0;
      const metadata = await stubProvider(({ method, path, headers }) => {
        if (method === 'PUT' && path === '/latest/api/token' && headers['x-aws-ec2-metadata-token-ttl-seconds'] !== undefined)
          return [200, 'imds-session=='];
        if (headers['x-aws-ec2-metadata-token'] !== 'imds-session==') return [401, ''];
        if (path === '/latest/meta-data/iam/security-credentials/') return [200, 'unseal+role@1\n'];
        if (path !== '/latest/meta-data/iam/security-credentials/unseal+role@1') return [404, ''];
        issued += 1;
        accept(`ASIA${issued}`);
        return [200, given(`ASIA${issued}`, mock.state.nowMs + 3_600_000)];
      });
      try {
        const seal = cloudSeal(
          { type: 'awskms', region: awsRegion, kms_key_id: 'one', endpoint: mock.address },
          {
            env: {},
            connect: connectTo({ [mock.address]: () => mock.address, 'http://169.254.169.254': () => metadata.address }),
            nowMs: () => mock.state.nowMs,
          },
        );
        await Promise.all([seal.wrap(key), seal.wrap(key)]);
        mock.state.nowMs += 3_000_000;
        await seal.wrap(key);
        expect(issued).to.equal(1);
        mock.state.nowMs += 400_000;
        await seal.wrap(key);
        expect(issued).to.equal(2);
        mock.state.credentials.delete('ASIA2'); // the role was changed: refused once, then with new ones
        expect((await providerErrorOf(seal.wrap(key))).failure).to.equal('permission');
        await seal.wrap(key);
        expect(issued).to.equal(3);
      } finally {
        await metadata.close();
      }
    });

    it('from the container, with its authorization', async () => {
      const container = await stubProvider(({ path, headers }) =>
        path === '/v2/credentials/7' && headers.authorization === 'pod-token'
          ? [200, given('ASIA1', Date.parse('2027-01-01'))]
          : [403, {}],
      );
      try {
        accept('ASIA1');
        const tokenFile = join(folder, 'token');
        writeFileSync(tokenFile, 'pod-token\n');
        const env = {
          AWS_CONTAINER_CREDENTIALS_FULL_URI: `${container.address}/v2/credentials/7`,
          AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile,
        };
        await sealAt(mock, 'one', env).wrap(key);
        const elsewhere = { ...env, AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://10.0.0.1/v2/credentials/7' };
        expect((await providerErrorOf(sealAt(mock, 'one', elsewhere).wrap(key))).message).to.match(
          /neither https nor an address of the container/,
        );
        writeFileSync(tokenFile, 'other');
        const error = await providerErrorOf(sealAt(mock, 'one', env).wrap(key));
        expect([error.failure, error.message]).to.satisfy(
          ([failure, message]: [string, string]) =>
            failure === 'permission' && /the container gives none: status 403/.test(message),
        );
      } finally {
        await container.close();
      }
    });

    it('from nowhere: it says what to set', async () => {
      const error = await providerErrorOf(sealAt(mock, 'one', { AWS_EC2_METADATA_DISABLED: 'true' }).wrap(key));
      expect(error.failure).to.equal('permission');
      expect(error.message).to.equal(
        'the awskms seal has no credentials: set seal.credentials_file, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; ' +
          'the instance metadata service is disabled',
      );
    });
  });

  it('names its address in the log and its key', async () => {
    mock.state.answer = [503, ''];
    expect((await providerErrorOf(sealAt(mock).wrap(key))).message).to.equal(
      `the awskms seal with the key one at ${mock.address} cannot be served now: status 503`,
    );
  });
});
