import { type LookupAddress, lookup } from 'node:dns';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { answerTo, bytesOf, isPublicAddress } from '@transitd/process';

export interface TextRequest {
  readonly url: string;
  /** CA certificates in PEM, to verify the server; empty for the default ones. */
  readonly ca: string;
  /** `public`: refuses a host with a private address, for an address that no operator has named. */
  readonly hosts: 'any' | 'public';
  readonly headers?: Readonly<Record<string, string>>;
  /** Of `deadline`. */
  readonly signal: AbortSignal;
}

const [secondsMax, bytesMax] = [5, 1024 * 1024];

/** Returns the deadline for all fetches that one request causes: a standby waits ten seconds for the answer to a forwarded one. */
export const deadline = (): AbortSignal => AbortSignal.timeout(secondsMax * 1000);

/**
 * Fetches a text by https, on a new connection. It follows no redirect, so that neither the request nor its credentials reach another
 * server. The text has at most 1 MiB.
 * @throws Error, with the `code` of a system error if it is one; also for any status other than 200
 */
export async function fetchText({ url, ca, hosts, headers = {}, signal }: TextRequest): Promise<string> {
  // Node looks up no address, so the check of the look-up would not see it.
  const literal = new URL(url).hostname.replace(/^\[(.*)\]$/, '$1');
  if (hosts === 'public' && isIP(literal) !== 0 && !isPublicAddress(literal)) throw notPublic();
  const request = get(url, {
    ...{ headers, signal, agent: false },
    ...(ca !== '' && { ca }),
    ...(hosts === 'public' && { lookup: publicLookup }),
  });
  try {
    return await answerTo(request, signal, async (response: IncomingMessage) => {
      if (response.statusCode !== 200) throw new Error(`the response has status ${response.statusCode}`);
      return (await bytesOf(response, bytesMax, tooLong)).toString('utf8');
    });
  } catch (error) {
    request.destroy();
    throw signal.aborted ? new Error(`no answer within ${secondsMax} s`) : error;
  }
}

const tooLong = (): Error => new Error('the response is too long');

const notPublic = (): Error => new Error('the host has a private address');

/** Resolves a name to the addresses that are then connected to, so that no second look-up can give others. */
const publicLookup: LookupFunction = (hostname, options, callback) =>
  lookup(hostname, { ...options, all: true }, (error, found: readonly LookupAddress[] = []) => {
    const [first] = found;
    if (error !== null || first === undefined) callback(error ?? new Error('the host has no address'), []);
    else if (!found.every(({ address }) => isPublicAddress(address))) callback(notPublic(), []);
    else if (options.all === true) callback(null, [...found]);
    else callback(null, first.address, first.family);
  });
