/** Exit codes of the process. */
export const exitCode = {
  /** The work is done, or the process was stopped by a signal. */
  ok: 0,
  /**
   * The configuration is wrong, the start failed, or a command failed on this side: a file, an argument, a server that does not respond.
   */
  start: 1,
  /** The server refused the request or is sealed; `policy test`: the policy denies it; `audit verify`: the hash chain is broken. */
  denied: 2,
  /** An invariant was violated: a bug in this program. */
  invariant: 70,
  /** The disk failed or its data is damaged: nothing is acknowledged from then on (fail-stop). */
  storage: 74,
} as const;

/** A start or a command that fails for a reason on this side. The message is one sentence for the operator, or a list of faults. */
export class StartError extends Error {
  override readonly name = 'StartError';
  /** Each fault as a line of its own; the message if it is one sentence. */
  readonly faults: readonly string[];

  constructor(message: string, faults: readonly string[] = [message]) {
    super(message);
    this.faults = faults;
  }
}
