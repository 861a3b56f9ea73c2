// A peer with Vault's API, built from recorded answers: enough of it to read keys from it and to import keys into it.
import { createDecipheriv, createPublicKey, generateKeyPairSync, type KeyObject, privateDecrypt } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PeerKey } from './peer-key.ts';

type Body = Readonly<Record<string, unknown>>;

/** A refusal with the status and the text of the peer. */
class Refusal extends Error {
  readonly status: number;
  constructor(status: number, text: string) {
    super(text);
    this.status = status;
  }
}

/** The format in which the peer reports errors that it treats as internal. */
const internal = (text: string): Refusal => new Refusal(500, `1 error occurred:\n\t* ${text}\n\n`);

export class StubPeer {
  readonly token = 's.peerTokenPeerTokenPeerToken';
  readonly keys = new Map<string, PeerKey>();
  readonly policies = new Map<string, string>();
  /** Path prefixes for which the token has no right. */
  readonly denied = new Set<string>();
  /** Called before a request is answered, for example to rotate a key during a move. */
  before: (method: string, path: string) => void = () => undefined;
  #wrapping: KeyObject | undefined;
  readonly #server: Server;
  url = '';

  constructor() {
    this.#server = createServer((request, response) => {
      void this.#answer(request).then(({ status, body }) => {
        response.writeHead(status, { 'Content-Type': 'application/json' });
        response.end(body === undefined ? '' : `${JSON.stringify(body)}\n`);
      });
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  put(key: PeerKey): PeerKey {
    this.keys.set(key.name, key);
    return key;
  }

  async #answer(request: IncomingMessage): Promise<{ status: number; body?: unknown }> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(Buffer.from(chunk));
    const url = new URL(request.url ?? '', 'http://peer');
    const path = decodeURIComponent(url.pathname).replace(/^\/v1\//, '');
    const method = url.searchParams.get('list') === 'true' ? 'LIST' : (request.method ?? '');
    const body: Body = chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString());
    try {
      if (path === 'sys/health') return { status: 200, body: health };
      const isDenied = [...this.denied].some((prefix) => path.startsWith(prefix));
      if (request.headers['x-vault-token'] !== this.token || isDenied) throw new Refusal(403, 'permission denied');
      this.before(method, path);
      const data = this.#handle(method, path, body);
      if (data === undefined) return { status: 204 };
      return {
        status: 200,
        body: {
          request_id: 'r',
          lease_id: '',
          renewable: false,
          lease_duration: 0,
          data,
          wrap_info: null,
          warnings: null,
          auth: null,
        },
      };
    } catch (error) {
      const refusal = error instanceof Refusal ? error : internal(error instanceof Error ? error.message : String(error));
      return { status: refusal.status, body: { errors: refusal.message === '' ? [] : [refusal.message] } };
    }
  }

  #handle(method: string, path: string, body: Body): object | undefined {
    const [first, ...rest] = path.split('/');
    if (path === 'sys/mounts') return mounts;
    if (path === 'sys/mounts/transit/tune') return undefined;
    if (path === 'sys/policies/acl') return { keys: ['default', ...this.policies.keys(), 'root'] };
    if (path.startsWith('sys/policies/acl/')) {
      const [, , name = ''] = rest;
      if (method === 'PUT') return void this.policies.set(name, String(body['policy']));
      const policy = this.policies.get(name);
      if (policy === undefined) throw new Refusal(404, '');
      return { name, policy };
    }
    if (first !== 'transit') throw new Refusal(404, `no handler for route "${path}". route entry not found.`);
    const [operation = '', name = '', action = ''] = rest;
    if (operation === 'keys' && name === '') return { keys: [...this.keys.keys(), 'import/'] };
    if (operation === 'wrapping_key')
      return { public_key: createPublicKey(this.#wrappingKey()).export({ type: 'spki', format: 'pem' }) };
    if (operation === 'keys') return this.#onKeys(method, name, action, body);
    if (operation === 'export') return this.#export(name, this.#key(action));
    if (operation === 'backup') return this.#backup(this.#key(name));
    if (operation === 'restore') return this.#restore(name, body);
    if (['encrypt', 'decrypt', 'sign', 'verify', 'hmac'].includes(operation))
      return this.#onData(operation, this.#key(name), body);
    throw new Refusal(404, 'unsupported path');
  }

  #key(name: string): PeerKey {
    const key = this.keys.get(name);
    if (key === undefined) throw new Refusal(400, 'encryption key not found');
    return key;
  }

  #onKeys(method: string, name: string, action: string, body: Body): object | undefined {
    if (action === 'import') {
      if (this.keys.has(name)) throw internal('the import path cannot be used with an existing key');
      const { ciphertext, hash_function: _, type, allow_rotation: __, ...settings } = body;
      const key = new PeerKey(name, String(type), settings);
      key.imported = true;
      this.put(key).add(this.#unwrapped(String(ciphertext)));
      return undefined;
    }
    const key = this.keys.get(name);
    if (key === undefined) throw new Refusal(method === 'GET' ? 404 : 400, method === 'GET' ? '' : 'invalid key name');
    if (action === 'import_version') return void key.add(this.#unwrapped(String(body['ciphertext'])));
    if (action === 'config') {
      // As in the peers, these two settings cannot be turned off again.
      const { exportable, allow_plaintext_backup: backup, ...others } = body;
      Object.assign(
        key.settings,
        others,
        exportable === true && { exportable },
        backup === true && { allow_plaintext_backup: backup },
      );
    }
    if (action === 'trim') key.settings.min_available_version = Number(body['min_available_version']);
    return keyData(key);
  }

  #export(kind: string, key: PeerKey): object {
    if (!key.settings.exportable) throw new Refusal(400, 'private key material is not exportable');
    const wanted = { 'encryption-key': /gcm|poly1305|rsa/, 'signing-key': /ed25519|ecdsa|rsa/, 'hmac-key': /./ }[kind];
    if (wanted?.test(key.type) !== true) throw new Refusal(400, `invalid export type: ${kind}`);
    const visible = key.versions.map((version, at) => [String(at + 1), key.exported(version)] as const);
    return { name: key.name, type: key.type, keys: Object.fromEntries(visible.slice(key.settings.min_decryption_version - 1)) };
  }

  #backup(key: PeerKey): object {
    if (!key.settings.exportable) throw internal('exporting is disallowed on the policy');
    if (!key.settings.allow_plaintext_backup) throw internal('plaintext backup is disallowed on the policy');
    return { backup: key.backup() };
  }

  #restore(name: string, { backup, force }: Body): undefined {
    if (this.keys.has(name) && force !== true) throw internal(`key "${name}" already exists`);
    this.put(PeerKey.restored(name, String(backup)));
  }

  #onData(operation: string, key: PeerKey, body: Body): object {
    const text = (name: string): string => String(body[name] ?? '');
    const bytes = (name: string): Buffer => Buffer.from(text(name), 'base64');
    const version = Number(body['key_version'] ?? 0) || key.latest;
    if (operation === 'encrypt') return { ciphertext: key.encrypt(bytes('plaintext'), { version, context: text('context') }) };
    if (operation === 'decrypt') return { plaintext: key.decrypt(text('ciphertext'), text('context')).toString('base64') };
    if (operation === 'sign') return { signature: key.sign(bytes('input'), { version, context: text('context') }) };
    if (operation === 'hmac') return { hmac: key.hmac(bytes('input'), version) };
    if (body['hmac'] !== undefined)
      return { valid: key.hmac(bytes('input'), Number(/v(\d+)/.exec(text('hmac'))?.[1])) === text('hmac') };
    return { valid: key.verify(bytes('input'), text('signature'), text('context')) };
  }

  #wrappingKey(): KeyObject {
    this.#wrapping ??= generateKeyPairSync('rsa', { modulusLength: 4096 }).privateKey;
    return this.#wrapping;
  }

  #unwrapped(ciphertext: string): Buffer {
    const whole = Buffer.from(ciphertext, 'base64');
    const ephemeral = privateDecrypt({ key: this.#wrappingKey(), oaepHash: 'sha256' }, whole.subarray(0, 512));
    const decipher = createDecipheriv('id-aes256-wrap-pad', ephemeral, Buffer.from('a65959a6', 'hex'));
    return Buffer.concat([decipher.update(whole.subarray(512)), decipher.final()]);
  }
}

const health = {
  initialized: true,
  sealed: false,
  standby: false,
  version: '2.6.2',
  cluster_name: 'peer',
  cluster_id: '01234567-89ab-cdef-0123-456789abcdef',
};

const mounts = {
  'cubbyhole/': {
    type: 'cubbyhole',
    description: 'per-token',
    config: { default_lease_ttl: 0, max_lease_ttl: 0 },
    options: null,
  },
  'transit/': {
    type: 'transit',
    description: 'keys of the shop',
    config: { default_lease_ttl: 0, max_lease_ttl: 0, force_no_cache: false },
    options: null,
  },
};

/** The data of a key, as the peer shows it: no versions for HMAC keys. */
function keyData(key: PeerKey): object {
  const visible = key.versions.map((version, at) => [at + 1, version] as const).slice(key.settings.min_decryption_version - 1);
  const isPair = key.versions[0]?.pair !== undefined;
  const { auto_rotate_period: period, ...settings } = key.settings;
  return {
    name: key.name,
    type: key.type,
    ...settings,
    auto_rotate_period: period,
    latest_version: key.latest,
    imported_key: key.imported,
    ...(key.type !== 'hmac' && {
      keys: Object.fromEntries(
        visible.map(([number, version]) => [
          String(number),
          isPair
            ? { name: key.type, public_key: key.publicKey(version), certificate_chain: '', creation_time: version.time }
            : Math.floor(Date.parse(version.time) / 1000),
        ]),
      ),
    }),
    ...(key.type === 'hmac' && { key_size: key.versions[0]?.raw?.length }),
    soft_deleted: false,
  };
}
