/** Exit codes of the process. */
export const exitCode = {
  /** Asked to stop. */
  ok: 0,
  /** Bad configuration, the start failed, or a mistake on this side: a file, an argument, no answer. */
  start: 1,
  /** The server refused, or is sealed; `policy test`: the policy does not allow it; `audit verify`: the chain is broken. */
  denied: 2,
  /** A broken invariant: a bug in this program. */
  invariant: 70,
  /** The disk failed, or what it holds is damaged: nothing is acknowledged any more (fail-stop). */
  storage: 74,
} as const;

/** A command that cannot go on, for a reason on this side. The message is one plain sentence for the operator. */
export class StartError extends Error {
  override readonly name = 'StartError';
}
