import { newAccessor } from './token.ts';
import type { TokenRecord } from './token-record.ts';

/** A root token that nobody's token has made: it does not end by itself. @param now - milliseconds since the epoch */
export const rootRecord = (now: number): TokenRecord => ({
  type: 'service',
  accessor: newAccessor(),
  policies: ['root'],
  displayName: 'root',
  meta: {},
  path: 'auth/token/root',
  createdMs: now,
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
});
