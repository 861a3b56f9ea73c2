import { ActivationFailed, ActivationTokenError } from '@transitd/cluster';
import { PromotionRefused, RegistryRefused } from '@transitd/replication';

/**
 * `wrong_mode`: the role of this cluster does not allow it. `refused`: a promotion is refused. `operation_token`: the operation token is
 * not valid.
 */
export type ReplicationRefusal = 'wrong_mode' | 'seal_type' | 'refused' | 'operation_token';

/** Thrown when an operation of replication is refused; nothing has changed. The message contains the reason. */
export class ReplicationRefused extends Error {
  override readonly name = 'ReplicationRefused';
  readonly code: ReplicationRefusal;
  constructor(code: ReplicationRefusal, message: string) {
    super(message);
    this.code = code;
  }
}

/** Runs a task. The messages of its refusals contain the reason. @throws ReplicationRefused */
export async function refusing<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    const isRefusal =
      error instanceof RegistryRefused ||
      error instanceof PromotionRefused ||
      error instanceof ActivationTokenError ||
      error instanceof ActivationFailed;
    throw isRefusal ? new ReplicationRefused('refused', error.message) : error;
  }
}
