import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import type { KeySources } from '@transitd/access';
import { answerTo, readRegularFile } from '@transitd/process';

/** Limits for fetching a key set. */
const [fetchMsMax, bytesMax] = [5_000, 1024 * 1024];

/** Returns the key sets for `jwt` logins: files named in the configuration, and https URLs. */
export const keySources = (files: Readonly<Record<string, string>>): KeySources => ({
  file: async (name) => (Object.hasOwn(files, name) ? readRegularFile(files[name] ?? '', bytesMax).toString('utf8') : undefined),
  url: fetchText,
});

/** Fetches a text by https. It follows no redirect, accepts only status 200, and limits time and size. */
export function fetchText(url: string, ca: string): Promise<string> {
  const signal = AbortSignal.timeout(fetchMsMax);
  const request = get(url, { signal, agent: false, headers: { Accept: 'application/json' }, ...(ca !== '' && { ca }) });
  return answerTo(request, signal, (response: IncomingMessage) => {
    if (response.statusCode === 200) return textOf(response);
    request.destroy();
    throw new Error(`the response has status ${response.statusCode}`);
  });
}

async function textOf(response: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new Error('the response is too long'); // this ends the connection
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
