/**
 * What refused a request, for the audit log. The caller gets only the message, which is often the same for several reasons, so that nobody
 * can test credentials or find out names.
 */
export interface RefusedBy {
  /**
   * The setting, capability or credential, by its name on the wire, such as `bound_claims.groups` or `denied_parameters.type`. Recorded in
   * clear, so it contains no value that a caller sent.
   */
  readonly constraint: string;
  /** The refused values; recorded as hashes. Absent if the entry of the request shows them already. */
  readonly given?: readonly string[] | undefined;
  /** The rules of policies that decided; empty if no rule matches the path. Absent if no rule refused it. */
  readonly rules?: readonly PolicyRule[] | undefined;
}

/** A rule of a policy, by the policy's name and by the path or pattern as the policy writes it. */
export interface PolicyRule {
  readonly policy: string;
  readonly path: string;
}

/**
 * An expected error: something was not done, for a reason that the code names. The message is one sentence and may be sent to the caller,
 * so it contains no secret. A package that refuses has one subclass with its closed union of codes; a layer that answers requests has one
 * table with a status for each code.
 */
export abstract class Refusal<Code extends string> extends Error {
  override readonly name: string;
  readonly code: Code;
  /** Private, so that no log shows the values in it. */
  readonly #refusedBy: RefusedBy | undefined;
  constructor(code: Code, message: string, options: ErrorOptions & { readonly refusedBy?: RefusedBy | undefined } = {}) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
    this.#refusedBy = options.refusedBy;
  }

  /** Undefined if the message says it. */
  get refusedBy(): RefusedBy | undefined {
    return this.#refusedBy;
  }
}

/**
 * The disk does not hold the bytes that were written to it. The message is one plain sentence for the operator. A damaged node must
 * not vote, acknowledge or serve.
 */
export class StorageDamaged extends Error {
  override readonly name: string = 'StorageDamaged';
}

/** A later version wrote this file: it may be intact, but this version cannot read it. */
export class NewerFormat extends StorageDamaged {
  override readonly name = 'NewerFormat';
}

/**
 * The disk refused a write, a sync or a read, or the caller broke the log's contract. Whether a failed write is on the disk
 * is unknown, so nothing is retried on the same handles and the process ends (fail-stop, exit code 74).
 */
export class StorageFailed extends Error {
  override readonly name = 'StorageFailed';
}

/** Another process uses this data directory. */
export class StorageInUse extends Error {
  override readonly name = 'StorageInUse';
}

/** Returns an error with one sentence for the operator: the file, what is wrong with it, what to do. */
export const damaged = (file: string, problem: string, remedy = 'restore this node from a backup or replace it by a new node') =>
  new StorageDamaged(`${file} ${problem}: ${remedy}.`);

export const newerFormat = (file: string) =>
  new NewerFormat(`${file} has a newer format than this version reads: run the version that wrote it.`);
