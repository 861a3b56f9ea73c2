import type { Readable } from 'node:stream';

/** What nodes ask each other beside Raft's messages. */
export const callPaths = {
  raft: '/cluster/raft',
  echo: '/cluster/echo',
  confirm: '/cluster/confirm',
  snapshot: '/cluster/snapshot',
  renew: '/cluster/renew',
} as const;

const answerBytesMax = 64 * 1024;

/** The whole JSON of an answer; undefined when it has no content. @throws Error when it is too long, broken off or no JSON */
export async function readAnswer({ body }: { readonly body: Readable }): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > answerBytesMax) {
      body.destroy();
      throw new Error('a node answered with more than was asked for');
    }
    chunks.push(chunk);
  }
  return bytes === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString('utf8'));
}
