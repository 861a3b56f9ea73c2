/**
 * What the disk holds is not what was written to it. The message is one plain sentence for the operator. A damaged node must
 * not vote, acknowledge or serve.
 */
export class StorageDamaged extends Error {
  override readonly name = 'StorageDamaged';
}
