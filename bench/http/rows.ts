import { type ApiServer, valueAt } from './api-server.ts';

/** The mounts that one run of the benchmark uses. Each run uses new mounts, so that the benchmark can be repeated on the same server. */
export interface Names {
  readonly mount: string;
  /** Mount that contains only the keys of the list row. */
  readonly listMount: string;
  readonly listKeys: number;
}

/** One row of the table: the request that it repeats. */
export interface Row {
  readonly name: string;
  readonly method: 'GET' | 'POST';
  /**
   * Path below `/v1/`. `{run}` is replaced by the number of the run, and `{n}` by the number of the request. Request numbers are
   * below `spread` if that is given; otherwise they are unique in the run.
   */
  readonly path: string;
  readonly spread?: number;
  /** Creates the mounts and keys that the row needs. */
  readonly prepare?: (server: ApiServer) => Promise<unknown>;
  /** Returns the body of each request. Absent: no body. */
  readonly body?: (server: ApiServer) => object | Promise<object>;
  /** If absent, any 2xx is a success. */
  readonly check?: Check;
}

/** Returns whether the response shows that the server did the work. Called with one response, before the row is measured. */
type Check = (response: unknown) => boolean;

const aes = 'aes256-gcm96';
const signatureTypes = ['ed25519', 'ecdsa-p256', 'rsa-2048'];
const rotatedKeys = 256;
const preparedAtOnce = 16;

const zeros = (bytes: number): string => Buffer.alloc(bytes).toString('base64');
const plaintext = zeros(32);

/** Returns all rows in the order in which they are measured. Rows that create keys and do not delete them come last. */
export function allRows({ mount, listMount, listKeys }: Names): readonly Row[] {
  const createMount = (server: ApiServer, name = mount) => server.once(`sys/mounts/${name}`, { type: 'transit' });
  const createKey = async (server: ApiServer, name: string, type: string) => {
    await createMount(server);
    await server.once(`${mount}/keys/${name}`, { type });
  };
  const createKeys = async (server: ApiServer, on: string, count: number) => {
    await createMount(server, on);
    let next = 0;
    const worker = async (): Promise<void> => {
      for (let n = next++; n < count; n = next++) await server.once(`${on}/keys/many-${n}`, { type: aes });
    };
    await Promise.all(Array.from({ length: preparedAtOnce }, worker));
  };
  const ciphertext = async (server: ApiServer, bytes = 32) => ({
    ciphertext: valueAt(await server.call('POST', `${mount}/encrypt/${aes}`, { plaintext: zeros(bytes) }), 'data.ciphertext'),
  });
  const signature = async (server: ApiServer, type: string) => ({
    input: plaintext,
    signature: valueAt(await server.call('POST', `${mount}/sign/${type}`, { input: plaintext }), 'data.signature'),
  });
  /** A request that needs the mount, but no key. */
  const keyless = (name: string, path: string, body: object, check: Check): Row => {
    return { name, method: 'POST', path: `${mount}/${path}`, prepare: createMount, body: () => body, check };
  };
  /** A request for the key that is named after its type. */
  const keyed = (name: string, operation: string, body: NonNullable<Row['body']>, check: Check, type = aes): Row => ({
    name,
    method: 'POST',
    path: `${mount}/${operation}/${type}`,
    prepare: (server) => createKey(server, type, type),
    body,
    check,
  });
  const encrypt = (name: string, bytes: number) =>
    keyed(name, 'encrypt', () => ({ plaintext: zeros(bytes) }), isString('data.ciphertext'));
  const decrypt = (name: string, bytes: number) =>
    keyed(name, 'decrypt', (server) => ciphertext(server, bytes), is('data.plaintext', zeros(bytes)));
  const batchEncrypt = (count: number) => {
    const batch_input = Array.from({ length: count }, () => ({ plaintext }));
    return keyed(`batch-encrypt-${count}`, 'encrypt', () => ({ batch_input }), hasLength('data.batch_results', count));
  };

  return [
    { name: 'health', method: 'GET', path: 'sys/health?perfstandbyok=true', check: is('initialized', true) },
    { name: 'lookup-self', method: 'GET', path: 'auth/token/lookup-self', check: isString('data.accessor') },
    encrypt('encrypt-32b', 32),
    encrypt('encrypt-4k', 4096),
    encrypt('encrypt-1m', 2 ** 20),
    decrypt('decrypt-32b', 32),
    decrypt('decrypt-1m', 2 ** 20),
    keyed('rewrap', 'rewrap', (server) => ciphertext(server), isString('data.ciphertext')),
    keyed('datakey', 'datakey/plaintext', () => ({}), isString('data.plaintext')),
    keyed('hmac', 'hmac', () => ({ input: plaintext }), isString('data.hmac')),
    keyless('random', 'random/32', {}, isString('data.random_bytes')),
    keyless('hash', 'hash/sha2-256', { input: plaintext }, isString('data.sum')),
    batchEncrypt(100),
    batchEncrypt(400),
    keyed(
      'batch-decrypt-100',
      'decrypt',
      async (server) => ({ batch_input: Array(100).fill(await ciphertext(server)) }),
      is('data.batch_results.99.plaintext', plaintext),
    ),
    ...signatureTypes.flatMap((type) => [
      keyed(`sign-${type}`, 'sign', () => ({ input: plaintext }), isString('data.signature'), type),
      keyed(`verify-${type}`, 'verify', (server) => signature(server, type), is('data.valid', true), type),
    ]),
    {
      name: 'key-read',
      method: 'GET',
      path: `${mount}/keys/${aes}`,
      prepare: (server) => createKey(server, aes, aes),
      check: is('data.type', aes),
    },
    {
      name: 'key-list',
      method: 'GET',
      path: `${listMount}/keys?list=true`,
      prepare: (server) => createKeys(server, listMount, listKeys),
      check: hasLength('data.keys', listKeys),
    },
    {
      name: 'key-create',
      method: 'POST',
      path: `${mount}/keys/new-{run}-{n}`,
      prepare: createMount,
      body: () => ({ type: aes }),
    },
    {
      name: 'key-rotate',
      method: 'POST',
      path: `${mount}/keys/many-{n}/rotate`,
      spread: rotatedKeys,
      prepare: (server) => createKeys(server, mount, rotatedKeys),
      body: () => ({}),
    },
  ];
}

/** Returns the rows that `wanted` names, by whole name or first part; all rows if it is empty. @throws Error for an unknown name */
export function selectRows(rows: readonly Row[], wanted: readonly string[]): readonly Row[] {
  const isNamed = (row: Row, name: string) => row.name === name || row.name.startsWith(`${name}-`);
  const unknown = wanted.find((name) => !rows.some((row) => isNamed(row, name)));
  if (unknown !== undefined) throw new Error(`--rows: ${unknown} is not one of ${rows.map(({ name }) => name).join(', ')}`);
  return wanted.length === 0 ? rows : rows.filter((row) => wanted.some((name) => isNamed(row, name)));
}

function is(path: string, expected: unknown): Check {
  return (response) => valueAt(response, path) === expected;
}

function isString(path: string): Check {
  return (response) => typeof valueAt(response, path) === 'string';
}

function hasLength(path: string, length: number): Check {
  return (response) => {
    const list = valueAt(response, path);
    return Array.isArray(list) && list.length === length;
  };
}
