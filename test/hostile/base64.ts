import type { HostileCase } from './case.ts';

/** Strings that are not standard base64 with padding (RFC 4648 §4). Many decoders, including Node's, accept them silently. */
const refused: readonly (readonly [text: string, because: string])[] = [
  ['A', 'one character'],
  ['AA', 'padding missing'],
  ['AAA', 'padding missing'],
  ['AAAAA', 'one character too many'],
  ['AAAAAA', 'padding missing at the end'],
  ['=', 'padding alone'],
  ['====', 'a group of padding'],
  ['A===', 'three characters of padding'],
  ['AA=', 'half of the padding'],
  ['AAAA=', 'padding after a complete group'],
  ['AAAA====', 'a group of padding after a complete group'],
  ['AA==AA==', 'two texts'],
  ['AA==AAAA', 'text after the padding'],
  ['AAA=A', 'a character after the padding'],
  ['=AAA', 'leading padding'],
  ['A=AA', 'padding inside'],
  ['AA AA', 'a blank'],
  [' AAAA', 'a leading blank'],
  ['AAAA ', 'a blank at the end'],
  ['AA\tAA', 'a tab'],
  ['AA\vAA', 'a vertical tab'],
  ['AAAA\0', 'a NUL at the end'],
  ['\0', 'a NUL alone'],
  ['AA-_', 'the alphabet of URLs'],
  ['__==', 'the alphabet of URLs, padded'],
  ['AA.A', 'a dot'],
  ['AA+/*', 'a star'],
  ['data:;base64,AAAA', 'a data URL'],
  ['AA%3D%3D', 'percent-encoded'],
  ['AA\\u003d', 'an escape escaped'],
  ['ÄÄÄÄ', 'letters beyond ASCII'],
  ['ＡＡＡＡ', 'full-width letters'],
  ['AA\u2028AA', 'a line separator'],
  ['\ufeffAAAA', 'a byte order mark'],
  ['AAA\u0141', 'a letter whose low byte is A'],
  ['🔑🔑', 'emoji'],
  ['='.repeat(10_000), 'ten thousand characters of padding'],
  [`${'A'.repeat(100_000)}!`, 'an error at the very end'],
];

/** Unusual but valid base64: CR and LF are ignored anywhere, as RFC 2045 wraps lines. */
const accepted: readonly (readonly [text: string, because: string])[] = [
  ['', 'nothing'],
  ['AAAA', 'a complete group'],
  ['AA==', 'one byte'],
  ['AAA=', 'two bytes'],
  ['+/+/', 'the two characters of the standard alphabet'],
  ['AA==\n', 'a line feed at the end'],
  ['\nAAAA', 'a line feed in front'],
  ['A\nA\r\nA\rA', 'line ends inside the text'],
  ['AA=\r\n=', 'a line end inside the padding'],
  ['\r\n', 'nothing but a line end'],
  ['AB==', 'unused bits after the last byte'],
];

interface Place {
  readonly target: string;
  readonly field: string;
  /** Other fields that the request needs. */
  readonly rest?: Readonly<Record<string, unknown>>;
  readonly says: RegExp;
}

/** Every field that takes bytes. */
const places: readonly Place[] = [
  { target: 'encrypt/k', field: 'plaintext', says: /illegal base64 data/ },
  { target: 'encrypt/k', field: 'associated_data', rest: { plaintext: 'AAAA' }, says: /illegal base64 data/ },
  { target: 'encrypt/d', field: 'context', rest: { plaintext: 'AAAA' }, says: /illegal base64 data/ },
  { target: 'encrypt/unmade', field: 'plaintext', says: /illegal base64 data/ },
  { target: 'encrypt/unmade', field: 'context', rest: { plaintext: 'AAAA' }, says: /illegal base64 data/ },
  { target: 'decrypt/k', field: 'associated_data', rest: { ciphertext: '«ciphertext»' }, says: /illegal base64 data/ },
  { target: 'decrypt/d', field: 'context', rest: { ciphertext: '«derived»' }, says: /base64/ },
  { target: 'rewrap/d', field: 'context', rest: { ciphertext: '«derived»' }, says: /base64/ },
  { target: 'datakey/wrapped/d', field: 'context', says: /failed to base64-decode context|illegal base64 data/ },
  { target: 'datakey/wrapped/k', field: 'associated_data', says: /illegal base64 data/ },
  { target: 'hash', field: 'input', says: /unable to decode input as base64/ },
  { target: 'hmac/k', field: 'input', says: /unable to decode input as base64/ },
  { target: 'cmac/m', field: 'input', says: /unable to decode input as base64/ },
  { target: 'verify/k', field: 'input', rest: { hmac: '«hmac»' }, says: /unable to decode input as base64/ },
  { target: 'verify/m', field: 'input', rest: { cmac: '«cmac»' }, says: /unable to decode input as base64/ },
  { target: 'keys/unmade/import', field: 'ciphertext', rest: { type: 'aes256-gcm96' }, says: /base64|ciphertext is too long/ },
  { target: 'restore/unmade', field: 'backup', says: /./ },
];

/** Fields in which an empty string, or other valid base64, is still an invalid value. */
const strings: readonly (readonly [target: string, body: (text: string) => Readonly<Record<string, unknown>>, says: RegExp])[] = [
  ['decrypt/k', (text) => ({ ciphertext: `svc:v1:${text}` }), /could not decode base64|invalid ciphertext/],
  ['rewrap/k', (text) => ({ ciphertext: `svc:v1:${text}` }), /could not decode base64|invalid ciphertext/],
  ['verify/k', (text) => ({ input: 'AAAA', hmac: `svc:v1:${text}` }), /unable to decode verification HMAC as base64/],
  ['encrypt/k', (text) => ({ batch_input: [{ plaintext: text }] }), /"batch_results":\[\{"error":"[^"]*illegal base64 data/],
  ['hmac/k', (text) => ({ batch_input: [{ input: text }] }), /"batch_results":\[\{"error":"[^"]*base64/],
];

const post = (target: string): { readonly method: string; readonly target: string } => ({
  method: 'POST',
  target: `/v1/transit/${target}`,
});

export const base64Strings: readonly HostileCase[] = [
  ...places.flatMap(({ target, field, rest, says }) =>
    refused.map(([text, because]) => ({ ...post(target), body: { ...rest, [field]: text }, status: 400, says, because })),
  ),
  ...strings.flatMap(([target, body, says]) =>
    refused.map(([text, because]) => ({ ...post(target), body: body(text), status: 400, says, because })),
  ),
  ...accepted.flatMap(([text, because]) => [
    { ...post('encrypt/k'), body: { plaintext: text }, status: 200, because },
    { ...post('encrypt/k'), body: { plaintext: 'AAAA', associated_data: text }, status: 200, because },
    { ...post('hash'), body: { input: text }, status: 200, because },
    { ...post('hmac/k'), body: { input: text }, status: 200, because },
    { ...post('cmac/m'), body: { input: text }, status: 200, because },
    { ...post('encrypt/k'), body: { batch_input: [{ plaintext: text }] }, status: 200, because },
  ]),
];
