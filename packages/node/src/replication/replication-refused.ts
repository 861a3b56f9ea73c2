/**
 * `wrong_mode`: the role of this cluster does not allow it. `level`: the feature level of the cluster is too low. `refused`: a promotion is
 * refused. `operation_token`: the operation token is not valid.
 */
export type ReplicationRefusal = 'wrong_mode' | 'level' | 'seal_type' | 'refused' | 'operation_token';

/** An operation of replication was refused; nothing has changed. The message says why. */
export class ReplicationRefused extends Error {
  override readonly name = 'ReplicationRefused';
  readonly code: ReplicationRefusal;
  constructor(code: ReplicationRefusal, message: string) {
    super(message);
    this.code = code;
  }
}
