import { readFile } from 'node:fs/promises';
import { get } from 'node:https';
import type { KeySources } from '@transitd/access';

/** What a key set that is fetched may cost: more is no key set. */
const [fetchMsMax, bytesMax] = [5_000, 1024 * 1024];

/** Where `jwt` logins get keys from: files that the configuration names, and https. */
export const keySources = (files: Readonly<Record<string, string>>): KeySources => ({
  file: async (name) => (Object.hasOwn(files, name) ? limited(await readFile(files[name] ?? '', 'utf8')) : undefined),
  url: fetchText,
});

/** A text by https: no redirects, no answer but 200, and bounds for time and size. */
export function fetchText(url: string, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(fetchMsMax);
    const request = get(
      url,
      { signal, agent: false, headers: { Accept: 'application/json' }, ...(ca !== '' && { ca }) },
      (response) => {
        if (response.statusCode !== 200) {
          request.destroy();
          reject(new Error(`the answer was ${response.statusCode}`));
          return;
        }
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > bytesMax) request.destroy(new Error('the answer is too long'));
          else chunks.push(chunk);
        });
        response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
        response.on('error', reject);
      },
    );
    request.on('error', reject);
  });
}

function limited(text: string): string {
  if (text.length > bytesMax) throw new Error('the file is too long');
  return text;
}
