import { createHash, timingSafeEqual } from 'node:crypto';
import { type Binding, returnValue, safeReason } from './cryptoki.ts';
import { Pkcs11Failure } from './failure.ts';
import type { TokenPlace } from './token-key.ts';

/** An open, logged-in session and the keys found in it. */
export interface Session {
  readonly handle: Buffer;
  readonly slot: Buffer;
  /** Handles by search key. */
  readonly keys: Map<string, Buffer>;
}

interface OpenSession extends Session {
  readonly pin: Buffer;
}

/**
 * The sessions of one library, one for each token. A login applies to the whole token, so a caller with another PIN must log in
 * again to prove it. Tokens lock after a few wrong PINs, so a refused PIN is never tried again.
 */
export class Sessions {
  readonly #binding: Binding;
  readonly #open = new Map<string, OpenSession>();
  readonly #refusedPins: Set<string>;
  readonly #slots = new Map<string, Buffer>();
  #logouts = 0;

  /** @param refusedPins - digests of refused PINs; they outlive these sessions, since a token continues to count wrong PINs */
  constructor(binding: Binding, refusedPins: Set<string>) {
    this.#binding = binding;
    this.#refusedPins = refusedPins;
  }

  /**
   * Returns the session of a token, logged in with the PIN.
   * @throws Pkcs11Failure `token_not_found`, `ambiguous`, `pin_refused`, `token_failed`
   */
  session(place: TokenPlace): Session {
    const slot = this.#slotOf(place);
    const slotName = slot.toString('hex');
    const pin = digestOf(`${slotName} ${place.pin}`);
    const open = this.#open.get(slotName);
    if (open !== undefined && timingSafeEqual(open.pin, pin)) return open;
    const ofToken = digestOf(`${this.#serialOf(slot)} ${place.pin}`).toString('hex');
    if (this.#refusedPins.has(ofToken)) throw pinRefused();
    if (open !== undefined) this.drop(open);
    const session = this.#login(slot, place.pin, { digest: pin, ofToken });
    this.#open.set(slotName, session);
    return session;
  }

  /** Number of logouts so far; each ended the logins of all threads of this process. */
  get logouts(): number {
    return this.#logouts;
  }

  /** Logs out, closes a session that may be invalid, and clears the cached slots. */
  drop(session: Session): void {
    this.#logouts += 1;
    ignoringFailure(() => this.#binding.cryptoki.C_Logout(session.handle));
    this.#close(session);
  }

  dropAll(): void {
    for (const session of [...this.#open.values()]) this.drop(session);
  }

  /** Closes the sessions without a logout, after another thread has ended their logins. */
  closeAll(): void {
    for (const session of [...this.#open.values()]) this.#close(session);
  }

  #close({ handle, slot }: Session): void {
    this.#open.delete(slot.toString('hex'));
    this.#slots.clear();
    ignoringFailure(() => this.#binding.cryptoki.C_CloseSession(handle));
  }

  /** Identifies the token in a slot. Slot numbers change when the library enumerates its slots again. */
  #serialOf(slot: Buffer): string {
    const { manufacturerID, serialNumber } = attempt(() => this.#binding.cryptoki.C_GetTokenInfo(slot));
    return `${manufacturerID.trimEnd()} ${serialNumber.trimEnd()}`;
  }

  #login(slot: Buffer, pin: string, { digest, ofToken }: { readonly digest: Buffer; readonly ofToken: string }): OpenSession {
    const { cryptoki, constants } = this.#binding;
    const handle = attempt(() => cryptoki.C_OpenSession(slot, constants.CKF_SERIAL_SESSION | constants.CKF_RW_SESSION));
    try {
      this.#provePin(handle, pin);
    } catch (error) {
      const value = returnValue(error);
      cryptoki.C_CloseSession(handle);
      if (value !== undefined && pinFaults.has(value)) {
        this.#refusedPins.add(ofToken);
        throw pinRefused();
      }
      if (value === 'CKR_PIN_LOCKED') throw new Pkcs11Failure('pin_refused', 'the token has locked its PIN');
      throw new Pkcs11Failure('token_failed', `the token refused the login: ${safeReason(error)}`);
    }
    return { handle, slot, pin: digest, keys: new Map() };
  }

  /** Logs in. If another thread of this process is logged in, logs out first, since its login does not prove this PIN. */
  #provePin(handle: Buffer, pin: string): void {
    const { cryptoki, constants } = this.#binding;
    try {
      cryptoki.C_Login(handle, constants.CKU_USER, pin);
    } catch (error) {
      if (returnValue(error) !== 'CKR_USER_ALREADY_LOGGED_IN') throw error;
      this.#logouts += 1;
      cryptoki.C_Logout(handle);
      cryptoki.C_Login(handle, constants.CKU_USER, pin);
    }
  }

  #slotOf({ slot, tokenLabel }: TokenPlace): Buffer {
    const place = JSON.stringify([slot, tokenLabel]);
    const cached = this.#slots.get(place);
    if (cached !== undefined) return cached;
    const { cryptoki } = this.#binding;
    const matching = attempt(() => cryptoki.C_GetSlotList(true)).filter((each) => {
      if (slot !== undefined && !isSlotNumber(each, slot)) return false;
      return tokenLabel === undefined || attempt(() => cryptoki.C_GetTokenInfo(each)).label.trimEnd() === tokenLabel;
    });
    const [found, ...more] = matching;
    if (found === undefined) throw new Pkcs11Failure('token_not_found', 'the library shows no such token');
    if (more.length > 0) throw new Pkcs11Failure('ambiguous', 'the library shows more than one matching token: set slot');
    this.#slots.set(place, found);
    return found;
  }
}

const pinFaults: ReadonlySet<string> = new Set(['CKR_PIN_INCORRECT', 'CKR_PIN_INVALID', 'CKR_PIN_LEN_RANGE', 'CKR_PIN_EXPIRED']);
const pinRefused = (): Pkcs11Failure => new Pkcs11Failure('pin_refused', 'the token refused the PIN; it is not tried again');

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest();

/**
 * Returns whether a handle is the slot number. Handles are CK_ULONG in the machine's byte order; little-endian on all supported
 * platforms but one.
 */
function isSlotNumber(handle: Buffer, slot: number): boolean {
  const bytes = Buffer.alloc(handle.length);
  bytes.writeUIntLE(slot, 0, 6);
  return handle.equals(bytes);
}

/** Ends something that may have ended already. */
function ignoringFailure(end: () => void): void {
  try {
    end();
  } catch {
    // It has ended already.
  }
}

/** @throws Pkcs11Failure `token_failed` */
function attempt<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw new Pkcs11Failure('token_failed', `the token failed: ${safeReason(error)}`);
  }
}
