/**
 * The stored log contradicts other stored data, so acknowledged entries may be lost. This is not a bug of this program, and it cannot
 * repair it: the node must not vote, acknowledge or lead on such a log.
 */
export class LogDamage extends Error {
  override readonly name = 'LogDamage';
}
