/** The text of a key in the reference, in Markdown. `reload`: SIGHUP applies a change; a change of any other key needs a restart. */
interface KeyDoc {
  readonly about: string;
  readonly reload?: boolean;
}

const restart = (about: string): KeyDoc => ({ about });
const reload = (about: string): KeyDoc => ({ about, reload: true });
const staticKeyDocs = (whose: string) => ({
  key_id: restart(`Name of ${whose}, stored beside what it encrypts; 1 to 128 characters`),
  key_file: restart(`File with ${whose}: 32 bytes, raw, base64 or hex; outside \`data_dir\``),
  key_env: restart(`Environment variable with ${whose}; exactly one of \`key_file\` and \`key_env\` is set`),
});
const under = (section: string, docs: Readonly<Record<string, KeyDoc>>): Readonly<Record<string, KeyDoc>> =>
  Object.fromEntries(Object.entries(docs).map(([key, doc]) => [`${section}.${key}`, doc]));

/** Every key of the configuration. `[]` stands for a position in a list, `*` for a name that the operator chooses. */
export const keyDocs: Readonly<Record<string, KeyDoc>> = {
  node_id: restart('Name of this node, unique in the cluster; 1 to 64 letters, digits, `_`, `.` and `-`'),
  data_dir: restart('Folder of the log, the records and the node’s identity; mode 0700; one process at a time'),
  api_addr: restart('URL of this node for clients, reported by `sys/leader`; default: the first listener'),
  cluster_addr: restart('`host:port` that the other nodes connect to; required in a cluster'),
  cluster_listen: restart(
    '`host:port` where the cluster port listens; default: the host of the first listener, the port of `cluster_addr`',
  ),
  cluster_heartbeat_interval: restart(
    'Interval of heartbeats to the active node; the same on all nodes; a standby serves for twice as long',
  ),
  retry_join: restart('URLs of members; a new node asks them in turn until one admits it'),
  'retry_join[]': restart('URL of a member'),
  retry_join_ca_file: restart('PEM file of the CA that issued the certificates of those URLs; default: the system’s CAs'),
  performance_standby: restart('Whether this node answers reads while it is a standby; `false`: it forwards everything'),
  non_voter: restart('Whether this node never votes: it stores and serves, and does not count for a quorum'),
  listeners: restart('Addresses for clients; at least one'),
  ...under('listeners[]', {
    address: restart('`host:port`; an IPv6 host in brackets; port 0 lets the system choose'),
    tls: restart('Certificate of this listener; either this or `tls_disable: true`'),
    'tls.cert_file': reload(
      'PEM file of the certificate, followed by its intermediate certificates; the file is read again on SIGHUP',
    ),
    'tls.key_file': reload('PEM file of the private key; the file is read again on SIGHUP'),
    'tls.client_ca_file': reload(
      'PEM file of one or more authorities. If set, a client must present a certificate that one of them issued, or the handshake ends; ' +
        'a token is needed all the same. The file is read again on SIGHUP; setting or removing the key needs a restart',
    ),
    'tls.min_version': reload('Oldest TLS version that is accepted'),
    tls_disable: restart('Serve without TLS: on loopback, or behind a proxy on the same machine'),
    max_request_size: restart('Largest body of a request with a valid token'),
    headers_timeout: restart('How long a client may take to send the headers of a request'),
  }),
  telemetry: restart('Metrics and probes'),
  'telemetry.address': restart(
    '`host:port` of `/metrics` and `/v1/sys/health` without TLS and token, also while sealed; default: none',
  ),
  'telemetry.prefix': restart('First part of the names of metrics'),
  seal: restart('Source of the key that decrypts the root key'),
  'seal.type': restart('`shamir`: shares at each start; `static`: a key from a file or an environment variable'),
  ...under('seal', staticKeyDocs('the seal key')),
  'seal.previous': restart('The static key before this one, while the root key is encrypted again'),
  ...under('seal.previous', staticKeyDocs('the previous seal key')),
  raft: restart('Consensus and its log'),
  ...under('raft', {
    heartbeat: restart('Interval of the leader’s heartbeats to the followers; at most a third of `election_timeout`'),
    election_timeout: restart('How long a follower waits for a leader before it asks for votes; it waits up to twice as long'),
    lease: restart(
      'How long a leader answers reads after a quorum confirmed it; 0 asks a quorum for each read; three heartbeats if it is not set',
    ),
    snapshot_threshold: restart('Number of log entries after which a snapshot replaces them; at least 100'),
    trailing_logs: restart('Number of entries kept behind a snapshot; at most half of `snapshot_threshold`'),
    disk_reserve: restart('Free space below which this node refuses writes; 0 turns the check off'),
  }),
  barrier_rotation: restart('When the active node starts a new key term of the barrier by itself'),
  'barrier_rotation.max_operations': restart('After this many encrypted values'),
  'barrier_rotation.interval': restart('After this time; 0: never'),
  pkcs11_libraries: restart('PKCS#11 libraries for managed keys; the API can use no others'),
  'pkcs11_libraries[].name': restart('Name that managed keys use; 1 to 64 letters, digits, `_` and `-`'),
  'pkcs11_libraries[].path': restart('Absolute path of the library'),
  audit: restart('Audit devices; at most 8, each with its own name and target. SIGHUP reopens their files'),
  'audit[].type': restart('`file` or `stdout`'),
  'audit[].name': restart('Name of the device in logs and metrics; 1 to 64 letters, digits, `_` and `-`'),
  'audit[].path': restart('Absolute path of the file; type `file` only'),
  'audit[].mode': restart('Mode of the file, `"0600"` to `"0664"` with a 6 for the owner; type `file` only'),
  'audit[].sync': restart('Whether each entry is synced to the disk before the answer; type `file` only'),
  ciphertext_prefix: restart(
    'Prefix of the ciphertexts of mounts that set none; `vault` for clients that require it; 1 to 32 lowercase letters and digits',
  ),
  trusted_proxies: restart('CIDR blocks of proxies whose `X-Forwarded-For` is trusted'),
  'trusted_proxies[]': restart('A CIDR block such as `10.0.0.0/8`'),
  jwks_files: restart('Files with keys for `jwt` logins, by the name that the API uses'),
  'jwks_files.*': restart('Path of a JWKS file'),
  limits: restart('Limits of concurrent work on this node'),
  ...under('limits', {
    reads: restart('Requests in flight that change nothing'),
    changes: restart('Requests in flight that change something'),
    logins: restart('Requests in flight without a token'),
    waiting: restart('Requests that may wait for their turn'),
    body_memory: restart('Memory for bodies; at least the largest `max_request_size`'),
    connections: restart('Connections of all listeners; lowered to fit the limit of open files'),
  }),
  tokens: restart('Lifetimes of tokens'),
  'tokens.default_ttl': restart('TTL of tokens that request none; at most `max_ttl`'),
  'tokens.max_ttl': restart('Maximum TTL of tokens without a period'),
  license: restart('Adds the field `license` to `sys/health` of the active node; nothing depends on it'),
  'license.expiry_time': restart('Time in RFC 3339 that the field reports; after it, `terminated` is true'),
  log: restart('The log on stderr'),
  'log.level': reload('Least severe level that is logged'),
  'log.format': restart('`json`: one object a line; `pretty`: colored text'),
};
