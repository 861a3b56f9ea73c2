// AWS KMS and STS as their documentation describes them: they check the signature of each request by themselves, not with the code under
// test.
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { KeysOfAProvider } from '../contract/keys-of-a-provider.ts';
import { type StubAnswer, type StubRequest, stubProvider } from '../http/stub-provider.ts';

export const awsRegion = 'eu-central-1';
const account = `arn:aws:kms:${awsRegion}:111122223333:key`;

const refused = (type: string, message: string, status = 400): StubAnswer => [
  status,
  { __type: `com.amazonaws.kms#${type}`, message },
];

/** Returns what AWS would object to in the signature of a request; undefined if it is valid. */
function signatureFault(
  { method, path, headers, text }: StubRequest,
  service: 'kms' | 'sts',
  secretOf: (accessKeyId: string) => { readonly secret: string; readonly session: string | undefined } | undefined,
  nowMs: number,
): string | undefined {
  const form =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([a-z]+)\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/;
  const [, id = '', day = '', region, scope, list = '', given = ''] = form.exec(headers.authorization ?? '') ?? [];
  const found = secretOf(id);
  if (found === undefined || region !== awsRegion || scope !== service) return 'UnrecognizedClientException';
  if (headers['x-amz-security-token'] !== found.session) return 'UnrecognizedClientException';
  const names = list.split(';');
  const mustBeSigned = Object.keys(headers).filter(
    (name) => name === 'host' || name === 'content-type' || name.startsWith('x-amz-'),
  );
  if (!mustBeSigned.every((name) => names.includes(name)) || names.join() !== [...names].sort().join())
    return 'InvalidSignatureException';
  const stamp = String(headers['x-amz-date']);
  const time = Date.parse(stamp.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  if (!stamp.startsWith(day) || !(Math.abs(time - nowMs) <= 300_000)) return 'InvalidSignatureException';
  const sum = (data: string): string => createHash('sha256').update(data, 'utf8').digest('hex');
  let canonical = `${method}\n${path}\n\n`;
  for (const name of names) canonical += `${name}:${String(headers[name])}\n`;
  canonical += `\n${list}\n${sum(text)}`;
  let key: Buffer | string = `AWS4${found.secret}`;
  for (const part of [day, awsRegion, service, 'aws4_request']) key = createHmac('sha256', key).update(part).digest();
  const expected = createHmac('sha256', key).update(
    `AWS4-HMAC-SHA256\n${stamp}\n${day}/${awsRegion}/${service}/aws4_request\n${sum(canonical)}`,
  );
  return timingSafeEqual(expected.digest(), Buffer.from(given, 'hex')) ? undefined : 'InvalidSignatureException';
}

/** AWS KMS on loopback with the keys `one` and `two`. */
export async function awsMock(keys = new KeysOfAProvider('one', 'two')) {
  const state = {
    nowMs: Date.parse('2026-11-23T10:00:00Z'),
    credentials: new Map<string, { secret: string; session: string | undefined }>(),
    answer: undefined as StubAnswer | undefined,
    keyArn: (name: string) => `${account}/${name}`,
  };
  const server = await stubProvider((request): StubAnswer => {
    if (state.answer !== undefined) return state.answer;
    const { method, path, headers, body } = request;
    if (method !== 'POST' || path !== '/' || headers['content-type'] !== 'application/x-amz-json-1.1')
      return refused('UnknownOperationException', 'not a request to AWS KMS');
    const fault = signatureFault(request, 'kms', (id) => state.credentials.get(id), state.nowMs);
    if (fault !== undefined) return refused(fault, 'the signature is not valid');
    if (headers['x-amz-target'] === 'TrentService.GenerateRandom') {
      const count = Number((body as { NumberOfBytes?: unknown }).NumberOfBytes);
      if (!(count >= 1 && count <= 1024)) return refused('ValidationException', 'NumberOfBytes');
      return [200, { Plaintext: randomBytes(count).toString('base64') }];
    }
    const { KeyId, Plaintext, CiphertextBlob, EncryptionContext } = body as Record<string, string>;
    const name = String(KeyId).replace(/^.*[/]/, '');
    if (keys.newest(name) === undefined) return refused('NotFoundException', `Key '${state.keyArn(name)}' does not exist`);
    const context = JSON.stringify(EncryptionContext);
    if (headers['x-amz-target'] === 'TrentService.Encrypt') {
      const blob = keys.encrypt(name, Buffer.from(String(Plaintext), 'base64'), context);
      return [
        200,
        { CiphertextBlob: blob.toString('base64'), KeyId: state.keyArn(name), EncryptionAlgorithm: 'SYMMETRIC_DEFAULT' },
      ];
    }
    const plaintext = keys.decrypt(name, Buffer.from(String(CiphertextBlob), 'base64'), context);
    if (plaintext === undefined) return refused('InvalidCiphertextException', '');
    return [200, { Plaintext: plaintext.toString('base64'), KeyId: state.keyArn(name) }];
  });
  return { ...server, state, keys };
}

export const awsRole = 'arn:aws:iam::111122223333:role/unseal';
export const webToken = 'eyJhbGciOiJSUzI1NiJ9.the-claims.the-signature';

type AwsState = Awaited<ReturnType<typeof awsMock>>['state'];

/** The token service of AWS on loopback. It gives credentials that the mock of AWS KMS with this state accepts. */
export async function stsMock(aws: AwsState) {
  const state = { issued: 0, sessions: [] as string[], validToken: webToken, answer: undefined as StubAnswer | undefined };
  const inXml = (status: number, text: string): StubAnswer => [status, text, { 'content-type': 'text/xml' }];
  const fails = (status: number, code: string, message: string): StubAnswer =>
    inXml(
      status,
      `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`,
    );
  const server = await stubProvider((request): StubAnswer => {
    if (state.answer !== undefined) return state.answer;
    const { Action, RoleArn, RoleSessionName, WebIdentityToken } = Object.fromEntries(new URLSearchParams(request.text));
    if (RoleArn !== awsRole) return fails(403, 'AccessDenied', `not authorized to perform: sts:${Action}`);
    if (Action === 'AssumeRoleWithWebIdentity') {
      if (request.headers.authorization !== undefined) return fails(400, 'ValidationError', 'it must not be signed');
      if (WebIdentityToken !== state.validToken)
        return fails(400, 'ExpiredTokenException', 'Token expired: current date/time is later');
    } else {
      const fault = signatureFault(request, 'sts', (id) => aws.credentials.get(id), aws.nowMs);
      if (Action !== 'AssumeRole' || fault !== undefined) return fails(403, fault ?? 'InvalidAction', 'not a request to AWS STS');
    }
    state.issued += 1;
    state.sessions.push(`${Action} ${RoleSessionName}`);
    const [id, secret, session] = [`ASIAROLE${state.issued}`, `secret/of+role${state.issued}`, `session==${state.issued}`];
    aws.credentials.set(id, { secret, session });
    const expiration = new Date(aws.nowMs + 3_600_000).toISOString();
    const credentials =
      `<AccessKeyId>${id}</AccessKeyId><SecretAccessKey>${secret}</SecretAccessKey>` +
      `<SessionToken>${session}</SessionToken><Expiration>${expiration}</Expiration>`;
    return inXml(
      200,
      `<${Action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><${Action}Result>` +
        `<Credentials>${credentials}</Credentials></${Action}Result></${Action}Response>`,
    );
  });
  return { ...server, state };
}
