import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { AccessError } from '@transitd/access';
import { FairQueue } from '@transitd/event-loop';
import { callerGroup } from '@transitd/process';

/** A stored password: scrypt (RFC 7914) of its UTF-8 bytes, with the parameters. */
export interface PasswordHash {
  /** Base64, like `hash`. */
  readonly salt: string;
  readonly hash: string;
  readonly cost: number;
  readonly blockSize: number;
  readonly parallelization: number;
}

export const passwordHashExample: PasswordHash = { salt: '', hash: '', cost: 0, blockSize: 0, parallelization: 0 };

/** Cost of hashing a password. */
export type PasswordWork = Pick<PasswordHash, 'cost' | 'blockSize' | 'parallelization'>;

/** 32 MiB, three passes: as costly for an attacker as 128 MiB in one pass. */
const defaultWork: PasswordWork = { cost: 2 ** 15, blockSize: 8, parallelization: 3 };
const hashBytes = 32;
/**
 * Maximum numbers of concurrent hashes and of waiting hashes. The first is small because the thread pool also writes the log; beyond
 * the second, logins are refused.
 */
const [workMax, waitingMax] = [2, 128];

interface Waiting {
  readonly begin: () => void;
  readonly refuse: (error: AccessError) => void;
}

/** Hashes passwords with bounded concurrency. Waiting callers take turns. */
export class Passwords {
  readonly #work: PasswordWork;
  readonly #scrypt: typeof scrypt;
  /** Compared with the password of an unknown user. */
  readonly #decoy: PasswordHash;
  #working = 0;
  readonly #waiting = new FairQueue<Waiting>(waitingMax);

  constructor(work: PasswordWork = defaultWork, hash: typeof scrypt = scrypt) {
    this.#work = work;
    this.#scrypt = hash;
    this.#decoy = { ...work, salt: randomBytes(16).toString('base64'), hash: randomBytes(hashBytes).toString('base64') };
  }

  /** Hashes a new password. The operator takes turns with the callers that log in. @throws AccessError `busy_logins` */
  async hash(password: string): Promise<PasswordHash> {
    const stored = { ...this.#work, salt: randomBytes(16).toString('base64') };
    return { ...stored, hash: (await this.#derive(password, stored, operator)).toString('base64') };
  }

  /**
   * Returns whether the password matches. Without a stored hash it returns false after the same work.
   * @param address - of the caller that logs in
   * @throws AccessError `busy_logins`
   */
  async matches(password: string, stored: PasswordHash | undefined, address: string): Promise<boolean> {
    const against = stored ?? this.#decoy;
    const derived = await this.#derive(password, against, callerGroup(address));
    const expected = Buffer.from(against.hash, 'base64');
    return derived.length === expected.length && timingSafeEqual(derived, expected) && stored !== undefined;
  }

  async #derive(
    password: string,
    { salt, cost, blockSize, parallelization }: Omit<PasswordHash, 'hash'>,
    caller: string,
  ): Promise<Buffer> {
    if (this.#working >= workMax) await this.#waitForSlot(caller);
    else this.#working += 1;
    try {
      return await new Promise((resolve, reject) => {
        const options = { cost, blockSize, parallelization, maxmem: 256 * cost * blockSize };
        this.#scrypt(password, Buffer.from(salt, 'base64'), hashBytes, options, (error, key) =>
          error ? reject(error) : resolve(key),
        );
      });
    } finally {
      const next = this.#waiting.take();
      if (next === undefined) this.#working -= 1;
      else next.begin(); // the next caller takes over this slot
    }
  }

  #waitForSlot(caller: string): Promise<void> {
    return new Promise((begin, refuse) => {
      this.#waiting.add(caller, { begin, refuse })?.refuse(new AccessError('busy_logins', 'too many logins at once'));
    });
  }
}

/** Operators wait under this name instead of an address. No address is equal to it, so operators have a turn of their own. */
const operator = '';
