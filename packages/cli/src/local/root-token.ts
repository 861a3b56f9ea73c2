import { StartError } from '@transitd/process';

/**
 * Decodes the token of a root generation. The encoded token is the token's bytes XORed with the bytes of the OTP, in base64 without
 * padding.
 * @throws StartError if the OTP does not match the token
 */
export function decodeRootToken(encoded: string, otp: string): string {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) throw new StartError('the encoded token is not valid base64');
  const [bytes, pad] = [Buffer.from(encoded, 'base64'), Buffer.from(otp)];
  if (bytes.length !== pad.length)
    throw new StartError('the OTP and the encoded token differ in length: use the OTP of the same attempt');
  const token = Buffer.from(bytes.map((byte, at) => byte ^ (pad[at] ?? 0))).toString('latin1');
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new StartError('the OTP does not match the encoded token: use the OTP of the same attempt');
  return token;
}
