/**
 * The stored log does not fit what else is stored, so entries that were acknowledged may be gone. Not a bug of this program
 * and not to be mended by it: the node must not vote, acknowledge or lead on such a log.
 */
export class LogDamage extends Error {
  override readonly name = 'LogDamage';
}
