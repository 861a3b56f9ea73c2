import type { TokenRecord } from '../src/index.ts';

/** Returns a token record with the given members. */
export const tokenRecord = (given: Partial<TokenRecord> = {}): TokenRecord => ({
  type: 'service',
  accessor: 'a',
  policies: ['p'],
  displayName: 'd',
  meta: {},
  path: 'auth/token/create',
  createdMs: 0,
  ttlS: 0,
  expiresMs: 0,
  explicitMaxTtlS: 0,
  periodS: 0,
  renewable: false,
  parent: '',
  parentAccessorId: '',
  generation: 0,
  usesLeft: 0,
  renewedMs: 0,
  maxTtlS: 0,
  role: '',
  boundCidrs: [],
  mount: '',
  source: '',
  groups: [],
  ...given,
});
