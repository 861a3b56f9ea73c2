/**
 * What the disk holds is not what was written to it. The message is one plain sentence for the operator. A damaged node must
 * not vote, acknowledge or serve.
 */
export class StorageDamaged extends Error {
  override readonly name: string = 'StorageDamaged';
}

/** It was written by a later version: whole perhaps, but not for this one. */
export class NewerFormat extends StorageDamaged {
  override readonly name = 'NewerFormat';
}
