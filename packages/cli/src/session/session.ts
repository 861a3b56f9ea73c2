import { RefusedError, TransitdClient } from '@transitd/client';
import { StartError } from '@transitd/process';
import { noTokenAdvice } from '../terminal/advice.ts';
import { processSources, type Sources } from '../terminal/input.ts';
import { type Format, Output } from '../terminal/output.ts';
import { type ConnectionOptions, connectionSettings, formatOf, tokenFile } from './environment.ts';
import { fetchWith } from './tls-fetch.ts';
import { readToken } from './token-file.ts';
import { authorityFiles, trustOnly } from './trust.ts';

/** One run of a command that calls a server. */
export interface Session {
  readonly client: TransitdClient;
  /** Sends requests with the settings of TLS. */
  readonly fetch: typeof fetch;
  readonly output: Output;
  readonly sources: Sources;
  readonly addresses: readonly string[];
  readonly namespace: string | undefined;
  /** PEM files of the only trusted authorities; empty if none are set. */
  readonly caFiles: readonly string[];
  /** The calling token, if there is one. */
  readonly token: string | undefined;
  /** Whether the calling token comes from the environment, not from the token file. */
  readonly tokenFromEnvironment: boolean;
  /** File in which a login stores its token. */
  readonly tokenFile: string;
}

export interface SessionOptions extends ConnectionOptions {
  readonly format?: Format;
}

/** @throws StartError */
export function openSession(options: SessionOptions, environment: NodeJS.ProcessEnv = process.env): Session {
  const { addresses, tls, namespace, ...settings } = connectionSettings(options, environment);
  const caFiles = authorityFiles(tls);
  if (caFiles.length > 0) trustOnly(...caFiles);
  const send = fetchWith(tls);
  const file = tokenFile(environment);
  const token = settings.token ?? readToken(file);
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw new StartError('the token contains spaces or characters that are invalid in a token');
  return {
    client: clientOf({
      addresses,
      fetch: send,
      ...(token !== undefined && { token }),
      ...(namespace !== undefined && { namespace }),
    }),
    fetch: send,
    output: new Output(formatOf(options.format, environment)),
    sources: processSources(),
    addresses,
    namespace,
    caFiles,
    token,
    tokenFromEnvironment: settings.token !== undefined,
    tokenFile: file,
  };
}

/** Runs the work of a command. If it lacks the right because there is no token, the refusal says so. @throws RefusedError */
export async function withTokenAdvice<T>({ token }: Session, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const isMissing = token === undefined && error instanceof RefusedError && error.errors.some((text) => noRight.test(text));
    throw isMissing ? new RefusedError({ ...error, body: error.body, errors: [...error.errors, noTokenAdvice] }) : error;
  }
}

/** Matches the error of a node for a request without a token. */
const noRight = /^(?:permission denied|missing client token)$/;

function clientOf(options: ConstructorParameters<typeof TransitdClient>[0]): TransitdClient {
  try {
    return new TransitdClient(options);
  } catch (error) {
    if (error instanceof TypeError) throw new StartError('the server address is not of the form https://host:port');
    throw error;
  }
}
