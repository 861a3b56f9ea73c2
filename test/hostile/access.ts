import { type HostileCase, inheritedNames } from './case.ts';

const post = (target: string, body: unknown, status: number, because: string, more: Partial<HostileCase> = {}): HostileCase => ({
  method: 'POST',
  target: `/v1/${target}`,
  body,
  status,
  because,
  ...more,
});

/** Malformed requests to the paths for logins, wrapped responses and rate limits. */
export const access: readonly HostileCase[] = [
  ...inheritedNames.flatMap((name) => [
    post(`auth/${name}/login`, {}, 404, 'no method is inherited', { token: 'none' }),
    post(`auth/token/create/${name}`, {}, 400, 'no role is inherited', { says: /unknown role/ }),
    post(`sys/auth/x-${name}`, { type: name }, 400, 'no type of method is inherited'),
    post('sys/wrapping/unwrap', { token: name }, 400, 'no answer is inherited', { token: 'none' }),
    post('auth/token/roles/r', { token_type: name }, 400, 'no type of token is inherited'),
  ]),
  ...['b.', 'b.AAAA', `b.${'A'.repeat(200)}`, `b.${'A'.repeat(6000)}`, 's.', 'hvb.AAAA'].map((token) =>
    post('sys/wrapping/lookup', { token }, 400, 'the shape of a token does not make it a wrapping token', { token: 'none' }),
  ),
  ...['b.AAAA', `b.${'A'.repeat(200)}`, `b.${'A'.repeat(5000)}`].map((token) =>
    post('transit/encrypt/k', { plaintext: 'AAAA' }, 403, 'the shape of a token does not make it a batch token', {
      token: 'none',
      headers: [['X-Service-Token', token]],
    }),
  ),
  post('sys/wrapping/unwrap', { token: '«root»' }, 400, 'a root token wraps nothing', { token: 'none' }),
  post('sys/wrapping/unwrap', { token: ['a'] }, 400, 'a list instead of a token', { token: 'none', says: /expected a string/ }),
  post('sys/wrapping/unwrap', {}, 400, 'an empty token', { token: 'none', says: /missing wrapping token/ }),
  post('sys/wrapping/unwrap', { token: 'x'.repeat(60_000) }, 400, 'a long text instead of a token', { token: 'none' }),
  post('sys/wrapping/unwrap', { token: 'x'.repeat(70_000) }, 413, 'a body beyond the anonymous limit is not read', {
    token: 'none',
  }),
  post('auth/token/login', {}, 403, 'the token method has no login', { token: 'none' }),
  post('auth/token/users/amy', { password: 'p' }, 404, 'nor users'),
  post('sys/auth/token', { type: 'userpass' }, 400, 'auth/token is in use', { says: /already in use/ }),
  post('sys/auth/a%20b', { type: 'userpass' }, 400, 'an invalid path of an auth method'),
  post('sys/auth/a:b', { type: 'userpass' }, 400, 'an invalid path of an auth method'),
  post('sys/auth/m', { type: 'userpass', config: 'x' }, 400, 'config is not an object'),
  post('sys/auth/m', { type: 'userpass', config: { max_lease_ttl: -1 } }, 400, 'a negative duration'),
  post('auth/token/roles/a%20b', {}, 400, 'an invalid role name'),
  post('auth/token/roles/r', { token_bound_cidrs: ['10.0.0.0/99'] }, 400, 'an invalid CIDR block'),
  post('auth/token/roles/r', { allowed_policies: [{}] }, 400, 'invalid policy names'),
  post('auth/token/create', { type: 'batch', policies: ['a'], period: '1h' }, 400, 'a batch token with a period'),
  post('sys/quotas/rate-limit/q', { rate: 0 }, 400, 'a rate of 0'),
  post('sys/quotas/rate-limit/q', { rate: -1 }, 400, 'a negative number'),
  post('sys/quotas/rate-limit/q', { rate: 'many' }, 400, 'no number'),
  post('sys/quotas/rate-limit/q', { rate: 1, path: 'nowhere/' }, 400, 'a path without a mount'),
  post('sys/quotas/rate-limit/q', { rate: 1, interval: '1000000h' }, 400, 'an interval beyond a year'),
  post('sys/tools/random/seven', {}, 400, 'not a number of bytes'),
  post('sys/tools/random/0', {}, 400, 'no bytes'),
  post('sys/tools/hash/md5', { input: '' }, 400, 'an unknown hash'),
];
