// Batches: malformed lists, items of several kinds, and partial failures.
import { notConverted, type Row } from './case.ts';

const parse = /batch input|batch_input/;
const itemFailed = /"batch_results":\[.*"error":"/;

const good: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'encrypt/k': { plaintext: 'AAAA' },
  'decrypt/k': { ciphertext: '«ciphertext»' },
  'rewrap/k': { ciphertext: '«ciphertext»' },
  'hmac/k': { input: 'AAAA' },
  'cmac/m': { input: 'AAAA' },
  'verify/k': { input: 'AAAA', hmac: '«hmac»' },
};
const bad: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'encrypt/k': { plaintext: '!' },
  'decrypt/k': { ciphertext: '!' },
  'rewrap/k': { ciphertext: '!' },
  'hmac/k': { input: '!' },
  'cmac/m': { input: '!' },
  'verify/k': { input: '!', hmac: '«hmac»' },
};

export const batches: readonly Row[] = Object.entries(good).flatMap(([word, item]): Row[] => {
  const path = `transit/${word}`;
  const wrong = bad[word];
  return [
    [path, { batch_input: [item] }, 200, 'one item', /"batch_results":\[\{[^}]*"reference":""\}\]/],
    [path, { batch_input: [item, item] }, 200, 'the same item twice'],
    [path, { batch_input: [] }, 400, 'no item', /missing batch input to process/],
    [path, { batch_input: null, ...item }, 200, 'null counts as absent'],
    ...['x', '', 5, true, {}, { length: 1, 0: item }].map(
      (value): Row => [path, { batch_input: value }, 400, `${JSON.stringify(value).slice(0, 20)} is not an array`, parse],
    ),
    ...[5, 'x', true, null, [], [item]].map(
      (value): Row => [path, { batch_input: [value] }, 400, `an item ${JSON.stringify(value).slice(0, 20)}`, parse],
    ),
    [path, { batch_input: [item, 5] }, 400, 'a valid item and an invalid one', parse],
    [path, { batch_input: [{ ...item, reference: {} }] }, 400, 'a reference that is no text'],
    [
      path,
      { batch_input: [{ ...item, reference: '"}],"x":[' }] },
      200,
      'a reference that would end the response',
      /"reference":"\\"\}\],\\"x\\":\["/,
    ],
    [path, { batch_input: [{ ...item, reference: '\u2028</script>\u0000' }] }, 200, 'a reference of odd characters'],
    [
      path,
      { batch_input: [{ ...item, ['__proto__']: { reference: 'inherited' } }] },
      200,
      'an item inherits nothing from a prototype',
      /"reference":""/,
    ],
    [path, { batch_input: [{ ...item, frob: 1 }] }, 200, 'unknown members of items give no warning', /"warnings":null/],
    [path, { batch_input: [wrong] }, 400, 'the only item is bad', itemFailed],
    [path, { batch_input: [wrong, wrong], partial_failure_response_code: 207 }, 400, 'no item succeeds', itemFailed],
    [path, { batch_input: [item, wrong] }, 400, 'some items fail', itemFailed],
    [
      path,
      { batch_input: [item, wrong], partial_failure_response_code: 207 },
      207,
      "some items fail, with the caller's status",
      itemFailed,
    ],
    [path, { batch_input: [item, wrong], partial_failure_response_code: '0xc8' }, 200, 'a status as text', itemFailed],
    ...[204, 205, 304, 199, 100, 600, -1, 1e6].map(
      (code): Row => [
        path,
        { batch_input: [item, wrong], partial_failure_response_code: code },
        400,
        `${code} is not a status that allows a body`,
        /invalid HTTP response code override from partial_failure_response_code/,
      ],
    ),
    ...['x', 200.5, {}, []].map(
      (code): Row => [
        path,
        { batch_input: [item, wrong], partial_failure_response_code: code },
        400,
        `${JSON.stringify(code)} is not a status`,
        notConverted('partial_failure_response_code'),
      ],
    ),
    [path, { batch_input: [item], partial_failure_response_code: 204 }, 200, 'a success status for failures'],
    [path, { batch_input: Array(100_001).fill({}) }, 400, 'one item too many'],
  ];
});

export const items: readonly Row[] = [
  ['transit/encrypt/k', { batch_input: [{}] }, 400, 'an item without plaintext', /missing plaintext to encrypt/],
  ['transit/encrypt/k', { batch_input: [{ plaintext: null }] }, 200, 'null is the empty text, as in a single request'],
  ['transit/encrypt/k', { batch_input: [{ plaintext: 5 }] }, 400, 'an item of a number'],
  ['transit/encrypt/k', { batch_input: [{ plaintext: {} }] }, 400, 'an item of an object'],
  [
    'transit/encrypt/k',
    { batch_input: [{ plaintext: 'AAAA', key_version: '1' }] },
    200,
    'a version as text, as in a single request',
  ],
  ['transit/encrypt/k', { batch_input: [{ plaintext: 'AAAA', context: 5 }] }, 400, 'a number as base64', /illegal base64/],
  ['transit/encrypt/k', { batch_input: [{ plaintext: 'AAAA', key_version: -1 }] }, 400, 'a negative version', itemFailed],
  ['transit/encrypt/k', { batch_input: [{ plaintext: 'AAAA', nonce: 'AAAAAAAAAAAAAAAA' }] }, 400, 'a nonce in an item', /nonce/],
  [
    'transit/encrypt/d',
    { batch_input: [{ plaintext: 'AAAA', context: 'AAAA' }, { plaintext: 'AAAA' }] },
    400,
    'a context in some items',
    /context should be set either in all/,
  ],
  [
    'transit/decrypt/d',
    { batch_input: [{ ciphertext: '«derived»', context: 'AAAA' }, { ciphertext: '«derived»' }] },
    400,
    'a context in some items',
    /context should be set either in all/,
  ],
  ['transit/encrypt/unmade', { batch_input: [] }, 400, 'no item for a missing key', /missing batch input/],
  ['transit/encrypt/unmade', { batch_input: [{ plaintext: '!' }] }, 400, 'no valid item for a missing key'],
  ['transit/encrypt/unmade', { batch_input: [5] }, 400, 'no item for a missing key'],
  [
    'transit/encrypt/unmade',
    { batch_input: [{ plaintext: 'AAAA', context: 'AAAA' }, { plaintext: 'AAAA' }] },
    400,
    'a context in some items, for a missing key',
    /context should be set/,
  ],
  [
    'transit/encrypt/k',
    { batch_input: [{ plaintext: 'AAAA' }, {}], partial_failure_response_code: 207 },
    207,
    'an item without plaintext beside another',
    /missing plaintext to encrypt/,
  ],
  ['transit/decrypt/k', { batch_input: [{}] }, 400, 'an item without ciphertext', /missing ciphertext to decrypt/],
  ['transit/rewrap/k', { batch_input: [{}] }, 400, 'an item without ciphertext', /missing ciphertext/],
  ['transit/hmac/k', { batch_input: [{}] }, 400, 'an item without input', /missing input/],
  ['transit/cmac/m', { batch_input: [{}] }, 400, 'an item without input', /missing input/],
  ['transit/verify/k', { batch_input: [{}] }, 400, 'an item without anything', /batch_input/],
  [
    'transit/verify/k',
    {
      batch_input: [
        { input: 'AAAA', hmac: '«hmac»' },
        { input: 'AAAA', signature: 'svc:v1:AAAA' },
      ],
    },
    400,
    'items of two kinds',
    /batch_input/,
  ],
  [
    'transit/verify/k',
    { batch_input: [{ input: 'AAAA', hmac: '«hmac»' }, { input: 'AAAA' }] },
    400,
    'an item without its HMAC',
    /batch_input/,
  ],
  ['transit/cmac/m', { batch_input: [{ input: 'AAAA', mac_length: 17 }] }, 400, 'a length in an item', /mac_length/],
  ['transit/cmac/m', { batch_input: [{ input: 'AAAA', mac_length: '4' }] }, 200, 'a length as text, as in a single request'],
];
