/** Associated data of each ciphertext. A seal therefore accepts no ciphertext that the same key produced for another purpose. */
export const purpose = Buffer.from('transitd seal key 1');
