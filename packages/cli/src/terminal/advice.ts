/** A reason of a failed connection, and what to do about it. */
const connectionAdvice: readonly (readonly [reason: RegExp, advice: string])[] = [
  [
    /ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG|ERR_SSL_HTTP_REQUEST/,
    'the server at this address does not use TLS: use http:// instead of https://, or another port',
  ],
  [
    /ALERT_(?:CERTIFICATE_REQUIRED|UNKNOWN_CA|BAD_CERTIFICATE)/,
    'the server asks for a certificate of the client: use --client-cert and --client-key with one of its authority',
  ],
  [
    /UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|INVALID_CA/,
    "the server's certificate is not signed by a trusted authority: name the authority with --ca-cert or TRANSITD_CACERT",
  ],
  [
    /CERT_HAS_EXPIRED|CERT_NOT_YET_VALID/,
    "the server's certificate is not valid now: check the clocks, or replace the certificate",
  ],
  [
    /ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH/,
    "the server's certificate does not name this host: use a name of the certificate",
  ],
  [/ENOTFOUND|EAI_AGAIN/, 'the host name cannot be resolved: check the address'],
  [/ECONNREFUSED/, 'nothing listens there: check the address, and whether the server runs'],
];

/** Matches the end of a connection in which a server with TLS received plain HTTP, or a certificate of another authority. */
const closedWithoutAnswer = /ECONNRESET|UND_ERR_SOCKET|HPE_|other side closed|socket hang up/;

/** Returns what to do about a request without an answer; empty if the reason is not known. @param message - of the error */
export function adviceForConnection(message: string, address: string): string {
  const known = connectionAdvice.find(([reason]) => reason.test(message))?.[1];
  if (known !== undefined) return known;
  if (!closedWithoutAnswer.test(message)) return '';
  return address.startsWith('http://')
    ? 'if the server uses TLS, use https:// instead of http://'
    : 'if the server asks for a certificate of the client, use --client-cert and --client-key with one of its authority';
}

/** Returns what to do about a refusal; empty if there is nothing to say. */
export function adviceForRefusal({ status, message }: { readonly status: number; readonly message: string }): string {
  if (status === 400 && /HTTP request to an HTTPS server/.test(message))
    return 'the server uses TLS: use https:// instead of http://';
  if (/^transitd is sealed$/.test(message))
    return 'unseal the node with transitd operator unseal, or use the address of another node';
  if (/^unless_used_within: /.test(message))
    return 'ask for another time with --unless-used-within, or do not ask with --unless-used-within 0';
  if (/^transitd is not initialized$/.test(message)) return 'initialize the cluster with transitd operator init, or join one';
  return '';
}

/** The error of a request that was refused because there is no token. */
export const noTokenAdvice = 'there is no token: set TRANSITD_TOKEN, or run transitd login';
