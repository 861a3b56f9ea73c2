import type { IncomingMessage } from 'node:http';
import { Agent, type RequestOptions, request as requestTls } from 'node:https';
import { Readable } from 'node:stream';
import { createSecureContext } from 'node:tls';
import { answerTo, StartError } from '@transitd/process';
import { readFile } from '../terminal/input.ts';
import { printError } from '../terminal/print.ts';
import type { TlsSettings } from './environment.ts';

/**
 * Returns `fetch` with a client certificate, a server name or without verification. The `fetch` of the platform has no such settings, so
 * it is returned only if none is set. The returned function follows no redirects. Prints a warning if certificates are not verified.
 * @throws StartError
 */
export function fetchWith({ certFile, keyFile, serverName, skipVerify }: TlsSettings): typeof fetch {
  if (certFile === undefined && keyFile === undefined && serverName === undefined && !skipVerify) return fetch;
  if (skipVerify)
    printError("warning: the server's certificate is not verified: anybody on the way can read the token and all data");
  const agent = new Agent({
    keepAlive: true,
    rejectUnauthorized: !skipVerify,
    ...clientIdentity(certFile, keyFile),
    ...(serverName !== undefined && { servername: serverName }),
  });
  return (input, init) => {
    const request = new Request(input, init);
    return request.url.startsWith('https:') ? send(request, agent) : fetch(request);
  };
}

function clientIdentity(certFile: string | undefined, keyFile: string | undefined): { cert?: Buffer; key?: Buffer } {
  if (certFile === undefined && keyFile === undefined) return {};
  if (certFile === undefined || keyFile === undefined)
    throw new StartError('a client certificate needs its key: use both --client-cert and --client-key');
  const identity = { cert: readFile(certFile), key: readFile(keyFile) };
  try {
    createSecureContext(identity);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartError(`the client certificate ${certFile} cannot be used with the key ${keyFile}: ${reason}`);
  }
  return identity;
}

function send(request: Request, agent: Agent): Promise<Response> {
  const { method, body, signal, url } = request;
  const options: RequestOptions = { method, headers: Object.fromEntries(request.headers), agent, signal };
  const outgoing = requestTls(url, options);
  const answer = answerTo(outgoing, signal, responseOf);
  if (body === null) outgoing.end();
  else
    Readable.fromWeb(body as never)
      .on('error', (error) => outgoing.destroy(error))
      .pipe(outgoing);
  return answer;
}

function responseOf(incoming: IncomingMessage): Response {
  const { statusCode: status = 0, headers } = incoming;
  const lists = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((text): [string, string] => [name, text]),
  );
  const hasBody = status !== 204 && status !== 304;
  if (!hasBody) incoming.resume();
  return new Response(hasBody ? (Readable.toWeb(incoming) as never) : null, { status, headers: lists });
}
