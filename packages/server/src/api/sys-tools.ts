import { isDenied } from '@transitd/access';
import { defaultHash, hashNames, hashOf, random, randomBytesMax, randomSources } from '@transitd/transit-engine';
import { dataReply } from '../http/envelope.ts';
import { permissionDenied, RequestError } from '../http/error-answer.ts';
import { base64, int, text } from '../http/field.ts';
import { fields } from '../http/fields.ts';
import { object, string } from '../http/json-schema.ts';
import * as answers from './answers.ts';
import { type Context, type GuardedOperation, guarded, type Route } from './operation.ts';

/** Decision 29: what the body asks for is denied where its path is. */
function refuseDenied({ principal }: Context, paths: readonly string[]): void {
  if (paths.some((path) => isDenied(principal, path))) throw permissionDenied();
}

const randomFields = {
  source: text('where they come from', { oneOf: randomSources, default: 'platform' }),
  urlbytes: int('how many', { min: 1, max: randomBytesMax }),
  bytes: int('the same, where the path does not say it', { default: 32, min: 1, max: randomBytesMax }),
  format: text('of the bytes', { oneOf: ['hex', 'base64'], default: 'base64' }),
};

const randomBytes: GuardedOperation = {
  name: 'tools-random',
  access: 'token',
  about: 'random bytes',
  takes: randomFields,
  answers: answers.data(object({ random_bytes: string })),
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
    const { values, warnings } = fields(randomFields, body, path);
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

const hash = guarded({
  name: 'tools-hash',
  about: 'a hash',
  takes: {
    urlalgorithm: text('name of the hash', { oneOf: hashNames }),
    algorithm: text('the same, where the path does not name it', { oneOf: hashNames, default: defaultHash }),
    input: base64('what to hash', { required: true }),
    format: text('of the sum', { oneOf: ['hex', 'base64'], default: 'hex' }),
  },
  answers: answers.data(object({ sum: string })),
  where: 'replica',
  capability: 'update',
  run: async (context, { values, warnings }) => {
    const algorithm = values.urlalgorithm ?? values.algorithm ?? defaultHash;
    refuseDenied(context, [`sys/tools/hash/${algorithm}`]);
    if (values.input === undefined) throw new RequestError('invalid_request', 'input missing');
    return dataReply(JSON.stringify(await hashOf({ input: values.input, algorithm, format: values.format })), warnings);
  },
});

/** Random bytes and hashes without a mount. */
export const toolRoutes: readonly Route[] = [
  { path: 'sys/tools/random', operations: { POST: randomBytes } },
  { path: 'sys/tools/random/:source', operations: { POST: randomBytes } },
  { path: 'sys/tools/random/:source/:urlbytes', operations: { POST: randomBytes } },
  { path: 'sys/tools/hash', operations: { POST: hash } },
  { path: 'sys/tools/hash/:urlalgorithm', operations: { POST: hash } },
];
