/** A failure together with warnings about the members of its request. The response has both, so the caller learns everything at once. */
class FailureWithWarnings extends Error {
  override readonly name = 'FailureWithWarnings';
  readonly failure: unknown;
  readonly warnings: readonly string[];
  constructor(failure: unknown, warnings: readonly string[]) {
    super('a failure with warnings', { cause: failure });
    this.failure = failure;
    this.warnings = warnings;
  }
}

/**
 * Returns the failure with these warnings before its own ones; the failure itself if there are none. The refusal of a caller without the
 * rights has none, so that it is the same for every cause.
 */
export function withWarnings(failure: unknown, warnings: readonly string[]): unknown {
  if (warnings.length === 0 || (failure as { readonly code?: unknown } | null)?.code === 'permission_denied') return failure;
  if (!(failure instanceof FailureWithWarnings)) return new FailureWithWarnings(failure, warnings);
  return new FailureWithWarnings(failure.failure, [...warnings, ...failure.warnings]);
}

/** Separates a failure from the warnings about its request. Use it wherever the kind of a failure of an operation decides something. */
export const withoutWarnings = (thrown: unknown): { readonly failure: unknown; readonly warnings: readonly string[] } =>
  thrown instanceof FailureWithWarnings ? thrown : { failure: thrown, warnings: [] };
