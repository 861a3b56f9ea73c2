import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { requireSdk } from '../../src/awskms/aws-service.ts';
import type { SealBackend } from '../../src/backend/seal-backend.ts';
import { cloudSeal } from '../../src/cloud-seal.ts';
import { exchangeWith } from '../../src/http/exchange.ts';
import { describeContract } from '../contract/contract.ts';
import { providerErrorOf } from '../contract/provider-error-of.ts';
import { connectTo } from '../http/connect-to.ts';
import { type StubAnswer, stubProvider } from '../http/stub-provider.ts';
import { awsMock, awsRegion, awsRole, stsMock, webToken } from './aws-mock.ts';

const secret = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
const fromEnvironment = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: secret };
const stsAddress = `https://sts.${awsRegion}.amazonaws.com`;
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

  it('uses the addresses of its region, also in China', async () => {
    for (const [region, host] of [
      ['eu-central-1', 'eu-central-1.amazonaws.com'],
      ['cn-north-1', 'cn-north-1.amazonaws.com.cn'],
    ] as const) {
      const seen: string[] = [];
      const connect = (address: string) => {
        seen.push(address);
        return async () => ({ status: 500, json: undefined, text: '' });
      };
      const seal = cloudSeal({ type: 'awskms', region, kms_key_id: 'one' }, { env: fromEnvironment, connect, nowMs: () => 0 });
      expect((await providerErrorOf(seal.wrap(key))).failure).to.equal('unreachable');
      expect(seen).to.have.members([`https://kms.${host}`, `https://sts.${host}`]);
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

  it('follows nothing in a profile that leads elsewhere, and runs no program', async () => {
    const [file, ran] = [join(folder, 'credentials'), join(folder, 'ran')];
    for (const [line, says] of [
      [
        `credential_process = /bin/touch ${ran}`,
        /it has credential_process, which is never followed: have another process write/,
      ],
      ['sso_session = corporate', /it has sso_session, which is never followed/],
      [`role_arn = ${awsRole}\nsource_profile = other`, /it has role_arn, which is never followed: set seal\.role_arn/],
    ] as const) {
      writeFileSync(file, `[default]\n${line}\n[other]\naws_access_key_id=AKIDEXAMPLE\naws_secret_access_key=${secret}\n`);
      const error = await providerErrorOf(sealAt(mock, 'one', {}, { credentials_file: file }).wrap(key));
      expect(error.failure).to.equal('permission');
      expect(error.message)
        .to.match(/does not contain an access key in the profile default; /)
        .and.match(says);
      expect(error.message).to.not.contain(secret);
    }
    expect(existsSync(ran)).to.equal(false);
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
            connect: connectTo({
              [mock.address]: () => mock.address,
              [stsAddress]: () => expect.fail('no role is configured'),
              'http://169.254.169.254': () => metadata.address,
            }),
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
        for (const detour of ['http://127.0.0.1//127.0.0.2:8200/x', 'http://127.0.0.1/\\\\127.0.0.2:8200/x'])
          expect(
            (await providerErrorOf(sealAt(mock, 'one', { ...env, AWS_CONTAINER_CREDENTIALS_FULL_URI: detour }).wrap(key)))
              .message,
          ).to.match(/the container gives none: the path leads to another host/);
        const relative = { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: `//${new URL(mock.address).host}/x` };
        expect((await providerErrorOf(sealAt(mock, 'one', relative).wrap(key))).message).to.match(/leads to another host/);
        expect(mock.requests).to.have.lengthOf(1);
        const empty = {
          ...{ AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '', AWS_SHARED_CREDENTIALS_FILE: '', AWS_PROFILE: '' },
          ...{ AWS_WEB_IDENTITY_TOKEN_FILE: '', AWS_ROLE_ARN: awsRole, AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: '' },
        };
        await sealAt(mock, 'one', { ...empty, ...env }).wrap(key);
        const given = { AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: '', AWS_CONTAINER_AUTHORIZATION_TOKEN: 'pod-token' };
        await sealAt(mock, 'one', { ...empty, ...env, ...given }).wrap(key);
        chmodSync(tokenFile, 0o620);
        expect((await providerErrorOf(sealAt(mock, 'one', env).wrap(key))).message).to.match(/has mode 0620/);
        chmodSync(tokenFile, 0o600);
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

  describe('takes credentials for a role', () => {
    let sts: Awaited<ReturnType<typeof stsMock>>;
    let tokenFile = '';
    beforeEach(async () => {
      sts = await stsMock(mock.state);
      tokenFile = join(folder, 'web-token');
      writeFileSync(tokenFile, `${webToken}\n`, { mode: 0o600 });
    });
    afterEach(() => sts.close());

    const sealWith = (env: Readonly<Record<string, string>>, more: object = {}): SealBackend =>
      cloudSeal(
        { type: 'awskms', region: awsRegion, kms_key_id: 'one', endpoint: mock.address, ...more },
        {
          env,
          connect: connectTo({ [mock.address]: () => mock.address, [stsAddress]: () => sts.address }),
          nowMs: () => mock.state.nowMs,
        },
      );
    const webIdentity = () => ({ AWS_ROLE_ARN: awsRole, AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile });
    const configured = () => ({ role_arn: awsRole, web_identity_token_file: tokenFile });

    it('by the web identity that Kubernetes names, once for all calls, and others before they end', async () => {
      const seal = sealWith(webIdentity());
      const [wrapped] = await Promise.all([seal.wrap(key), seal.wrap(key)]);
      expect(await seal.unwrap(wrapped)).to.deep.equal(key);
      mock.state.nowMs += 3_200_000;
      await seal.wrap(key);
      expect(sts.state.issued).to.equal(1);
      sts.state.validToken = `${webToken}2`;
      writeFileSync(tokenFile, sts.state.validToken); // as Kubernetes replaces it
      mock.state.nowMs += 200_000;
      await seal.wrap(key);
      expect(sts.state.sessions).to.deep.equal(Array(2).fill('AssumeRoleWithWebIdentity transitd'));
    });

    it('by a configured web identity, which has precedence over the environment', async () => {
      const more = { ...configured(), role_session_name: 'n1' };
      await sealWith({ ...fromEnvironment, AWS_ROLE_ARN: 'arn:aws:iam::111122223333:role/other' }, more).wrap(key);
      expect(sts.state.sessions).to.deep.equal(['AssumeRoleWithWebIdentity n1']);
    });

    it('by the access key that it finds, which has precedence over the web identity of the environment', async () => {
      await sealWith({ ...fromEnvironment, ...webIdentity() }, { role_arn: awsRole }).wrap(key);
      expect(sts.state.sessions).to.deep.equal(['AssumeRole transitd']);
    });

    it('by a role that the web identity of the environment gives', async () => {
      await sealWith({ ...webIdentity(), AWS_ROLE_SESSION_NAME: 'pod' }, { role_arn: awsRole, role_session_name: 'n1' }).wrap(
        key,
      );
      expect(sts.state.sessions).to.deep.equal(['AssumeRoleWithWebIdentity pod', 'AssumeRole n1']);
    });

    it('not by half of a web identity, nor for a role of the environment without a token', async () => {
      await sealWith({ ...fromEnvironment, AWS_ROLE_ARN: awsRole }).wrap(key);
      await sealWith({ ...fromEnvironment, AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile }).wrap(key);
      expect(sts.requests).to.deep.equal([]);
    });

    it('again after AWS KMS refused them', async () => {
      const seal = sealWith(webIdentity());
      await seal.wrap(key);
      mock.state.credentials.clear();
      expect((await providerErrorOf(seal.wrap(key))).failure).to.equal('permission');
      await seal.wrap(key);
      expect(sts.state.issued).to.equal(2);
    });

    it('after an expired token was replaced, whose refusal it reports without the token', async () => {
      const seal = sealWith({}, configured());
      writeFileSync(tokenFile, 'an.old.token');
      const error = await providerErrorOf(seal.wrap(key));
      expect([error.failure, error.message]).to.deep.equal([
        'permission',
        `AWS STS at ${stsAddress} gives no credentials for the role ${awsRole}: status 400: ExpiredTokenException: Token expired: current date/time is later`,
      ]);
      writeFileSync(tokenFile, webToken);
      await seal.wrap(key);
    });

    for (const { what, change, says } of [
      {
        what: 'that others can write',
        change: () => chmodSync(tokenFile, 0o660),
        says: /has mode 0660, so users other than its owner/,
      },
      { what: 'that is missing', change: () => rmSync(tokenFile), says: /cannot be read: .*ENOENT/ },
      { what: 'of two lines', change: () => writeFileSync(tokenFile, 'one\ntwo'), says: /does not contain a token/ },
      { what: 'that is empty', change: () => writeFileSync(tokenFile, ''), says: /does not contain a token/ },
    ])
      it(`refuses a token file ${what}, and sends no request`, async () => {
        change();
        for (const [name, seal] of [
          ['AWS_WEB_IDENTITY_TOKEN_FILE', sealWith(webIdentity())],
          ['seal.web_identity_token_file', sealWith({}, configured())],
        ] as const) {
          const error = await providerErrorOf(seal.wrap(key));
          expect(error.failure).to.equal('permission');
          expect(error.message).to.match(says).and.contain(name);
        }
        expect(sts.requests).to.deep.equal([]);
      });

    const given = (inner: string): string =>
      `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult>${inner}</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`;
    const credentials = (secretKey: string, expiration: string): string =>
      given(
        `<Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>${secretKey}</SecretAccessKey><SessionToken>t</SessionToken><Expiration>${expiration}</Expiration></Credentials>`,
      );
    for (const [what, answer, failure, says] of [
      ['is away', (res) => void res.destroy(), 'unreachable', /does not answer/],
      ['cannot serve', [503, '<html>busy</html>'], 'unreachable', /: status 503$/],
      [
        'limits the rate',
        [400, '<ErrorResponse><Error><Code>Throttling</Code></Error></ErrorResponse>'],
        'throttled',
        /Throttling/,
      ],
      [
        'cannot reach the issuer of the token',
        [400, '<ErrorResponse><Error><Code>IDPCommunicationError</Code><Message>m</Message></Error></ErrorResponse>'],
        'unreachable',
        /: status 400: IDPCommunicationError(?:Exception)?: m$/,
      ],
      ['shows the page of a proxy', [503, '<!DOCTYPE html><html></html>'], 'unreachable', /: status 503$/],
      ['redirects', [307, '', { location: 'http://elsewhere/' }], 'malformed', /: status 307$/],
      ['answers with 65 KiB', [200, 'x'.repeat(65 * 1024)], 'unreachable', /its answer has more than 65536 bytes/],
      ['answers with a web page', [200, '<html><body>welcome</body></html>'], 'malformed', /./],
      ['answers with JSON', [200, { Credentials: { AccessKeyId: 'A' } }], 'malformed', /./],
      ['answers with nothing', [200, ''], 'malformed', /./],
      ['gives no credentials', [200, given('')], 'malformed', /./],
      ['gives a secret of two lines', [200, credentials('a\r\nb', '2026-11-23T11:00:00Z')], 'malformed', /./],
      ['gives no time', [200, credentials('a', 'soon')], 'malformed', /./],
      ['nests entities', [200, `<!DOCTYPE a [<!ENTITY b "cc"><!ENTITY c "&b;&b;">]>${given('&c;')}`], 'malformed', /./],
      ['repeats document types', [403, '<!DOCTYPE>'.repeat(6500)], 'permission', /: status 403$/],
      [
        'repeats the token',
        [403, `<Error><Code>AccessDenied</Code><Message>${webToken} is no good</Message></Error>`],
        'permission',
        /./,
      ],
    ] as readonly (readonly [string, StubAnswer, string, RegExp])[])
      it(`is ${failure} when the token service ${what}`, async () => {
        sts.state.answer = answer;
        const error = await providerErrorOf(sealWith(webIdentity()).wrap(key));
        expect([error.failure, error.message]).to.satisfy(([kind]: [string, string]) => kind === failure, error.message);
        expect(error.message).to.match(says).and.contain(`AWS STS at ${stsAddress} `).and.not.contain(webToken);
        expect(sts.requests).to.have.lengthOf(1);
        expect(mock.requests).to.deep.equal([]);
      });
  });

  describe('trusts no answer', () => {
    const arn = (name: string): string => mock.state.keyArn(name);
    const blob = Buffer.alloc(200).toString('base64');

    it('that follows a redirect', async () => {
      const elsewhere = await stubProvider(() => [200, { CiphertextBlob: blob, KeyId: arn('one') }]);
      try {
        for (const status of [301, 302, 307, 308]) {
          mock.state.answer = [status, '', { location: `${elsewhere.address}/` }];
          const error = await providerErrorOf(sealAt(mock).wrap(key));
          expect([error.failure, error.message]).to.satisfy(
            ([failure, text]: [string, string]) => failure === 'malformed' && text.endsWith(`: status ${status}`),
          );
        }
        expect(elsewhere.requests).to.deep.equal([]);
      } finally {
        await elsewhere.close();
      }
    });

    it('of another key', async () => {
      const wrapped = await sealAt(mock).wrap(key);
      for (const keyId of ['one', arn('one')]) {
        mock.state.answer = [200, { CiphertextBlob: blob, KeyId: arn('two') }];
        expect((await providerErrorOf(sealAt(mock, keyId).wrap(key))).message).to.contain(
          `used the key ${arn('two')} instead of`,
        );
      }
      mock.state.answer = [200, { Plaintext: key.toString('base64'), KeyId: arn('two') }];
      const error = await providerErrorOf(sealAt(mock).unwrap(wrapped));
      expect([error.failure, error.message]).to.deep.equal([
        'malformed',
        `the awskms seal with the key one at ${mock.address} used the key ${arn('two')} instead of ${arn('one')}: check seal.endpoint`,
      ]);
      for (const [from, to] of [
        ['111122223333', '999999999999'],
        ['arn:aws:', 'arn:aws-cn:'],
      ] as const) {
        mock.state.answer = [200, { Plaintext: key.toString('base64'), KeyId: arn('one').replace(from, to) }];
        expect((await providerErrorOf(sealAt(mock).unwrap(wrapped))).failure, to).to.equal('malformed');
      }
      mock.state.answer = [200, { Plaintext: key.toString('base64'), KeyId: arn('one').replace(awsRegion, 'us-east-1') }];
      expect(await sealAt(mock).unwrap(wrapped), 'a key of several regions').to.deep.equal(key);
    });

    it('that names as its key a secret of the request', async () => {
      const encoded = key.toString('base64');
      for (const KeyId of [encoded, secret, `arn:aws:kms:${awsRegion}:111122223333:key/${secret}`, arn(encoded)])
        for (const keyId of ['one', 'alias/one']) {
          mock.state.answer = [200, { CiphertextBlob: blob, Plaintext: encoded, KeyId }];
          for (const attempt of [
            sealAt(mock, keyId).wrap(key),
            sealAt(mock, keyId).unwrap({ keyId: arn('one'), ciphertext: blob }),
          ]) {
            const error = await providerErrorOf(attempt);
            expect(error.failure).to.equal('malformed');
            expect(error.message).to.not.contain(encoded).and.not.contain(secret);
          }
        }
    });

    const forms: readonly unknown[] = [
      ...['', 'null', '[]', '7', '"text"', '{', '<html></html>', '\u0000', '{"__proto__": {"CiphertextBlob": "AAAA"}}'],
      ...[{}, { CiphertextBlob: 7, KeyId: 'k', Plaintext: 7 }, { CiphertextBlob: null, KeyId: null, Plaintext: null }],
      ...[
        { CiphertextBlob: '%%%', KeyId: 'one', Plaintext: '%%%' },
        { CiphertextBlob: '', KeyId: 'one', Plaintext: '' },
      ],
      ...[
        { CiphertextBlob: { length: 3 }, KeyId: 'one', Plaintext: [1, 2] },
        { CiphertextBlob: 'AAAA', Plaintext: 'AAAA', KeyId: 7 },
      ],
      ...[
        { CiphertextBlob: 'AAAA', Plaintext: 'AAAA' },
        { CiphertextBlob: 'AAAA', Plaintext: 'AAAA', KeyId: 'a\nb' },
      ],
      { CiphertextBlob: 'AAAA'.repeat(5000), Plaintext: 'AAAA'.repeat(5000), KeyId: 'one' },
    ];
    for (const status of [200, 204, 206])
      it(`of another form with status ${status}`, async () => {
        for (const form of forms) {
          mock.state.answer = [status, form];
          for (const attempt of [
            sealAt(mock).wrap(key),
            sealAt(mock).unwrap({ keyId: arn('one'), ciphertext: blob }),
            ...('Plaintext' in Object(form) ? [] : [sealAt(mock).random?.(32) ?? Promise.reject(new Error('no random bytes'))]),
          ]) {
            const error = await providerErrorOf(attempt);
            expect(error.failure, JSON.stringify(form)).to.equal('malformed');
            expect(error.message).to.not.contain(key.toString('base64'));
          }
        }
      });

    it('that is an error of another form', async () => {
      for (const form of [
        ...forms,
        ...[{ __type: 'X', message: { toString: 1 } }, { __type: { toString: 1 } }],
        ...[{ __type: 7 }, { __type: {}, message: {} }, { __type: ['a'], message: ['b'] }, { __type: null, message: null }],
        ...[
          { __type: '', message: '' },
          { __type: '#', message: 7 },
          { code: 'AccessDenied' },
          { name: 'x', stack: 'y', $metadata: 7 },
        ],
        {
          __type: 'a'.repeat(9000),
          message: 'b'.repeat(9000),
          ServerTime: '2001-01-01T00:00:00Z',
          $response: 1,
          $fault: 'server',
        },
      ])
        for (const [status, failure] of [
          [400, 'malformed'],
          [403, 'permission'],
          [429, 'throttled'],
          [500, 'unreachable'],
        ] as const) {
          mock.state.answer = [status, form];
          const error = await providerErrorOf(sealAt(mock).wrap(key));
          expect([error.failure, JSON.stringify(form)]).to.satisfy(([kind]: [string]) => kind === failure, error.failure);
          expect(error.message)
            .to.match(/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]{20,900}$/u)
            .and.contain(`status ${status}`);
        }
    });

    it('that repeats the secrets of the request', async () => {
      const session = 'a-session-token/with+signs==';
      const env = { ...fromEnvironment, AWS_SESSION_TOKEN: session };
      for (const status of [400, 403, 500]) {
        mock.state.answer = [status, { __type: `X-${secret}`, message: `for ${session} and ${secret}` }];
        const error = await providerErrorOf(sealAt(mock, 'one', env).wrap(key));
        expect(`${error.message} ${String(error.cause)}`)
          .to.not.contain(secret)
          .and.not.contain(session);
        expect(error.message).to.contain('for *** and ***');
        mock.state.answer = [
          status,
          { __type: 'X', message: `${encodeURIComponent(session)} ${encodeURIComponent(secret)} ${key.toString('base64')}` },
        ];
        expect((await providerErrorOf(sealAt(mock, 'one', env).wrap(key))).message).to.match(/: X: \*\*\* \*\*\* \*\*\*$/);
      }
    });
  });

  it('asks once, also when the service throttles or fails', async () => {
    for (const answer of [
      [500, ''],
      [400, { __type: 'ThrottlingException' }],
      [400, { __type: 'RequestExpired', message: 'Request is expired' }, { date: new Date(0).toUTCString() }],
    ] as const satisfies readonly StubAnswer[]) {
      mock.state.answer = answer;
      const before = mock.requests.length;
      await providerErrorOf(sealAt(mock).wrap(key));
      expect(mock.requests.length - before).to.equal(1);
    }
  });

  it('keeps the time that AWS asks for', async () => {
    mock.state.answer = [400, { __type: 'ThrottlingException' }, { 'retry-after': '7' }];
    expect(await providerErrorOf(sealAt(mock).wrap(key))).to.have.property('retryAfterMs', 7000);
  });

  it('does not start without the packages of AWS', () => {
    const missing = (name: string): string => {
      throw new Error(`Cannot find module '${name}'`);
    };
    expect(() => requireSdk(missing)).to.throw(
      StartError,
      'seal: a seal of type awskms needs the package @aws-sdk/client-kms, which is missing: install transitd with its optional packages',
    );
  });

  it('names its address in the log and its key', async () => {
    mock.state.answer = [503, ''];
    expect((await providerErrorOf(sealAt(mock).wrap(key))).message).to.equal(
      `the awskms seal with the key one at ${mock.address} cannot be served now: status 503`,
    );
  });
});
