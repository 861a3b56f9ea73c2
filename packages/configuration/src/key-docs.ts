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

/** The keys of one seal. */
const sealDocs: Readonly<Record<string, KeyDoc>> = {
  type: restart(
    '`shamir`: shares at each start; `static`: a key from a file or an environment variable; `transit`: a key in another cluster; ' +
      '`pkcs11`: a key in a PKCS#11 token; `awskms`, `azurekeyvault`, `gcpckms`: a key of a cloud provider ([seals](seals.md))',
  ),
  name: restart(
    'Name of a seal with a provider, stored in the records; the same on all nodes. It is needed only to move between two seals of one ' +
      'type: 1 to 64 letters, digits, `_` and `-`',
  ),
  ...staticKeyDocs('the seal key'),
  key_id: restart(
    'Name of the static seal key, stored beside what it encrypts, 1 to 128 characters; for `pkcs11`, CKA_ID of the key in hex',
  ),
  library: restart('Name of an entry of `pkcs11_libraries`'),
  slot: restart('Slot of the token; at least one of `slot` and `token_label`'),
  token_label: restart('Label of the token; 1 to 32 characters'),
  key_label: restart('Label of the AES key; at least one of `key_label` and `key_id`; 1 to 100 characters'),
  pin_file: restart('File with the PIN of the token, outside `data_dir`'),
  pin_env: restart('Environment variable with the PIN; exactly one of `pin_file` and `pin_env` is set'),
  previous: restart('The static key before this one, while the root key is encrypted again'),
  ...under('previous', staticKeyDocs('the previous seal key')),
  address: restart('URL of the cluster with the key: transitd, Vault or OpenBao; https, except on loopback; not this cluster'),
  mount_path: restart('Mount of its transit engine; at most 100 characters'),
  key_name: restart(
    'Key that encrypts the unseal key: `aes256-gcm96` or `chacha20-poly1305`, not derived; for `azurekeyvault`, an RSA key',
  ),
  namespace: restart('Namespace of the mount, for Vault Enterprise and OpenBao'),
  token_file: restart('File with a token for that cluster, read before each request; outside `data_dir`'),
  token_env: restart('Environment variable with the token; exactly one of `token_file` and `token_env` is set'),
  disable_renewal: restart('Whether something else renews the token; otherwise this node renews it at half of its lifetime'),
  region: restart('Region of the key, such as `eu-central-1`; for `gcpckms`, the location of the key ring, such as `global`'),
  kms_key_id: restart('Id, ARN or alias of a symmetric key of AWS KMS'),
  endpoint: restart('URL of AWS KMS; https, except on loopback; default: that of the region'),
  credentials_file: restart(
    'For `awskms`, a shared credentials file; for `gcpckms`, the JSON key of a service account; read for each request of a credential; ' +
      'outside `data_dir`; default: the environment, the container or the instance',
  ),
  profile: restart('Profile in `credentials_file`; default: `AWS_PROFILE`, otherwise `default`'),
  role_arn: restart(
    'ARN of a role that the node assumes: by `web_identity_token_file`, otherwise by the credentials that it finds',
  ),
  role_session_name: restart('Name of the sessions in that role; default: `transitd`'),
  web_identity_token_file: restart(
    'File with a token that the role trusts, read for each request of credentials; outside `data_dir`',
  ),
  vault_name: restart('Name of the key vault of Azure'),
  tenant_id: restart('Tenant of the application that uses the key vault; required with a client secret'),
  client_id: restart('Id of that application, or of a managed identity that the user assigned; required with a client secret'),
  client_secret_file: restart('File with the secret of that application; outside `data_dir`; default: the managed identity'),
  client_secret_env: restart('Environment variable with the secret of that application; at most one of the two is set'),
  environment: restart('Cloud of Azure'),
  project: restart('Id of the project of Google Cloud with the key'),
  key_ring: restart('Key ring of the key'),
  crypto_key: restart('Name of a symmetric key in that key ring'),
  tls: restart('TLS of the connections to that cluster'),
  'tls.ca_file': restart('PEM file of the CA that issued its certificate; default: the system’s CAs'),
  'tls.cert_file': restart('PEM file of a client certificate, with `key_file`'),
  'tls.key_file': restart('PEM file of the private key of the client certificate; outside `data_dir`'),
  'tls.server_name': restart('Name that its certificate must have, instead of the host of `address`'),
  'tls.skip_verify': restart('Accept any certificate: whoever answers gets the token and the key; only for experiments'),
};

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
  feature_level_raise_after: restart(
    'How long all members must have supported a higher feature level before the active node raises it by itself, which ends the possibility to go back to an earlier release; `0s`: only an operator raises it',
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
    'tls.cert_file': reload('PEM file of the certificate, followed by its intermediate certificates'),
    'tls.key_file': reload('PEM file of the private key'),
    'tls.client_ca_file': reload(
      'PEM file of root authorities, and of others that roles of `cert` name. If set, clients are asked for a certificate below one of ' +
        'the roots, and no session is resumed; a token is needed all the same. The file is read again on SIGHUP; setting or removing the ' +
        'key needs a restart',
    ),
    'tls.client_crl_file': reload(
      'PEM file with the revocation list of every authority in the chains, roots included. While a list is missing or older than its ' +
        '`nextUpdate`, no certificate of its authority is accepted; the log warns from six hours before',
    ),
    'tls.client_auth': restart(
      '`required`: a handshake without a verified certificate ends; `optional`: its connection counts as one without. Default: `required`',
    ),
    'tls.min_version': reload('Oldest TLS version that is accepted'),
    tls_disable: restart('Serve without TLS: on loopback, or behind a proxy on the same machine'),
    max_request_size: restart('Largest body of a request with a valid token'),
    headers_timeout: restart('How long a client may take to send the headers of a request'),
  }),
  ui: restart('Whether the listeners serve the [console](console.md) at `/ui/`'),
  telemetry: restart('Metrics and probes'),
  'telemetry.address': restart(
    '`host:port` of `/metrics` and `/v1/sys/health` without TLS and token, also while sealed; default: none',
  ),
  'telemetry.prefix': restart('First part of the names of metrics'),
  tracing: restart('Traces of requests, sent to a collector of OpenTelemetry'),
  'tracing.endpoint': restart(
    'URL of the collector for OTLP over HTTP, such as `http://127.0.0.1:4318/v1/traces`; default: no traces',
  ),
  'tracing.ca_file': restart('PEM file of the CA that issued the certificate of that URL; default: the system’s CAs'),
  'tracing.sample_one_in': restart(
    'One of so many requests is traced; a request whose caller sampled it is traced too, up to 200 a second',
  ),
  seal: restart('Source of the key that decrypts the root key'),
  ...under('seal', sealDocs),
  migrate_seal_from: restart(
    'The seal before this one, of another type or `name`, while the cluster moves to `seal`; the same keys ([seals](seals.md#migration))',
  ),
  storage: restart('Where the records are'),
  ...under('storage', {
    type: restart('`raft`: in `data_dir` of each node; `etcd`: in an etcd cluster, a **preview** ([etcd](etcd.md))'),
    endpoints: restart('URLs of members of the etcd cluster; https, except on loopback'),
    'endpoints[]': restart('URL such as `https://etcd-1.example:2379`'),
    prefix: restart('Path below which all keys are; one cluster must not have a prefix below that of another'),
    tls: restart('TLS of the connections to etcd'),
    'tls.ca_file': restart('PEM file of the CA that issued etcd’s certificates; default: the system’s CAs'),
    'tls.cert_file': restart('PEM file of a client certificate, with `key_file`'),
    'tls.key_file': restart('PEM file of the private key of the client certificate'),
    username: restart('User of etcd, with `password_file`'),
    password_file: restart('File with the password of that user; a line break at its end does not count'),
  }),
  raft: restart('Consensus and its log, if `storage.type` is `raft`'),
  ...under('raft', {
    heartbeat: restart('Interval of the leader’s heartbeats to the followers; at most a third of `election_timeout`'),
    election_timeout: restart('How long a follower waits for a leader before it asks for votes, and up to half as long again'),
    lease: restart(
      'How long a leader answers reads after a quorum confirmed it; 0 asks a quorum for each read; three heartbeats if it is not set',
    ),
    snapshot_threshold: restart(
      'Number of flushed log entries after which older ones are deleted; 64MiB of entries have the same effect; at least 100',
    ),
    trailing_logs: restart('Number of flushed entries that are kept, in at most 16MiB; at most half of `snapshot_threshold`'),
    disk_reserve: restart(
      'Free space below which this node refuses writes: this size or 5 % of the volume, whichever is smaller, but at least 48MiB; 0 turns the check off',
    ),
  }),
  barrier_rotation: restart('When the active node starts a new key term of the barrier by itself'),
  'barrier_rotation.max_operations': restart('After this number of encrypted values'),
  'barrier_rotation.interval': restart('After this time; 0 turns this off'),
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
  workers: restart(
    'Gateway threads that serve the HTTP API beside the main thread; `auto`: as many as fit the machine; on Linux only; 0 for none',
  ),
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
