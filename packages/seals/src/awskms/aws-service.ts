import { createRequire } from 'node:module';
import { ProviderError, type ProviderFailure } from '@transitd/barrier';
import { StartError } from '@transitd/process';
import type { z } from 'zod';
import type { Exchange, ProviderAnswer } from '../http/exchange.ts';
import { printable } from '../http/printable.ts';
import { sendTo } from '../http/service-answer.ts';

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of temporary credentials. */
  readonly sessionToken?: string;
}

/** A service of AWS at its address in a region. */
export interface AwsService {
  readonly region: string;
  /** URL. */
  readonly endpoint: string;
  /** Sends requests to the endpoint. */
  readonly exchange: Exchange;
  /** Returns milliseconds since the epoch. AWS refuses a signature whose time differs from its own clock by more than five minutes. */
  readonly nowMs: () => number;
}

/** An error that the service returned. */
export interface AwsRefusal {
  readonly status: number;
  /** Such as `AccessDeniedException`; empty if the answer has none. */
  readonly type: string;
  /** Status, type and text, for the log. */
  readonly said: string;
  readonly options: { readonly retryAfterMs?: number };
}

/** What one call needs besides its service. */
export interface AwsCall<Form extends z.ZodType> {
  /** Name of the service; error texts begin with it. */
  readonly name: string;
  /** Form of the result: the SDK copies values of other types. */
  readonly form: Form;
  /** Absent for a call that is not signed. */
  readonly credentials?: AwsCredentials;
  /** Further texts that no error may contain. */
  readonly secrets?: readonly string[];
  /** Sends a command by a client of the SDK with these settings. */
  readonly send: (settings: ClientSettings) => Promise<unknown>;
  readonly errorOf: (refusal: AwsRefusal) => ProviderError;
}

export type ClientSettings = ReturnType<typeof settingsOf>;

/** The part of a request that a client of the SDK makes. */
interface SignedRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

const packages = ['@aws-sdk/client-kms', '@aws-sdk/client-sts'];

/** Refuses to start without the optional packages, which the first call would load. @throws StartError */
export function requireSdk(resolve: (name: string) => string = createRequire(import.meta.url).resolve): void {
  for (const name of packages) {
    try {
      resolve(name);
    } catch {
      throw new StartError(
        `seal: a seal of type awskms needs the package ${name}, which is missing: install transitd with its optional packages`,
      );
    }
  }
}

/** Sends one request by the SDK and returns its result. @throws ProviderError */
export async function callAws<Form extends z.ZodType>(service: AwsService, call: AwsCall<Form>): Promise<z.output<Form>> {
  const { name, form, credentials, secrets = [], send, errorOf } = call;
  let answer: ProviderAnswer | undefined;
  let bytes: Buffer | undefined;
  const handle = async ({ path, headers, body = '' }: SignedRequest) => {
    answer = await sendTo(service.exchange, name, { method: 'POST', path, headers, body: textOf(body), text: true });
    const { status, text: given = '' } = answer;
    bytes = Buffer.from(hasDocumentType(given) ? '' : given);
    return { response: { statusCode: status, headers: {}, body: bytes } };
  };
  const malformed = (): ProviderError => new ProviderError('malformed', `${name} returned an answer that does not come from AWS`);
  let result: unknown;
  try {
    result = await send(settingsOf(service, credentials, handle));
  } catch (error) {
    if (error instanceof ProviderError) throw error;
    if (answer === undefined) throw new ProviderError('malformed', `${name} was not asked: the SDK cannot make the request`);
    if (answer.status < 300) throw malformed(); // the SDK could not parse it
    const hidden = [...secrets, credentials?.secretAccessKey, credentials?.sessionToken].filter((text) => text !== undefined);
    throw errorOf(refusalIn(answer, error, [...hidden, ...hidden.map(encodeURIComponent)]));
  } finally {
    bytes?.fill(0); // it may contain a key
  }
  const checked = form.safeParse(result);
  if (!checked.success) throw malformed();
  return checked.data;
}

/** Time of the SDK's parser grows by the square of these, and no answer of AWS has them. */
const hasDocumentType = (text: string): boolean => /<!(?:doctype|entity)/i.test(text);

const textOf = (body: string | Uint8Array): string => (typeof body === 'string' ? body : new TextDecoder().decode(body));

/**
 * Returns the settings of a client for one call. Each of them replaces something that the SDK would look for in its own files, in variables
 * of the environment, or at the metadata service. Without headers of an answer, the SDK cannot correct its clock by them.
 */
const settingsOf = (
  { region, endpoint, nowMs }: AwsService,
  credentials: AwsCredentials | undefined,
  handle: (request: SignedRequest) => Promise<object>,
) => ({
  region,
  endpoint,
  credentials: credentials === undefined ? unsigned : { ...credentials },
  requestHandler: { handle },
  maxAttempts: 1,
  retryMode: 'standard',
  defaultsMode: 'legacy' as const,
  useFipsEndpoint: false,
  useDualstackEndpoint: false,
  authSchemePreference: ['sigv4'],
  userAgentAppId: '',
  defaultUserAgentProvider: async () => userAgent,
  disableClockSkewCorrection: false, // true would ignore the offset
  systemClockOffset: nowMs() - Date.now(),
});

const userAgent: [string][] = [['transitd']];

const unsigned = async (): Promise<never> => {
  throw new Error('this request has no credentials');
};

/**
 * Makes a client add no header about a trace, which the SDK would take from variables of AWS Lambda.
 * @returns the client
 */
export function withoutTrace<C extends { readonly middlewareStack: { remove(name: string): boolean } }>(client: C): C {
  if (!client.middlewareStack.remove('recursionDetectionMiddleware')) throw new Error('the SDK has another name for this');
  return client;
}

/** Names of the SDK for an error without a type or a text. */
const [noType, noText] = ['Unknown', 'UnknownError'];

/** @param error - of the SDK: an exception of the service, or one of its parser if the answer has another form */
function refusalIn({ status, retryAfterMs }: ProviderAnswer, error: unknown, secrets: readonly string[]): AwsRefusal {
  const isOfService = error instanceof Error && '$fault' in error;
  // The answer determines both, so they may have any type.
  const [type, text]: readonly unknown[] = isOfService ? [error.name, error.message] : [];
  const known = (part: unknown): string => (typeof part !== 'string' || part === noType || part === noText ? '' : part);
  const parts = [`status ${status}`, known(type), known(text)].filter((part) => part !== '');
  const said = parts.map((part) => printable(secrets.reduce((rest, secret) => rest.replaceAll(secret, '***'), part)));
  return { status, type: known(type), said: said.join(': '), options: retryAfterMs === undefined ? {} : { retryAfterMs } };
}

/** Returns the kind of failure of a type that no table of a service has. */
export function failureOfStatus(status: number): ProviderFailure {
  if (status === 429) return 'throttled';
  if (status === 401 || status === 403) return 'permission';
  return status >= 500 ? 'unreachable' : 'malformed';
}
