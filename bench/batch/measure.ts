import { createCipheriv, createDecipheriv, createSecretKey, randomBytes } from 'node:crypto';
import { initialAccess, openAccess } from '@transitd/access';
import { AuditKey } from '@transitd/audit';
import { bodyText, parseBody, parsePath } from '@transitd/http';
import type { Services } from '@transitd/node';
import { memoryStore } from '@transitd/storage-fsm';
import { MountRoutes } from '../../packages/api/src/operation/mount-routes.ts';
import { transitDataRoutes } from '../../packages/api/src/transit/data.ts';
import { mounted } from '../../packages/node/test/mounts/mounted.ts';

/** Medians over the rounds. */
export interface Share {
  readonly operation: 'encrypt' | 'decrypt';
  /** CPU time of one item, from the bytes of the request to the bytes of the response. */
  readonly itemUs: number;
  /** CPU time of the cipher object alone. */
  readonly cipherUs: number;
}

const plaintext = Buffer.alloc(32, 7);
const nonceBytes = 12;

/**
 * Measures batches without HTTP, tokens, audit and storage: parsing, the engine and rendering. Rounds of encryption and decryption
 * alternate.
 */
export async function measureBatch({ items, rounds }: { readonly items: number; readonly rounds: number }): Promise<Share[]> {
  const post = await operations();
  const request = (item: object): Buffer =>
    Buffer.from(JSON.stringify({ batch_input: Array.from({ length: items }, () => item) }));
  const encrypt = request({ plaintext: plaintext.toString('base64') });
  const { batch_results: results } = JSON.parse(await post('encrypt', encrypt)).data;
  const decrypt = Buffer.from(
    JSON.stringify({ batch_input: results.map(({ ciphertext }: { ciphertext: string }) => ({ ciphertext })) }),
  );
  const native = nativeCiphers(items);
  const measured = { encrypt: [] as Pair[], decrypt: [] as Pair[] };
  for (let round = -1; round < rounds; round += 1)
    for (const [operation, body] of [
      ['encrypt', encrypt],
      ['decrypt', decrypt],
    ] as const) {
      const cipherUs = (await cpuUs(native[operation])) / items;
      const itemUs = (await cpuUs(() => post(operation, body))) / items;
      if (round >= 0) measured[operation].push({ cipherUs, itemUs }); // the first round only warms the compiler up
    }
  return (['encrypt', 'decrypt'] as const).map((operation) => ({
    operation,
    itemUs: median(measured[operation].map(({ itemUs }) => itemUs)),
    cipherUs: median(measured[operation].map(({ cipherUs }) => cipherUs)),
  }));
}

interface Pair {
  readonly cipherUs: number;
  readonly itemUs: number;
}

/** Returns a function that answers a request of the root token about key `k` of type `aes256-gcm96`. */
async function operations(): Promise<(operation: string, bytes: Buffer) => Promise<string>> {
  const store = memoryStore();
  const { rootToken, writes } = initialAccess({ now: Date.now() });
  await store.commit({ conditions: [], writes });
  const { mounts, managedKeys } = await mounted(store, 'mnt');
  await mounts.engines.get('mnt')?.createKey('k', {});
  const access = openAccess({ store, now: Date.now });
  const services: Services = { ...access, mounts, managedKeys, auditKey: new AuditKey(store), sinceMs: 0 };
  const principal = await access.tokens.authenticate(rootToken);
  const routes = new MountRoutes(transitDataRoutes.map((route) => ({ ...route, path: `:mount/${route.path}` })));
  return async (name, bytes) => {
    const path = parsePath(`/v1/mnt/${name}/k`);
    const found = routes.find(path.segments, { path: 'mnt', depth: 1 });
    const operation = found?.route.operations.POST;
    if (found === undefined || operation?.access !== 'token' || principal === undefined) throw new Error(`no route ${name}`);
    const { params } = found;
    const body = await parseBody(bytes, 'application/json');
    const call = { verb: 'POST', path: path.path, written: path.path, params, query: path.query, body, address: '' } as const;
    const reply = await operation.run({ node: undefined as never, services, principal, token: rootToken }, call);
    if (reply.status !== 200) throw new Error(`${name}: ${reply.status}`);
    return bodyText(reply) ?? '';
  };
}

/** Returns functions that make, use and drop one cipher object for each item. The nonce repeats: these bytes are thrown away. */
function nativeCiphers(items: number): Readonly<Record<Share['operation'], () => void>> {
  const key = createSecretKey(randomBytes(32));
  const nonce = randomBytes(nonceBytes);
  const sealed = (): { ciphertext: Buffer; tag: Buffer } => {
    const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: 16 });
    const ciphertext = cipher.update(plaintext);
    cipher.final();
    return { ciphertext, tag: cipher.getAuthTag() };
  };
  const { ciphertext, tag } = sealed();
  const opened = (): void => {
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: 16 });
    decipher.setAuthTag(tag);
    decipher.update(ciphertext);
    decipher.final();
  };
  const repeated = (work: () => void) => (): void => {
    for (let item = 0; item < items; item += 1) work();
  };
  return { encrypt: repeated(sealed), decrypt: repeated(opened) };
}

/** Returns the CPU time of this thread in µs: other load of the machine, and threads of V8, count less. */
async function cpuUs(work: () => unknown): Promise<number> {
  const before = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(before);
  return user + system;
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
