import { ProviderError, type ProviderFailure } from '@transitd/barrier';
import { z } from 'zod';
import type { Credential } from '../http/expiring.ts';
import {
  type AwsCall,
  type AwsCredentials,
  type AwsRefusal,
  type AwsService,
  type ClientSettings,
  callAws,
  withoutTrace,
} from './aws-service.ts';

/** A role of AWS. */
export interface Role {
  readonly arn: string;
  /** Name of the session, by which the log of AWS tells callers apart. */
  readonly sessionName: string;
}

type Sdk = typeof import('@aws-sdk/client-sts');

const word = z.string().regex(/^[\x21-\x7e]+$/);
const assumed = z.object({
  Credentials: z.object({ AccessKeyId: word, SecretAccessKey: word, SessionToken: word, Expiration: z.date() }),
});

/** The security token service of AWS, which gives temporary credentials for a role. */
export class Sts {
  readonly #service: AwsService;

  constructor(service: AwsService) {
    this.#service = service;
  }

  /** Assumes a role by other credentials. @throws ProviderError */
  assume(role: Role, credentials: AwsCredentials): Promise<Credential<AwsCredentials>> {
    return this.#call(role, {
      credentials,
      send: ({ STSClient, AssumeRoleCommand }, settings) =>
        withoutTrace(new STSClient(settings)).send(
          new AssumeRoleCommand({ RoleArn: role.arn, RoleSessionName: role.sessionName }),
        ),
    });
  }

  /** Assumes a role by the token of another issuer, such as Kubernetes. The request is not signed. @throws ProviderError */
  assumeWithWebIdentity(role: Role, token: string): Promise<Credential<AwsCredentials>> {
    return this.#call(role, {
      secrets: [token],
      send: ({ STSClient, AssumeRoleWithWebIdentityCommand }, settings) => {
        const input = { RoleArn: role.arn, RoleSessionName: role.sessionName, WebIdentityToken: token };
        return withoutTrace(new STSClient(settings)).send(new AssumeRoleWithWebIdentityCommand(input));
      },
    });
  }

  async #call({ arn }: Role, { send, ...call }: StsCall): Promise<Credential<AwsCredentials>> {
    const name = `AWS STS at ${this.#service.endpoint}`;
    const sdk = await import('@aws-sdk/client-sts');
    const { Credentials: given } = await callAws(this.#service, {
      ...call,
      name,
      form: assumed,
      send: (settings) => send(sdk, settings),
      errorOf: (refusal) => errorOf(`${name} gives no credentials for the role ${arn}`, refusal),
    });
    const { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, SessionToken: sessionToken, Expiration } = given;
    return { value: { accessKeyId, secretAccessKey, sessionToken }, endsAtMs: Expiration.getTime() };
  }
}

interface StsCall extends Pick<AwsCall<typeof assumed>, 'credentials' | 'secrets'> {
  readonly send: (sdk: Sdk, settings: ClientSettings) => Promise<unknown>;
}

function errorOf(text: string, { status, type, said, options }: AwsRefusal): ProviderError {
  return new ProviderError(failures.get(type) ?? failureOf(status), `${text}: ${said}`, options);
}

const failures: ReadonlyMap<string, ProviderFailure> = new Map([
  ['IDPCommunicationError', 'unreachable'],
  ['IDPCommunicationErrorException', 'unreachable'], // its name in the SDK
  ['Throttling', 'throttled'],
  ['ThrottlingException', 'throttled'],
]);

function failureOf(status: number): ProviderFailure {
  if (status === 429) return 'throttled';
  if (status >= 500) return 'unreachable';
  return status >= 400 ? 'permission' : 'malformed';
}
