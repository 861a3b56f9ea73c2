import { checkJsonLimits, parseJsonInSlices, runInSlices } from '@transitd/event-loop';
import { invalidBackup, versionsMax } from './key-backup.ts';

/** Range of digits of a long number: more than any 64-bit number has. Only the numbers of key pairs are that long. */
const [longDigitsMin, longDigitsMax] = [20, 1300];
const longNumber = new RegExp(`[:[,]\\d{${longDigitsMin}}`);
const longNumbers = new RegExp(`([:[,])(\\d{${longDigitsMin},${longDigitsMax}})(?=[,\\]}])`, 'g');
/** Matches a piece that consists of one long number. */
const longWord = new RegExp(`^\\d{${longDigitsMin},${longDigitsMax}}$`);
/**
 * Limits on the JSON of a backup, checked before anything of it is built. A peer writes more than twenty characters for each value, and
 * most versions twice, as one object each, so a backup that fits into a request has fewer values. At depth 3 are the versions by number,
 * elsewhere the fields of one record.
 */
const [fieldsMax, versionsDepth] = [128, 3];
const limits = {
  depthMax: 16,
  valuesMax: 1_500_000,
  containersMax: versionsMax,
  membersMax: (depth: number) => (depth === versionsDepth ? versionsMax : fieldsMax),
  textCharsMax: 64 * 1024,
  // The error omits the reason, because it could quote the text, which is secret.
  refusal: () => invalidBackup('it is not JSON of the expected structure'),
};
/**
 * Size limit of a backup with long numbers: about 700 versions of the largest key pairs. Converting the numbers of a longer text would
 * block the event loop.
 */
const withLongNumbersBytesMax = 8 * 1024 * 1024;

/**
 * Parses the JSON of a backup and wipes its bytes. Numbers beyond the precision of JSON.parse become strings. If a string contains such a
 * number, the conversion breaks the JSON and the backup is refused.
 * @throws TransitError `invalid_request`
 */
export async function parseMembers(backup: Buffer): Promise<Members> {
  const text = backup.toString();
  backup.fill(0);
  const parse = (piece: string): unknown => {
    if (!longNumber.test(`:${piece}`)) return JSON.parse(piece);
    if (text.length > withLongNumbersBytesMax)
      throw invalidBackup('a backup of key pairs must not exceed 8 MiB; import the versions one by one');
    return longWord.test(piece) ? piece : JSON.parse(piece.replace(longNumbers, '$1"$2"'));
  };
  await runInSlices(checkJsonLimits(text, limits));
  return new Members(await parseJsonInSlices(text, { ...limits, parse }));
}

/** Reads the members of a JSON object and checks their types. Null counts as absent. */
export class Members {
  readonly #object: Readonly<Record<string, unknown>>;

  constructor(value: unknown) {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw invalidBackup('it is not JSON of the expected structure');
    this.#object = value as Readonly<Record<string, unknown>>;
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#object, name) && (this.#object[name] ?? null) !== null;
  }

  object(name: string): Members {
    return new Members(this.#own(name));
  }

  /** A list of objects. Returns the object at an index; undefined for null and beyond the ends. */
  objects(name: string): (index: number) => Members | undefined {
    const value = this.#own(name);
    if (!Array.isArray(value)) throw invalidBackup(`its member ${name} is not a list`);
    return (index) => {
      const entry: unknown = value[index];
      return (entry ?? null) === null ? undefined : new Members(entry);
    };
  }

  text(name: string): string {
    const value = this.#own(name) ?? '';
    return typeof value === 'string' ? value : this.#refuse(name);
  }

  flag(name: string): boolean {
    const value = this.#own(name) ?? false;
    return typeof value === 'boolean' ? value : this.#refuse(name);
  }

  integer(name: string): number {
    const value = this.number(name);
    return Number.isSafeInteger(value) ? value : this.#refuse(name);
  }

  number(name: string): number {
    const value = this.#own(name) ?? 0;
    return typeof value === 'number' ? value : this.#refuse(name);
  }

  /** A number of any size, big-endian without leading zeros; undefined when absent. */
  magnitude(name: string): Buffer | undefined {
    return this.has(name) ? (magnitudeOf(this.#own(name)) ?? this.#refuse(name)) : undefined;
  }

  /** A list of at most two such numbers. */
  magnitudes(name: string): Buffer[] {
    const value = this.#own(name);
    if (!Array.isArray(value) || value.length > 2) return this.#refuse(name);
    return value.map((entry: unknown) => magnitudeOf(entry) ?? this.#refuse(name));
  }

  /** The texts of a list of at most `max`; empty when absent. */
  texts(name: string, max: number): string[] {
    const value = this.#own(name) ?? [];
    const isTexts = Array.isArray(value) && value.length <= max && value.every((entry) => typeof entry === 'string');
    return isTexts ? value : this.#refuse(name);
  }

  /** Bytes of a base64 text; empty when absent. */
  bytes(name: string): Buffer {
    const text = this.text(name);
    const bytes = Buffer.from(text, 'base64');
    return bytes.toString('base64') === text ? bytes : this.#refuse(name);
  }

  #own(name: string): unknown {
    return Object.hasOwn(this.#object, name) ? this.#object[name] : undefined;
  }

  #refuse(name: string): never {
    throw invalidBackup(`its member ${name} has the wrong type`);
  }
}

/** A backup can also contain digits in quotes. Their number is limited here, because a long conversion would block the event loop. */
function magnitudeOf(value: unknown): Buffer | undefined {
  const isNumber =
    typeof value === 'number'
      ? Number.isSafeInteger(value) && value >= 0
      : typeof value === 'string' && value.length <= longDigitsMax && /^\d+$/.test(value);
  if (!isNumber) return undefined;
  const digits = BigInt(value as number | string).toString(16);
  return Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex');
}
