import { ProviderError } from '@transitd/barrier';
import { readSecretFile, reasonOf } from '@transitd/process';
import { z } from 'zod';
import type { Connect } from '../http/exchange.ts';
import { type Credential, Expiring } from '../http/expiring.ts';
import { readSecret } from '../http/secret-file.ts';
import type { AwsCredentials } from './aws-service.ts';
import { credentialsOf, readProfile } from './credentials-file.ts';
import type { Role, Sts } from './sts.ts';

export interface CredentialSourceParts {
  /** Environment variables, with the names that AWS uses. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly credentialsFile: string | undefined;
  readonly profile: string;
  readonly identity: Identity;
  readonly sts: Sts;
  readonly connect: Connect;
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number;
}

/**
 * As whom the node calls the key service.
 * - `found`: by the credentials that it finds
 * - `assumed`: in a role, which it assumes by these credentials
 * - `web`: in a role that trusts the token in a file
 */
export type Identity =
  | { readonly type: 'found' }
  | { readonly type: 'assumed'; readonly role: Role }
  | { readonly type: 'web'; readonly role: Role; readonly tokenFile: string };

/** Addresses at which AWS serves credentials without TLS. Only the instance or the container itself can reach them. */
const [instanceAddress, containerAddress] = ['http://169.254.169.254', 'http://169.254.170.2'];
const containerHosts: ReadonlySet<string> = new Set(['169.254.170.2', '169.254.170.23', '[fd00:ec2::23]', '127.0.0.1', '[::1]']);

const temporary = z.object({
  AccessKeyId: z.string().min(1),
  SecretAccessKey: z.string().min(1),
  Token: z.string().min(1),
  Expiration: z.iso.datetime({ offset: true }),
});

/** Name of the sessions in a role, if none is set. */
export const defaultSessionName = 'transitd';

/**
 * Finds credentials for AWS. The sources are, in this order: the configured file, the environment variables, the file that they name, the
 * web identity that they name, the container (ECS, EKS Pod Identity), and the instance (IMDSv2). If a role is configured, it is assumed by
 * these credentials, or by a token of its own. Temporary credentials are replaced before they expire.
 * Empty variables were left out before.
 *
 * The SDK's own sources are not used: they read files that nobody named, run programs, answer to more variables, repeat requests, and
 * neither limit answers nor send them by an exchange.
 */
export class CredentialSource {
  readonly #parts: CredentialSourceParts;
  readonly #kept: Expiring<AwsCredentials>;

  constructor(parts: CredentialSourceParts) {
    this.#parts = parts;
    this.#kept = new Expiring(() => this.#fetch(), parts.nowMs);
  }

  /** @throws ProviderError `permission` */
  get(): Promise<AwsCredentials> {
    return this.#kept.get();
  }

  /** Records that AWS refused the credentials. */
  forget(): void {
    this.#kept.forget();
  }

  async #fetch(): Promise<Credential<AwsCredentials>> {
    const { identity, sts } = this.#parts;
    switch (identity.type) {
      case 'found':
        return this.#find();
      case 'assumed':
        return sts.assume(identity.role, (await this.#find()).value);
      case 'web':
        return this.#byToken(identity.role, 'seal.web_identity_token_file', identity.tokenFile);
    }
  }

  async #find(): Promise<Credential<AwsCredentials>> {
    const { env, credentialsFile } = this.#parts;
    if (credentialsFile !== undefined) return this.#fromFile('seal.credentials_file', credentialsFile);
    const value = credentialsOf(env['AWS_ACCESS_KEY_ID'], env['AWS_SECRET_ACCESS_KEY'], env['AWS_SESSION_TOKEN']);
    if (value !== undefined) return { value, endsAtMs: undefined };
    const shared = env['AWS_SHARED_CREDENTIALS_FILE'];
    if (shared !== undefined) return this.#fromFile('AWS_SHARED_CREDENTIALS_FILE', shared);
    return (await this.#fromWebIdentity()) ?? (await this.#fromContainer()) ?? this.#fromInstance();
  }

  /** The file is read for each call, so that another process may replace it. */
  async #fromFile(name: string, file: string): Promise<Credential<AwsCredentials>> {
    const { profile, nowMs } = this.#parts;
    return { value: await readProfile(name, file, profile), endsAtMs: nowMs() };
  }

  async #fromWebIdentity(): Promise<Credential<AwsCredentials> | undefined> {
    const { env } = this.#parts;
    const { AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: arn, AWS_ROLE_SESSION_NAME: sessionName = defaultSessionName } = env;
    if (file === undefined || arn === undefined) return undefined;
    return this.#byToken({ arn, sessionName }, 'AWS_WEB_IDENTITY_TOKEN_FILE', file);
  }

  /** The file is read for each request to the token service, because its issuer replaces it. */
  async #byToken(role: Role, name: string, file: string): Promise<Credential<AwsCredentials>> {
    return this.#parts.sts.assumeWithWebIdentity(role, await readSecret(name, file, 'token'));
  }

  async #fromContainer(): Promise<Credential<AwsCredentials> | undefined> {
    const { env, connect } = this.#parts;
    const relative = env['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'];
    const address = relative === undefined ? env['AWS_CONTAINER_CREDENTIALS_FULL_URI'] : `${containerAddress}${relative}`;
    if (address === undefined) return undefined;
    const url = URL.canParse(address) ? new URL(address) : undefined;
    if (url === undefined || (url.protocol !== 'https:' && !containerHosts.has(url.hostname)))
      throw new ProviderError(
        'permission',
        'AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor an address of the container',
      );
    try {
      const tokenFile = env['AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE'];
      const token =
        tokenFile === undefined ? env['AWS_CONTAINER_AUTHORIZATION_TOKEN'] : readSecretFile(tokenFile).toString('utf8').trim();
      const headers = token === undefined ? {} : { authorization: token };
      const { status, json } = await connect(url.origin)({ method: 'GET', path: `${url.pathname}${url.search}`, headers });
      return credentialIn(status, json);
    } catch (error) {
      throw none(`the container gives none: ${reasonOf(error)}`, error);
    }
  }

  async #fromInstance(): Promise<Credential<AwsCredentials>> {
    if (this.#parts.env['AWS_EC2_METADATA_DISABLED'] === 'true') throw none('the instance metadata service is disabled');
    const instance = this.#parts.connect(instanceAddress);
    const text = async (method: 'GET' | 'PUT', path: string, headers: Readonly<Record<string, string>>): Promise<string> => {
      const answer = await instance({ method, path, headers, text: true });
      const line = answer.text?.split('\n')[0]?.trim() ?? '';
      if (answer.status !== 200 || !/^[\x21-\x7e]{1,1024}$/.test(line)) throw new Error(`status ${answer.status} for ${path}`);
      return line;
    };
    try {
      const token = await text('PUT', '/latest/api/token', { 'x-aws-ec2-metadata-token-ttl-seconds': '300' });
      const headers = { 'x-aws-ec2-metadata-token': token };
      const path = '/latest/meta-data/iam/security-credentials/';
      const role = await text('GET', path, headers);
      if (!/^[\w+=,.@-]{1,64}$/.test(role)) throw new Error('it names no role');
      const { status, json } = await instance({ method: 'GET', path: `${path}${role}`, headers });
      return credentialIn(status, json);
    } catch (error) {
      throw none(`the instance metadata service gives none: ${reasonOf(error)}`, error);
    }
  }
}

function credentialIn(status: number, json: unknown): Credential<AwsCredentials> {
  const parsed = temporary.safeParse(json);
  if (status !== 200 || !parsed.success) throw new Error(`status ${status}, without temporary credentials`);
  const { AccessKeyId, SecretAccessKey, Token, Expiration } = parsed.data;
  const value = credentialsOf(AccessKeyId, SecretAccessKey, Token);
  if (value === undefined) throw new Error('credentials with characters that no header may have');
  return { value, endsAtMs: Date.parse(Expiration) };
}

const none = (why: string, cause?: unknown): ProviderError =>
  new ProviderError(
    'permission',
    `the awskms seal has no credentials: set seal.credentials_file, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; ${why}`,
    { cause },
  );
