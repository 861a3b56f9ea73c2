// Changes whose answers every later request must obey, on whichever thread its connection is.
import type { Connection } from './connection.ts';

/** Returns how an answer contradicts the change; undefined if it does not. */
type Check = (connection: Connection) => Promise<string | undefined>;

/** Follows an answered change: `each` runs on every connection, then `atEnd`. */
export interface Step {
  readonly each: Check;
  readonly atEnd?: () => string | undefined;
}

/** Makes changes one after the other; each step is checked before the next change. */
export type Changes = (admin: Connection, round: string) => AsyncGenerator<Step>;

const plaintext = { plaintext: 'aGVsbG8=' };
const wants =
  (status: number, ask: (connection: Connection) => ReturnType<Connection['call']>): Check =>
  async (connection) => {
    const answer = await ask(connection);
    return answer.status === status ? undefined : `${answer.status} instead of ${status}: ${answer.text}`;
  };
const encrypts = (status: number, path: string, token?: string): Check =>
  wants(status, (connection) => connection.call('POST', path, plaintext, { token }));
const tokenWith = async (admin: Connection, more: object): Promise<string> => {
  const { text } = await admin.call('POST', 'auth/token/create', { policies: ['user'], ...more });
  return JSON.parse(text).auth.client_token;
};

export const allChanges: Readonly<Record<string, Changes>> = {
  async *'a rotated key'(admin, round) {
    await admin.data('POST', `transit/keys/rotated-${round}`);
    for (let version = 2; version < 6; version++) {
      await admin.data('POST', `transit/keys/rotated-${round}/rotate`);
      yield {
        each: async (connection) => {
          const { key_version: seen } = await connection.data('POST', `transit/encrypt/rotated-${round}`, plaintext);
          return seen === version ? undefined : `version ${seen} instead of ${version}`;
        },
      };
    }
  },

  async *'versions that may no longer decrypt, and trimmed ones'(admin, round) {
    const key = `transit/keys/old-${round}`;
    await admin.data('POST', key);
    const { ciphertext } = await admin.data('POST', `transit/encrypt/old-${round}`, plaintext);
    const decrypts = (status: number): Step => ({
      each: wants(status, (connection) => connection.call('POST', `transit/decrypt/old-${round}`, { ciphertext })),
    });
    await admin.data('POST', `${key}/rotate`);
    yield decrypts(200);
    await admin.data('POST', `${key}/config`, { min_decryption_version: 2 });
    yield decrypts(400);
    await admin.data('POST', `${key}/config`, { min_decryption_version: 1 });
    yield decrypts(200);
    await admin.data('POST', `${key}/config`, { min_decryption_version: 2, min_encryption_version: 2 });
    await admin.data('POST', `${key}/trim`, { min_available_version: 2 });
    yield decrypts(400);
  },

  async *'versions that a rotation retires'(admin, round) {
    const key = `transit/keys/aging-${round}`;
    await admin.data('POST', key);
    await admin.data('POST', `${key}/config`, { keep_decryption_versions: 1 });
    for (let version = 1; version < 4; version++) {
      const { ciphertext } = await admin.data('POST', `transit/encrypt/aging-${round}`, plaintext);
      await admin.data('POST', `${key}/rotate`);
      yield { each: wants(400, (connection) => connection.call('POST', `transit/decrypt/aging-${round}`, { ciphertext })) };
    }
  },

  async *'a deleted key'(admin, round) {
    const user = await tokenWith(admin, {});
    await admin.data('POST', `transit/keys/deleted-${round}`);
    await admin.data('POST', `transit/keys/deleted-${round}/config`, { deletion_allowed: true });
    yield { each: encrypts(200, `transit/encrypt/deleted-${round}`, user) };
    await admin.data('DELETE', `transit/keys/deleted-${round}`);
    yield { each: wants(404, (connection) => connection.call('GET', `transit/keys/deleted-${round}`)) };
    yield { each: encrypts(403, `transit/encrypt/deleted-${round}`, user) };
  },

  async *'a soft-deleted key and a disabled version'(admin, round) {
    const key = `transit/keys/off-${round}`;
    await admin.data('POST', key);
    const { ciphertext } = await admin.data('POST', `transit/encrypt/off-${round}`, plaintext);
    await admin.data('POST', `${key}/rotate`);
    const decrypts = (status: number): Step => ({
      each: wants(status, (connection) => connection.call('POST', `transit/decrypt/off-${round}`, { ciphertext })),
    });
    yield decrypts(200);
    for (const [off, on] of [
      [() => admin.data('DELETE', `${key}/soft-delete`), `${key}/soft-delete-restore`],
      [() => admin.data('POST', `${key}/versions/1/disable`), `${key}/versions/1/enable`],
    ] as const) {
      await off();
      yield decrypts(400);
      await admin.data('POST', on);
      yield decrypts(200);
    }
  },

  async *'a revoked token'(admin) {
    const token = await tokenWith(admin, {});
    yield { each: encrypts(200, 'transit/encrypt/shared', token) };
    await admin.data('POST', 'auth/token/revoke', { token });
    yield { each: encrypts(403, 'transit/encrypt/shared', token) };
  },

  async *'a token with a limited number of uses'(admin) {
    const token = await tokenWith(admin, { num_uses: 5 });
    let uses = 0;
    yield {
      each: async (connection) => {
        const { status } = await connection.call('POST', 'transit/encrypt/shared', plaintext, { token });
        if (status === 200) uses += 1;
        return undefined;
      },
      atEnd: () => (uses === 5 ? undefined : `${uses} uses instead of 5`),
    };
  },

  async *'a changed policy'(admin, round) {
    const name = `changing-${round}`;
    const token = await tokenWith(admin, { policies: [name] });
    for (const [capability, status] of [
      ['update', 200],
      ['deny', 403],
      ['update', 200],
      ['read', 403],
    ] as const) {
      await admin.data('POST', `sys/policies/acl/${name}`, {
        policy: `path "transit/encrypt/shared" { capabilities = ["${capability}"] }`,
      });
      yield { each: encrypts(status, 'transit/encrypt/shared', token) };
    }
  },

  async *'a quota'(admin, round) {
    const hashes = (connection: Connection) => connection.call('POST', 'transit/hash/sha2-256', { input: 'aGVsbG8=' });
    const quota = `sys/quotas/rate-limit/q-${round}`;
    yield { each: wants(200, hashes) };
    await admin.data('POST', quota, { path: 'transit/hash*', rate: 2, interval: 3600 });
    let admitted = 0;
    yield {
      each: async (connection) => {
        if ((await hashes(connection)).status === 200) admitted += 1;
        return undefined;
      },
      atEnd: () => (admitted === 2 ? undefined : `the quota admitted ${admitted} requests instead of 2`),
    };
    await admin.data('DELETE', quota);
    yield { each: wants(200, hashes) };
  },

  async *'a mount that is moved and disabled'(admin, round) {
    await admin.data('POST', `sys/mounts/from-${round}`, { type: 'transit' });
    await admin.data('POST', `from-${round}/keys/k`);
    yield { each: encrypts(200, `from-${round}/encrypt/k`) };
    await admin.data('POST', 'sys/remount', { from: `from-${round}`, to: `to-${round}` });
    yield { each: encrypts(404, `from-${round}/encrypt/k`) };
    yield { each: encrypts(200, `to-${round}/encrypt/k`) };
    await admin.data('DELETE', `sys/mounts/to-${round}`);
    yield { each: encrypts(404, `to-${round}/encrypt/k`) };
  },
};
