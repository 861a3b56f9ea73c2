import { isDenied } from '@transitd/access';
import { defaultHash, hashOf, random, randomSources } from '@transitd/transit-engine';
import { dataReply } from '../http/envelope.ts';
import { permissionDenied, RequestError } from '../http/error-answer.ts';
import { fields } from '../http/fields.ts';
import type { GuardedOperation, Route } from './operation.ts';

/** Decision 29: what the body asks for is denied where its path is. */
function refuseDenied({ principal }: Parameters<GuardedOperation['run']>[0], paths: readonly string[]): void {
  if (paths.some((path) => isDenied(principal, path))) throw permissionDenied();
}

const randomBytes: GuardedOperation = {
  name: 'tools-random',
  access: 'token',
  where: 'replica',
  capability: 'update',
  run: (context, { body, params }) => {
    const { source: first, urlbytes: second } = params;
    // One segment alone is a source if it names one, else a number of bytes.
    const named = first !== undefined && (second !== undefined || randomSources.includes(first));
    const path = {
      ...(named && { source: first }),
      ...(!named && first !== undefined && { urlbytes: first }),
      ...(second && { urlbytes: second }),
    };
    const { values, warnings } = fields({ source: 'string', urlbytes: 'int', bytes: 'int', format: 'string' }, body, path);
    const { source = 'platform', bytes = 32, format } = values;
    const count = values.urlbytes ?? bytes;
    refuseDenied(
      context,
      [source, String(count), `${source}/${count}`].map((form) => `sys/tools/random/${form}`),
    );
    const result = random({ source, format, bytes: count });
    return dataReply(JSON.stringify({ random_bytes: result.randomBytes }), [...warnings, ...result.warnings]);
  },
};

const hash: GuardedOperation = {
  name: 'tools-hash',
  access: 'token',
  where: 'replica',
  capability: 'update',
  run: async (context, { body, params }) => {
    const { values, warnings } = fields(
      { urlalgorithm: 'string', algorithm: 'string', input: 'string', format: 'string' },
      body,
      params,
    );
    const algorithm = values.urlalgorithm ?? values.algorithm ?? defaultHash;
    refuseDenied(context, [`sys/tools/hash/${algorithm}`]);
    if (values.input === undefined) throw new RequestError('invalid_request', 'input missing');
    return dataReply(JSON.stringify(await hashOf({ input: values.input, algorithm, format: values.format })), warnings);
  },
};

/** Random bytes and hashes without a mount. */
export const toolRoutes: readonly Route[] = [
  { path: 'sys/tools/random', operations: { POST: randomBytes } },
  { path: 'sys/tools/random/:source', operations: { POST: randomBytes } },
  { path: 'sys/tools/random/:source/:urlbytes', operations: { POST: randomBytes } },
  { path: 'sys/tools/hash', operations: { POST: hash } },
  { path: 'sys/tools/hash/:urlalgorithm', operations: { POST: hash } },
];
