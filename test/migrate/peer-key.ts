// A key of the stub peer: the cryptography of Vault and OpenBao, written from measurements and independent of the transit engine.
import {
  constants,
  createCipheriv,
  createDecipheriv,
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hkdfSync,
  type JsonWebKey,
  type KeyObject,
  privateDecrypt,
  publicEncrypt,
  randomBytes,
  sign,
  verify,
} from 'node:crypto';

export interface PeerVersion {
  /** Raw bytes of a symmetric key. */
  readonly raw?: Buffer;
  readonly pair?: KeyObject;
  readonly hmac: Buffer;
  readonly time: string;
}

/** The numbers of the types in OpenBao's backups. */
const numbers: Readonly<Record<string, number>> = {
  'aes256-gcm96': 0,
  'ecdsa-p256': 1,
  ed25519: 2,
  'rsa-2048': 3,
  'rsa-4096': 4,
  'chacha20-poly1305': 5,
  'ecdsa-p384': 6,
  'ecdsa-p521': 7,
  'aes128-gcm96': 8,
  'rsa-3072': 9,
  hmac: 10,
};

const [nonceBytes, tagBytes] = [12, 16];
const ed25519Prefix = Buffer.from('302e020100300506032b657004220420', 'hex');
const pssPadding = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_AUTO };
const oaep = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' };

export class PeerKey {
  readonly name: string;
  readonly type: string;
  readonly settings: {
    derived: boolean;
    convergent_encryption: boolean;
    exportable: boolean;
    allow_plaintext_backup: boolean;
    deletion_allowed: boolean;
    min_decryption_version: number;
    min_encryption_version: number;
    min_available_version: number;
    auto_rotate_period: number;
  };
  imported = false;
  readonly versions: PeerVersion[] = [];

  constructor(name: string, type: string, settings: Partial<PeerKey['settings']> = {}) {
    this.name = name;
    this.type = type;
    this.settings = {
      derived: false,
      convergent_encryption: false,
      exportable: false,
      allow_plaintext_backup: false,
      deletion_allowed: false,
      min_decryption_version: 1,
      min_encryption_version: 0,
      min_available_version: 0,
      auto_rotate_period: 0,
      ...settings,
    };
  }

  get latest(): number {
    return this.versions.length;
  }

  /** Adds a version. @param exported - the form of an export, or PKCS#8 or raw bytes; random when absent */
  add(exported?: string | Buffer): this {
    const time = `2024-05-0${this.versions.length + 1}T01:02:03.123456789Z`;
    const content = exported === undefined ? this.#fresh() : this.#parsed(exported);
    this.versions.push({ ...content, hmac: this.type === 'hmac' ? (content.raw ?? Buffer.alloc(0)) : randomBytes(32), time });
    return this;
  }

  #fresh(): Pick<PeerVersion, 'raw' | 'pair'> {
    if (this.type === 'ed25519') return { pair: generateKeyPairSync('ed25519').privateKey };
    const curve = this.#curve();
    if (curve !== undefined) return { pair: generateKeyPairSync('ec', { namedCurve: curve }).privateKey };
    if (this.type.startsWith('rsa-'))
      return { pair: generateKeyPairSync('rsa', { modulusLength: Number(this.type.slice(4)) }).privateKey };
    return { raw: randomBytes(this.type === 'aes128-gcm96' ? 16 : 32) };
  }

  #parsed(exported: string | Buffer): Pick<PeerVersion, 'raw' | 'pair'> {
    const isPair = /^(?:ed25519|ecdsa|rsa)/.test(this.type);
    if (typeof exported === 'string' && exported.startsWith('-----')) return { pair: createPrivateKey(exported) };
    const bytes = typeof exported === 'string' ? Buffer.from(exported, 'base64') : exported;
    if (!isPair) return { raw: bytes };
    const der = typeof exported === 'string' ? Buffer.concat([ed25519Prefix, bytes.subarray(0, 32)]) : bytes;
    return { pair: createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }) };
  }

  #curve(): string | undefined {
    return { 'ecdsa-p256': 'P-256', 'ecdsa-p384': 'P-384', 'ecdsa-p521': 'P-521' }[this.type];
  }

  at(version: number): PeerVersion {
    const found = this.versions[version - 1];
    if (found === undefined || version < this.settings.min_decryption_version) throw new Error('no such key version');
    return found;
  }

  publicKey({ pair }: PeerVersion): string {
    if (pair === undefined || this.settings.derived) return '';
    return this.type === 'ed25519'
      ? rawOf(pair.export({ format: 'jwk' }).x).toString('base64')
      : createPublicKey(pair).export({ type: 'spki', format: 'pem' }).toString();
  }

  /** The form of an export. */
  exported({ raw, pair }: PeerVersion): string {
    if (raw !== undefined) return raw.toString('base64');
    if (pair === undefined) return '';
    if (this.type === 'ed25519') return seedAndPublic(pair).toString('base64');
    if (this.type.startsWith('rsa-')) return pair.export({ type: 'pkcs1', format: 'pem' }).toString();
    return pair.export({ type: 'sec1', format: 'pem' }).toString().trimEnd();
  }

  encrypt(plaintext: Buffer, { version = this.latest, context = '' }: { version?: number; context?: string }): string {
    const entry = this.at(version);
    if (entry.pair !== undefined)
      return `vault:v${version}:${publicEncrypt({ key: createPublicKey(entry.pair), ...oaep }, plaintext).toString('base64')}`;
    const { key, nonceKey } = this.#derived(entry, context);
    const nonce =
      nonceKey === undefined
        ? randomBytes(nonceBytes)
        : createHmac('sha256', nonceKey).update(plaintext).digest().subarray(0, nonceBytes);
    const cipher = createCipheriv(this.#cipher() as 'chacha20-poly1305', key, nonce, { authTagLength: tagBytes });
    const sealed = Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
    return `vault:v${version}:${sealed.toString('base64')}`;
  }

  decrypt(ciphertext: string, context = ''): Buffer {
    const { version, bytes } = this.#parts(ciphertext);
    const entry = this.at(version);
    if (entry.pair !== undefined) return privateDecrypt({ key: entry.pair, ...oaep }, bytes);
    const decipher = createDecipheriv(
      this.#cipher() as 'chacha20-poly1305',
      this.#derived(entry, context).key,
      bytes.subarray(0, nonceBytes),
      {
        authTagLength: tagBytes,
      },
    );
    decipher.setAuthTag(bytes.subarray(-tagBytes));
    return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()]);
  }

  sign(input: Buffer, { version = this.latest, context = '' }: { version?: number; context?: string }): string {
    const key = this.#signingKey(this.at(version), context);
    return `vault:v${version}:${sign(this.type === 'ed25519' ? null : 'sha256', input, { key, ...this.#padding() }).toString('base64')}`;
  }

  verify(input: Buffer, signature: string, context = ''): boolean {
    const { version, bytes } = this.#parts(signature);
    const key = createPublicKey(this.#signingKey(this.at(version), context));
    return verify(this.type === 'ed25519' ? null : 'sha256', input, { key, ...this.#padding() }, bytes);
  }

  hmac(input: Buffer, version = this.latest): string {
    return `vault:v${version}:${createHmac('sha256', this.at(version).hmac).update(input).digest('base64')}`;
  }

  /** Reads a backup as a peer would: the versions of the archive, and of the policy those that data may be decrypted with. */
  static restored(name: string, backup: string): PeerKey {
    const { policy, archived_keys: archive } = JSON.parse(Buffer.from(backup, 'base64').toString());
    const type = Object.keys(numbers).find((each) => numbers[each] === policy.type);
    if (type === undefined) throw new Error('unknown key type');
    const key = new PeerKey(name, type);
    for (const setting of Object.keys(key.settings)) Object.assign(key.settings, { [setting]: policy[setting] });
    key.settings.auto_rotate_period = policy.auto_rotate_period / 1e9;
    for (let version = 1; version <= policy.latest_version; version++) {
      const entry = archive.keys[version - policy.archive_min_version];
      const inPolicy = policy.keys[version];
      if (version >= policy.min_decryption_version && JSON.stringify(inPolicy) !== JSON.stringify(entry))
        throw new Error(`version ${version} of the policy is not that of the archive`);
      // Trimmed versions keep their numbers.
      key.add(entry?.key);
      const added = key.versions.pop();
      if (added !== undefined && entry !== undefined)
        key.versions.push({ ...added, hmac: Buffer.from(entry.hmac_key, 'base64'), time: entry.time });
      else if (added !== undefined) key.versions.push(added);
    }
    return key;
  }

  /** Returns the backup, in which the numbers of key pairs keep all their digits. */
  backup(): string {
    const entries = this.versions.map((version) => ({
      key:
        version.raw?.toString('base64') ??
        (this.type === 'ed25519' && version.pair ? seedAndPublic(version.pair).toString('base64') : null),
      hmac_key: version.hmac.toString('base64'),
      time: version.time,
      ...this.#pairFields(version.pair),
      certificate_chain: null,
      convergent_version: this.settings.convergent_encryption ? 3 : 0,
      creation_time: Math.floor(Date.parse(version.time) / 1000),
    }));
    const policy = {
      name: this.name,
      keys: Object.fromEntries(
        entries.map((entry, at) => [String(at + 1), entry]).slice(this.settings.min_decryption_version - 1),
      ),
      ...this.settings,
      auto_rotate_period: this.settings.auto_rotate_period * 1e9,
      kdf: 1,
      latest_version: this.latest,
      archive_version: this.latest,
      archive_min_version: 0,
      convergent_version: this.settings.convergent_encryption ? -1 : 0,
      type: numbers[this.type],
      Imported: this.imported,
      AllowImportedKeyRotation: false,
      soft_deleted: false,
    };
    const json = JSON.stringify({ policy, archived_keys: { keys: [{}, ...entries] } });
    return Buffer.from(json.replace(/"@(\d+)@"/g, '$1')).toString('base64');
  }

  #pairFields(pair: KeyObject | undefined): object {
    if (pair === undefined) return {};
    const { n, d, p, q, dp, dq, qi, x, y }: JsonWebKey = pair.export({ format: 'jwk' });
    if (this.type === 'ed25519') return { public_key: rawOf(x).toString('base64') };
    if (y !== undefined) return { ec_x: digits(x), ec_y: digits(y), ec_d: digits(d), rsa_key: null };
    const Precomputed = { Dp: digits(dp), Dq: digits(dq), Qinv: digits(qi), CRTValues: [] };
    return { rsa_key: { N: digits(n), E: 65537, D: digits(d), Primes: [digits(p), digits(q)], Precomputed } };
  }

  #parts(text: string): { version: number; bytes: Buffer } {
    const [, version = '', payload = ''] = /^vault:v(\d+):(.*)$/.exec(text) ?? [];
    if (version === '') throw new Error('invalid ciphertext: no prefix');
    return { version: Number(version), bytes: Buffer.from(payload, 'base64') };
  }

  #cipher(): string {
    if (this.type === 'chacha20-poly1305') return this.type;
    return this.type === 'aes128-gcm96' ? 'aes-128-gcm' : 'aes-256-gcm';
  }

  #padding(): object {
    return this.type.startsWith('rsa-') ? pssPadding : {};
  }

  #derived({ raw = Buffer.alloc(0) }: PeerVersion, context: string): { key: Buffer; nonceKey?: Buffer } {
    if (!this.settings.derived) return { key: raw };
    const info = Buffer.from(context, 'base64');
    if (info.length === 0) throw new Error("missing 'context' for key derivation");
    const output = Buffer.from(hkdfSync('sha256', raw, '', info, raw.length + (this.settings.convergent_encryption ? 32 : 0)));
    const key = output.subarray(0, raw.length);
    return this.settings.convergent_encryption ? { key, nonceKey: output.subarray(raw.length) } : { key };
  }

  #signingKey({ pair }: PeerVersion, context: string): KeyObject {
    if (pair === undefined) throw new Error('key type does not support signing');
    if (!this.settings.derived) return pair;
    const seed = hkdfSync('sha256', seedAndPublic(pair), '', Buffer.from(context, 'base64'), 32);
    return createPrivateKey({ key: Buffer.concat([ed25519Prefix, Buffer.from(seed)]), format: 'der', type: 'pkcs8' });
  }
}

const rawOf = (text = ''): Buffer => Buffer.from(text, 'base64url');
const digits = (text: string | undefined): string => `@${BigInt(`0x0${rawOf(text).toString('hex')}`)}@`;
const seedAndPublic = (pair: KeyObject): Buffer => {
  const { d, x } = pair.export({ format: 'jwk' });
  return Buffer.concat([rawOf(d), rawOf(x)]);
};
