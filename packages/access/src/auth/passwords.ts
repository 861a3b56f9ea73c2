import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { AccessError } from '../errors.ts';
import { FairLine } from '../scheduling/fair-line.ts';
import { callerGroup } from '../values/cidr.ts';

/** A password as it is stored: scrypt (RFC 7914) of its UTF-8 bytes, with what that was done by. */
export interface PasswordHash {
  /** base64, as the hash. */
  readonly salt: string;
  readonly hash: string;
  readonly cost: number;
  readonly blockSize: number;
  readonly parallelization: number;
}

export const passwordHashExample: PasswordHash = { salt: '', hash: '', cost: 0, blockSize: 0, parallelization: 0 };

/** What a guess costs. */
export type PasswordWork = Pick<PasswordHash, 'cost' | 'blockSize' | 'parallelization'>;

/** 32 MiB, three times over: as costly for a guesser as 128 MiB once. */
const defaultWork: PasswordWork = { cost: 2 ** 15, blockSize: 8, parallelization: 3 };
const hashBytes = 32;
/** Work at once: the threads that do it also write the log. Work that waits behind it: more is refused. */
const [workMax, waitingMax] = [2, 128];

interface Waiting {
  readonly begin: () => void;
  readonly refuse: (error: AccessError) => void;
}

/** Hashes passwords, a bounded number at a time; callers that wait take turns. */
export class Passwords {
  readonly #work: PasswordWork;
  /** What an unknown user's password is compared with. */
  readonly #decoy: PasswordHash;
  #working = 0;
  readonly #waiting = new FairLine<Waiting>(waitingMax);

  constructor(work: PasswordWork = defaultWork) {
    this.#work = work;
    this.#decoy = { ...work, salt: randomBytes(16).toString('base64'), hash: randomBytes(hashBytes).toString('base64') };
  }

  /** For an operator, who takes turns with the callers that log in. @throws AccessError `busy_logins` */
  async hash(password: string): Promise<PasswordHash> {
    const stored = { ...this.#work, salt: randomBytes(16).toString('base64') };
    return { ...stored, hash: (await this.#derive(password, stored, operator)).toString('base64') };
  }

  /**
   * Whether it is the password. Without a hash it is not, after the same work.
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
        scrypt(password, Buffer.from(salt, 'base64'), hashBytes, options, (error, key) => (error ? reject(error) : resolve(key)));
      });
    } finally {
      const next = this.#waiting.take();
      if (next === undefined) this.#working -= 1;
      else next.begin(); // the place passes on
    }
  }

  #waitForSlot(caller: string): Promise<void> {
    return new Promise((begin, refuse) => {
      this.#waiting.add(caller, { begin, refuse })?.refuse(new AccessError('busy_logins', 'too many logins at once'));
    });
  }
}

/** No address: an operator's work shares no turn with callers from anywhere. */
const operator = '';
