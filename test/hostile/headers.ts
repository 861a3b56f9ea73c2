import type { HostileCase } from './case.ts';

const get = (headers: HostileCase['headers'], status: number, because: string, more: Partial<HostileCase> = {}): HostileCase => ({
  method: 'GET',
  target: '/v1/transit/keys/k',
  token: 'none',
  ...(headers && { headers }),
  status,
  because,
  ...more,
});

const denied = { says: /"permission denied"/ } as const;

const tokens: readonly HostileCase[] = [
  get([['X-Service-Token', '«root»']], 200, 'the header of this service'),
  get([['X-Vault-Token', '«root»']], 200, 'the header that existing clients send'),
  get([['x-sErViCe-ToKeN', '«root»']], 200, 'header names are case-insensitive'),
  get([['Authorization', 'Bearer «root»']], 200, 'the header of HTTP'),
  get([['Authorization', 'bearer «root»']], 200, 'the scheme is case-insensitive'),
  get([['Authorization', 'Basic «root»']], 403, 'another scheme', denied),
  get([['Authorization', 'Bearer']], 403, 'a scheme without a token', denied),
  get([['Authorization', 'Bearer «root» x']], 403, 'text after the token', denied),
  get([['Authorization', '«root»']], 403, 'no scheme', denied),
  get(
    [
      ['Authorization', 'Bearer «limited»'],
      ['X-Service-Token', '«root»'],
    ],
    200,
    'the token header wins',
  ),
  get(
    [
      ['Authorization', 'Bearer «root»'],
      ['X-Service-Token', 's.wrong'],
    ],
    403,
    'the token header wins',
    denied,
  ),
  get(
    [
      ['X-Vault-Token', '«root»'],
      ['X-Service-Token', 's.wrong'],
    ],
    403,
    'X-Service-Token wins',
    denied,
  ),
  get(
    [
      ['X-Vault-Token', 's.wrong'],
      ['X-Service-Token', '«root»'],
    ],
    200,
    'X-Service-Token wins',
  ),
  get(
    [
      ['X-Vault-Token', '«root»'],
      ['X-Service-Token', ''],
    ],
    200,
    'an empty header counts as absent',
  ),
  get(
    [
      ['X-Service-Token', '«root»'],
      ['X-Service-Token', '«root»'],
    ],
    200,
    'a repeated token counts once',
  ),
  get(
    [
      ['X-Service-Token', '«root»'],
      ['X-Service-Token', 's.other'],
    ],
    400,
    'two tokens are refused',
    { says: /repeated with different tokens/ },
  ),
  get([['X-Service-Token', '«root», s.other']], 400, 'a list of tokens is refused', { says: /repeated with different tokens/ }),
  get([['X-Service-Token', '']], 403, 'an empty token', denied),
  get([['X-Service-Token', '   ']], 403, 'a blank token', denied),
  get([['X-Service-Token', 's.']], 403, 'only the prefix of a token', denied),
  get([['X-Service-Token', 'root']], 403, 'the name of a policy', denied),
  get([['X-Service-Token', '__proto__']], 403, 'an inherited name', denied),
  get([['X-Service-Token', '../../etc/passwd']], 403, 'a path', denied),
  get([['X-Service-Token', '%00']], 403, 'an encoded NUL', denied),
  get([['X-Service-Token', '«root»x']], 403, 'an extra character', denied),
  get([['X-Service-Token', 's.\u00e4\u00f6\u00fc']], 403, 'bytes beyond ASCII', denied),
  get([['X-Service-Token', 'b.AAAAAQ']], 403, 'the shape of another kind of token', denied),
  get([['X-Service-Token', `s.${'a'.repeat(12_000)}`]], 403, 'a long token', denied),
  get([['X-Service-Token', `s.${'a'.repeat(20_000)}`]], 431, 'a head over 16 KiB'),
  get([['Cookie', 'token=«root»']], 403, 'a token in a cookie is ignored', denied),
  get([['X-Forwarded-For', '127.0.0.1']], 403, 'a forwarded address gives no right', denied),
  get([], 403, 'a token in the query is ignored', { ...denied, target: '/v1/transit/keys/k?token=«root»' }),
];

const others: readonly HostileCase[] = [
  get([['X-Vault-Namespace', 'team']], 404, 'only the root namespace exists', { token: 'root', says: /namespace not found/ }),
  get([['X-Service-Namespace', 'team']], 404, 'only the root namespace exists', { token: 'root', says: /namespace not found/ }),
  get([['X-Vault-Namespace', '../root']], 404, 'only the root namespace exists', { token: 'root', says: /namespace not found/ }),
  get([['X-Vault-Namespace', 'team']], 404, 'without a token too', { says: /namespace not found/ }),
  get([['X-Vault-Namespace', 'root']], 200, 'the root namespace by name', { token: 'root' }),
  get([['X-Vault-Namespace', '/']], 200, 'the root namespace', { token: 'root' }),
  get([['X-Vault-Namespace', 'team']], 400, 'health knows no namespaces', {
    target: '/v1/sys/health',
    says: /unavailable in namespaces/,
  }),
  get([['X-Vault-Wrap-TTL', '60']], 200, 'a secret is never returned in clear if wrapping was requested', {
    token: 'root',
    says: /"data":null,"wrap_info":\{"token":"s\./,
  }),
  get([['X-Service-Wrap-TTL', '1m']], 200, 'under either name', { token: 'root', says: /"ttl":60,/ }),
  get([['X-Service-Wrap-TTL', '0.1s']], 400, 'less than a second is refused', { token: 'root', says: /wrapping/ }),
  get([['X-Service-Wrap-TTL', '60, 0']], 400, 'two durations are refused', { token: 'root', says: /wrapping/ }),
  get([['X-Service-Wrap-TTL', '1000d']], 400, 'longer than the maximum TTL', { token: 'root', says: /wrapping TTL is at most/ }),
  get([['X-Vault-Wrap-TTL', 'soon']], 400, 'an invalid duration', { token: 'root', says: /wrapping/ }),
  get([['X-Vault-Wrap-TTL', '-1']], 400, 'a negative duration', { token: 'root', says: /wrapping/ }),
  get([['X-Vault-Wrap-TTL', '0s']], 200, 'a duration of 0 does not wrap', { token: 'root' }),
  get([['X-HTTP-Method-Override', 'DELETE']], 200, 'a method override is ignored', { token: 'root' }),
  get([['If-None-Match', '*']], 200, 'conditional headers are ignored', { token: 'root' }),
  get([['Range', 'bytes=0-1']], 200, 'ranges are ignored', { token: 'root' }),
  get(
    [
      ['Upgrade', 'websocket'],
      ['Sec-WebSocket-Key', 'AAAA'],
    ],
    200,
    'upgrades are ignored',
    { token: 'root' },
  ),
  get(
    [
      ['Upgrade', 'h2c'],
      ['HTTP2-Settings', 'AAAA'],
    ],
    200,
    'upgrades are ignored',
    { token: 'root' },
  ),
  get([['Origin', 'https://example.com']], 200, 'an Origin header is ignored', { token: 'root' }),
  get([['Expect', 'a miracle']], 417, 'an unknown expectation', { token: 'root' }),
  get([['Content-Type', 'application/merge-patch+json']], 405, 'PATCH of the known form, where nothing is patched', {
    token: 'root',
    method: 'PATCH',
  }),
  get([['Transfer-Encoding', 'gzip']], 400, 'an unsupported content coding', {
    token: 'root',
    method: 'POST',
    target: '/v1/transit/random',
  }),
];

const head = (line: string, ...headers: string[]): string =>
  [line, 'Host: a', 'X-Service-Token: «root»', 'Connection: close', ...headers, '', ''].join('\r\n');
const posted = (...headers: string[]): string => head('POST /v1/transit/random HTTP/1.1', ...headers);
const listed = (...headers: string[]): string => head('LIST /v1/transit/keys HTTP/1.1', ...headers);
const plain = 'GET /v1/transit/keys/k HTTP/1.1\r\nHost: a\r\nX-Service-Token: «root»\r\n';

const raw = (
  bytes: string | Buffer,
  status: HostileCase['status'],
  because: string,
  more: Partial<HostileCase> = {},
): HostileCase => ({
  method: 'raw',
  target: JSON.stringify(bytes.toString('latin1').slice(0, 80)),
  raw: bytes,
  status,
  because,
  ...more,
});

const framing: readonly HostileCase[] = [
  raw(posted('Transfer-Encoding: chunked').concat('b\r\n{"bytes":4}\r\n0\r\n\r\n'), 200, 'a body in chunks', { says: /=="/ }),
  raw(posted('Transfer-Encoding: chunked').concat('1\r\n{\r\n1\r\n}\r\n0\r\n\r\n'), 200, 'a body in small chunks'),
  raw(posted('Transfer-Encoding: chunked').concat('0\r\n\r\n'), 200, 'no chunks are an empty body'),
  raw(posted('Transfer-Encoding: chunked').concat('zz\r\n{}\r\n0\r\n\r\n'), 400, 'a length that is not a number'),
  raw(posted('Transfer-Encoding: chunked').concat('-1\r\n{}\r\n0\r\n\r\n'), 400, 'a negative length'),
  raw(posted('Transfer-Encoding: chunked').concat('ffffffffffffffffff\r\n{}\r\n0\r\n\r\n'), 400, 'a length beyond all integers'),
  raw(posted('Transfer-Encoding: chunked').concat('2\r\n{}X0\r\n\r\n'), 400, 'a chunk longer than announced'),
  raw(
    posted('Transfer-Encoding: chunked').concat(`2;${'x'.repeat(40_000)}\r\n{}\r\n0\r\n\r\n`),
    413,
    'an endless chunk extension',
  ),
  raw(posted('Transfer-Encoding: chunked', 'Content-Length: 2').concat('2\r\n{}\r\n0\r\n\r\n'), 400, 'two framings'),
  raw(posted('Transfer-Encoding: gzip, chunked').concat('2\r\n{}\r\n0\r\n\r\n'), 400, 'another coding beside chunked'),
  raw(posted('Transfer-Encoding: chunked, chunked').concat('0\r\n\r\n'), 400, 'chunks within chunks'),
  raw(posted('Transfer-Encoding : chunked').concat('0\r\n\r\n'), 400, 'a blank before the colon'),
  raw(posted('Transfer-Encoding: xchunked').concat('0\r\n\r\n'), 400, 'an unknown coding'),
  raw(posted('Content-Length: 2', 'Content-Length: 3').concat('{} '), 400, 'two lengths'),
  raw(posted('Content-Length: 2, 3').concat('{} '), 400, 'a list of lengths'),
  raw(posted('Content-Length: -2').concat('{}'), 400, 'a negative length'),
  raw(posted('Content-Length: +2').concat('{}'), 400, 'a length with a sign'),
  raw(posted('Content-Length: 0x2').concat('{}'), 400, 'a hexadecimal length'),
  raw(posted('Content-Length: 2.0').concat('{}'), 400, 'a length that is not an integer'),
  raw(posted('Content-Length: two').concat('{}'), 400, 'a length in words'),
  raw(posted('Content-Length: ').concat('{}'), 400, 'an empty length'),
  raw(posted('Content-Length: 99999999999999999999999').concat('{}'), 400, 'a length beyond all integers'),
  raw(posted('Content-Length: 33554433'), 413, 'a length over the limit, before a byte of it came', { ends: 'when answered' }),
  raw(posted('Content-Length: 10000', 'Expect: 100-continue'), 100, 'gone after 100 Continue', {
    followedBy: [400],
    ends: 'when answered',
  }),
  raw(posted('Content-Length: 33554433', 'Expect: 100-continue'), 413, 'refused instead of 100 Continue', {
    ends: 'when answered',
  }),
  raw(posted('Content-Length: 100').concat('{}'), 400, 'fewer bytes than announced', { ends: 'at once' }),
  raw('GET /v1/transit/keys/k HTTP/1.1\r\nX-Service-Token: «root»\r\nConnection: close\r\n\r\n', 400, 'no Host'),
  raw('GET /v1/transit/keys/k HTTP/1.0\r\nX-Service-Token: «root»\r\n\r\n', 200, 'HTTP/1.0 needs no Host'),
  raw(head('GET /v1/transit/keys/k HTTP/1.1', 'Host: b'), 400, 'two Hosts'),
  raw(head('GET /v1/transit/keys/k HTTP/3.7'), 400, 'an unknown HTTP version'),
  raw(head('GET /v1/transit/keys/k'), 400, 'no version'),
  raw(head('GET /v1/transit/keys/k HTTP/1.1 x'), 400, 'text after the version'),
  raw(head('GET  /v1/transit/keys/k HTTP/1.1'), 200, 'two blanks, which a lenient parser may allow (RFC 9112 §3)'),
  raw(head('GET /v1/transit/keys/k\tx HTTP/1.1'), 400, 'a tab in the target'),
  raw(head('GET /v1/transit/keys/k\0 HTTP/1.1'), 400, 'a NUL in the target'),
  raw(head('GET /v1/transit/keys/\u00fc HTTP/1.1'), 400, 'an unencoded non-ASCII byte in the target'),
  raw(head('GET /v1/transit/keys/a b HTTP/1.1'), 400, 'an unencoded blank in the target'),
  raw(head('FROB /v1/transit/keys/k HTTP/1.1'), 405, 'an unknown method'),
  raw(head('get /v1/transit/keys/k HTTP/1.1'), 405, 'methods are case-sensitive'),
  raw(head('LISTS /v1/transit/keys HTTP/1.1'), 405, 'a method that only starts like a known one'),
  raw(head('G(T /v1/transit/keys/k HTTP/1.1'), 400, 'a method that is not a token'),
  raw('CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: a\r\n\r\n', 405, 'no tunnel'),
  raw('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'the preface of HTTP/2'),
  raw(Buffer.from('16030100c8010000c40303', 'hex'), 400, 'TLS on a plain port'),
  raw(Buffer.alloc(2_000, 0xff), 400, 'noise'),
  raw('\r\n\r\n', 'closed', 'nothing but empty lines', { ends: 'at once' }),
  raw(`${plain}Connection: close\r\nNo colon here\r\n\r\n`, 400, 'a header without a colon'),
  raw(`${plain}Connection: close\r\n: no name\r\n\r\n`, 400, 'a header without a name'),
  raw(`${plain}Connection: close\r\nX A: b\r\n\r\n`, 400, 'a blank in the name of a header'),
  raw(`${plain}Connection: close\r\nX-A: b\r\n folded\r\n\r\n`, 400, 'a folded header'),
  raw(`${plain}Connection: close\r\nX-A: b\0c\r\n\r\n`, 400, 'a NUL in a header'),
  raw(`${plain}Connection: close\r\nX-A: b\nX-B: c\r\n\r\n`, 400, 'a bare line feed'),
  raw(`${plain}Connection: close\r\nX-A: b\rX-B: c\r\n\r\n`, 400, 'a bare carriage return'),
  raw(`${plain}Connection: close\r\n${'a: b\r\n'.repeat(4_000)}\r\n`, 431, 'four thousand headers'),
  raw(`${plain}Connection: close\r\nX-A: ${'b'.repeat(17_000)}\r\n\r\n`, 431, 'one header over the limit'),
];

const lists: readonly HostileCase[] = [
  raw(listed(), 200, 'LIST by hand'),
  raw(`\r\n${listed()}`, 200, 'an empty line before a request is allowed'),
  raw(listed('Content-Length: 0'), 200, 'an empty body counts as absent'),
  raw(listed('Content-Length: 2').concat('{}'), 400, 'a LIST with a body'),
  raw(
    listed('Content-Length: 40').concat('GET /v1/transit/keys/k HTTP/1.1\r\n'),
    400,
    'a request smuggled in the body of a LIST',
  ),
  raw(listed('Transfer-Encoding: chunked').concat('0\r\n\r\n'), 400, 'a LIST with chunks'),
  raw(listed('Transfer-Encoding: identity'), 400, 'a LIST with a transfer coding gets one response'),
  raw(listed('Host: b'), 400, 'two Hosts'),
  raw('LIST /v1/transit/keys HTTP/1.1\r\nConnection: close\r\nX-Service-Token: «root»\r\n\r\n', 400, 'no Host'),
  raw(listed('No colon here'), 400, 'a header without a colon'),
  raw(listed('X A: b'), 400, 'a blank in the name of a header'),
  raw(listed('X-A: b\r\n folded'), 400, 'a folded header'),
  raw(listed(`X-A: ${'b'.repeat(17_000)}`), 431, 'a head over its limit'),
  raw(head('LIST /v1/transit/../transit/keys HTTP/1.1'), 400, 'a LIST with dot segments'),
  raw(head('LIST /v1/transit/keys HTTP/2.0'), 400, 'an unknown HTTP version'),
  // The first response closes the connection, so the server ignores the bytes after it (RFC 9112 §9.6).
  raw(listed().concat(listed()), 200, 'a LIST after a LIST'),
  raw(`${plain}\r\n${listed()}`, 200, 'a LIST after a request that is still open', { followedBy: [400] }),
];

export const headers: readonly HostileCase[] = [...tokens, ...others, ...framing, ...lists];
