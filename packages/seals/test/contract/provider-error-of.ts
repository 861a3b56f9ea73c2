import { ProviderError } from '@transitd/barrier';

/** Returns the error of a provider with which the attempt fails. @throws if it succeeds or fails otherwise */
export async function providerErrorOf(attempt: Promise<unknown>): Promise<ProviderError> {
  const error: unknown = await attempt.then(
    () => new Error('it did not fail'),
    (reason: unknown) => reason,
  );
  if (error instanceof ProviderError) return error;
  throw error;
}
