import { type ParameterValue, pathDenial, refusedByPolicy, useDenial } from '@transitd/access';
import { type Body, dataReply, fields, int, permissionDenied, RequestError } from '@transitd/http';
import { defaultHash, hashOf, random, randomBytesMax } from '@transitd/transit-engine';
import * as answers from '../operation/answers.ts';
import { type GatewayContext, guarded, inGateway, type Params, type Route } from '../operation/operation.ts';
import { withoutEffect } from '../transit/data-fields.ts';
import { hashFields, hashResult, randomFields, randomPath, randomResult, sourcesUsed } from '../transit/random-and-hash.ts';

/**
 * Refuses a value from the body, or a default, that a policy denies: by the path that contains the value, or as a parameter (decision 87).
 */
function refuseDenied(
  { principal }: GatewayContext,
  path: string,
  uses: readonly { readonly forms: readonly string[]; readonly names: readonly string[]; readonly value: ParameterValue }[],
): void {
  for (const { forms, names, value } of uses) {
    const [denied = useDenial(principal, path, names, value)] = forms.flatMap((form) => pathDenial(principal, form) ?? []);
    if (denied !== undefined) throw permissionDenied(refusedByPolicy(denied));
  }
}

/** Returns a warning if the value in force differs from the one that was sent. */
const overridden = (name: string, sent: string | number | undefined, inForce: string | number): readonly string[] =>
  sent && sent !== inForce ? withoutEffect([name], 'because another value is in force') : [];

const takes = { ...randomFields, urlbytes: int('Number of random bytes', { aliasOf: 'bytes', min: 1, max: randomBytesMax }) };

/** Returns the values that a request uses. @param body - empty if only the path is known */
function readRandom(params: Params, body: Body) {
  const { values, warnings } = fields(takes, body, randomPath(params));
  const { source = 'platform', bytes = 32, format } = values;
  const count = values.urlbytes ?? bytes;
  const at = 'sys/tools/random';
  const uses = [
    ...sourcesUsed(source).map((value) => ({ forms: [`${at}/${value}`, `${at}/${value}/${count}`], names: ['source'], value })),
    { forms: [`${at}/${count}`], names: ['bytes', 'urlbytes'], value: count },
  ];
  return { source, count, format, uses, warnings: [...warnings, ...overridden('bytes', values.bytes, count)] };
}

const randomBytes = inGateway({
  name: 'tools-random',
  access: 'token',
  about: 'Generate random bytes',
  takes,
  answers: answers.data(randomResult),
  where: 'replica',
  capability: 'update',
  sameAs: (params, body) => {
    if (body !== undefined) return []; // `run` checks the values that count
    try {
      return readRandom(params, {}).uses.flatMap(({ forms }) => forms);
    } catch {
      return []; // an invalid value: the operation will refuse it
    }
  },
  run: async (context, { body, params, path }) => {
    const { source, count, format, uses, warnings } = readRandom(params, body);
    refuseDenied(context, path, uses);
    const result = await random({ source, format, bytes: count }, context.services.sealRandom);
    return dataReply({ random_bytes: result.randomBytes }, [...warnings, ...result.warnings]);
  },
});

const hash = inGateway(
  guarded({
    name: 'tools-hash',
    about: 'Compute a hash',
    takes: hashFields,
    answers: answers.data(hashResult),
    where: 'replica',
    capability: 'update',
    run: async (context: GatewayContext, { values, path }) => {
      const algorithm = values.urlalgorithm ?? values.algorithm ?? defaultHash;
      refuseDenied(context, path, [
        { forms: [`sys/tools/hash/${algorithm}`], names: ['algorithm', 'urlalgorithm'], value: algorithm },
      ]);
      if (values.input === undefined) throw new RequestError('invalid_request', 'input missing');
      const sum = await hashOf({ input: values.input, algorithm, format: values.format });
      return dataReply(sum, overridden('algorithm', values.algorithm, algorithm));
    },
  }),
);

/** Routes of random bytes and hashes without a mount. */
export const toolRoutes: readonly Route[] = [
  { path: 'sys/tools/random', operations: { POST: randomBytes } },
  { path: 'sys/tools/random/:source', operations: { POST: randomBytes } },
  { path: 'sys/tools/random/:source/:urlbytes', operations: { POST: randomBytes } },
  { path: 'sys/tools/hash', operations: { POST: hash } },
  { path: 'sys/tools/hash/:urlalgorithm', operations: { POST: hash } },
];
