/**
 * The stored log contradicts other stored data, so acknowledged entries may be lost. This is not a bug of this program, and the program
 * cannot repair the log: the node must not vote, acknowledge or lead on it.
 */
export class LogDamage extends Error {
  override readonly name = 'LogDamage';
}
