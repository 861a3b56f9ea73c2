// Collects the requests with unusual bodies from the other files of this folder.
import { batches, items } from './batches.ts';
import type { HostileCase } from './case.ts';
import { booleans, ciphertexts, durations, integers, macs, texts } from './fields.ts';
import { keys, transfers } from './keys.ts';
import { policies, system, tokens } from './system.ts';

const made: readonly HostileCase[] = ['__proto__', 'constructor', 'a..b', '_', 'x'.repeat(512)].map((name) => ({
  method: 'POST',
  target: `/v1/transit/keys/${name}`,
  body: {},
  status: 200,
  because: 'an unusual but valid name',
  makes: name,
}));

export const shapes: readonly HostileCase[] = [
  ...[
    ...booleans,
    ...integers,
    ...durations,
    ...texts,
    ...ciphertexts,
    ...macs,
    ...batches,
    ...items,
    ...keys,
    ...transfers,
    ...policies,
    ...tokens,
    ...system,
  ].map(([path, body, status, because, says]) => ({
    method: 'POST',
    target: `/v1/${path}`,
    body,
    status,
    because,
    ...(says && { says }),
  })),
  ...made,
];
