/** Associated data of each ciphertext: no other use of the same key gives a ciphertext that a seal accepts. */
export const purpose = Buffer.from('transitd seal key 1');
