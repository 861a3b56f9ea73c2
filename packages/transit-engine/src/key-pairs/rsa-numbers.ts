import { checkPrime } from 'node:crypto';
import { promisify } from 'node:util';
import { nextTurn, SerialQueue } from '@transitd/event-loop';
import { TransitError } from '../values/errors.ts';

/** The numbers of an RSA private key of two primes (RFC 8017 §3.2), big-endian. */
export interface RsaNumbers {
  readonly modulus: Uint8Array;
  readonly exponent: Uint8Array;
  readonly d: Uint8Array;
  readonly p: Uint8Array;
  readonly q: Uint8Array;
  readonly dP: Uint8Array;
  readonly dQ: Uint8Array;
  readonly qInverse: Uint8Array;
}

/** FIPS 186-5 A.1.3: the primes must differ in their first 100 bits. Otherwise Fermat's method finds the primes. */
const distanceBitsBelowHalf = 100;
/** A public modulus with a prime factor up to this bound is refused. Properly generated keys have no such factor. */
const smallFactorMax = 2 ** 16 + 1;
/** Steps of Fermat's method on a public modulus. */
const fermatSteps = 100;

/**
 * Returns the reason why the numbers are not a valid key, or undefined if they are valid (FIPS 186-5 A.1.1, SP 800-56B §6.4.1). OpenSSL
 * tests the primes on the thread pool with at least 64 random bases, so that even a composite number constructed to pass the test fails it.
 * Keys are checked one after the other, because the pool's few threads also sync the log. The copies of the numbers stay on the JavaScript
 * heap until they are garbage-collected.
 * @param bits - of the modulus
 * @throws TransitError `busy_generation` when too many keys wait for their check
 */
export async function rsaFault(bits: number, numbers: RsaNumbers): Promise<string | undefined> {
  const [n, e, d, p, q] = [numbers.modulus, numbers.exponent, numbers.d, numbers.p, numbers.q].map(numberOf) as Five;
  const [dP, dQ, qInverse] = [numbers.dP, numbers.dQ, numbers.qInverse].map(numberOf) as Three;
  const half = bits / 2;
  const top = 1n << BigInt(half - 1);
  if (p * q !== n) return mismatch;
  if (p === q) return 'the two primes are the same';
  if (p < top || q < top || p >> BigInt(half) > 0n || q >> BigInt(half) > 0n) {
    return `each prime must have ${half} bits`;
  }
  const distance = p > q ? p - q : q - p;
  if (distance >> BigInt(half - distanceBitsBelowHalf) === 0n) return 'the two primes are too close to each other';
  // ed = 1 modulo p − 1 and modulo q − 1 is equivalent to ed = 1 modulo their least common multiple.
  if (d >= n || (e * d) % (p - 1n) !== 1n || (e * d) % (q - 1n) !== 1n) return mismatch;
  if (d >> BigInt(half) === 0n) return 'the private exponent is too small';
  if (dP !== d % (p - 1n) || dQ !== d % (q - 1n)) return mismatch;
  if (qInverse >= p || (qInverse * q) % p !== 1n) return mismatch;
  const prime = await queue.run(async () => (await isPrime(p)) && (await isPrime(q)));
  return prime ? undefined : 'p or q is not a prime';
}

/**
 * Returns the reason why the modulus of a public half is not valid, or undefined if it is valid. Without the primes, fewer checks are
 * possible: the modulus is refused if it is a prime or a square, has a prime factor up to 65,537, or has two factors so close that Fermat's
 * method finds them (SP 800-56B §6.4.2.2 and the checks of public certificate authorities).
 * @throws TransitError `busy_generation`
 */
export async function modulusFault(modulus: Uint8Array): Promise<string | undefined> {
  const n = numberOf(modulus);
  if (smallPrimes().some((prime) => n % prime === 0n)) return 'the modulus has a small factor';
  await nextTurn();
  if (hasCloseFactors(n)) return 'the two primes are too close to each other';
  return (await queue.run(() => isPrime(n))) ? 'the modulus is a prime' : undefined;
}

const mismatch = 'the parts of the key do not belong together';

type Three = [bigint, bigint, bigint];
type Five = [bigint, bigint, bigint, bigint, bigint];

const numberOf = (magnitude: Uint8Array): bigint => BigInt(`0x0${Buffer.from(magnitude).toString('hex')}`);

/** Whether n = a² − b² for an a within a few steps above the root of n. With b = 0, n is a square. */
function hasCloseFactors(n: bigint): boolean {
  const root = squareRoot(n);
  let a = root * root === n ? root : root + 1n;
  for (let step = 0; step < fermatSteps; step++, a++) {
    const squared = a * a - n;
    const b = squareRoot(squared);
    if (b * b === squared) return true;
  }
  return false;
}

/** Returns the square root, rounded down, by Newton's method. */
function squareRoot(n: bigint): bigint {
  if (n < 2n) return n;
  let x = 1n << BigInt(Math.ceil(n.toString(16).length * 2) + 1);
  for (;;) {
    const next = (x + n / x) >> 1n;
    if (next >= x) return x;
    x = next;
  }
}

let known: readonly bigint[] | undefined;

/** Returns the primes up to {@link smallFactorMax}; computes them on first use by Eratosthenes' sieve. */
function smallPrimes(): readonly bigint[] {
  if (known !== undefined) return known;
  const composite = new Uint8Array(smallFactorMax + 1);
  const primes: bigint[] = [];
  for (let number = 2; number <= smallFactorMax; number++) {
    if (composite[number] === 1) continue;
    primes.push(BigInt(number));
    for (let multiple = number * number; multiple <= smallFactorMax; multiple += number) composite[multiple] = 1;
  }
  known = primes;
  return primes;
}

const isPrime = promisify<bigint, boolean>(checkPrime);

/** Maximum number of keys in the queue; each check takes up to a quarter of a second. */
const checksMax = 64;
const queue = new SerialQueue(
  checksMax,
  () => new TransitError('busy_generation', 'too many RSA keys are being checked; nothing was done'),
);
