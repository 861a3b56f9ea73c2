import type { Key } from './key.ts';

export type OperationName = 'encrypt' | 'decrypt' | 'sign' | 'verify signature' | 'hmac' | 'verify HMAC';

interface Input {
  readonly name: string;
  readonly label: string;
  /** The field takes any text, and the API takes it in base64. */
  readonly isText?: true;
}

export interface KeyOperation {
  readonly name: OperationName;
  /** First segment of the path below the mount. */
  readonly path: string;
  readonly inputs: readonly Input[];
  readonly isFor: (key: Key) => boolean;
}

const text = (name: string, label: string): Input => ({ name, label, isText: true });

/** The operations that the page can try. */
export const operations: readonly KeyOperation[] = [
  { name: 'encrypt', path: 'encrypt', inputs: [text('plaintext', 'Plaintext')], isFor: ({ encrypts }) => encrypts },
  {
    name: 'decrypt',
    path: 'decrypt',
    inputs: [{ name: 'ciphertext', label: 'Ciphertext' }],
    isFor: ({ decrypts }) => decrypts,
  },
  { name: 'sign', path: 'sign', inputs: [text('input', 'Message')], isFor: ({ signs }) => signs },
  {
    name: 'verify signature',
    path: 'verify',
    inputs: [text('input', 'Message'), { name: 'signature', label: 'Signature' }],
    isFor: ({ signs }) => signs,
  },
  { name: 'hmac', path: 'hmac', inputs: [text('input', 'Message')], isFor: hasHmac },
  {
    name: 'verify HMAC',
    path: 'verify',
    inputs: [text('input', 'Message'), { name: 'hmac', label: 'HMAC' }],
    isFor: hasHmac,
  },
];

function hasHmac({ type }: Key): boolean {
  return !type.endsWith('-cmac') && type !== 'managed_key';
}

/** Returns the body of a request: texts in base64, and the context of a derived key. */
export function bodyOf(
  { inputs }: KeyOperation,
  values: Readonly<Record<string, string>>,
  context: string,
): Readonly<Record<string, string>> {
  const given = inputs.map(
    ({ name, isText }) => [name, isText ? base64(values[name] ?? '') : (values[name] ?? '').trim()] as const,
  );
  return Object.fromEntries([...given, ...(context === '' ? [] : [['context', base64(context)] as const])]);
}

/** Base64 of the UTF-8 bytes of a text. */
export function base64(plain: string): string {
  let bytes = '';
  for (const byte of new TextEncoder().encode(plain)) bytes += String.fromCharCode(byte);
  return btoa(bytes);
}

/** Returns the text behind base64; undefined if the bytes are not UTF-8. */
export function textOf(encoded: string): string | undefined {
  try {
    const bytes = Uint8Array.from(atob(encoded), (char) => char.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
