import { StartError } from '@transitd/process';

/**
 * The token that a root generation has made: base64 without padding of its bytes, each XORed with that of the OTP.
 * @throws StartError when the two do not fit
 */
export function unmasked(encoded: string, otp: string): string {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) throw new StartError('the encoded token is not base64');
  const [bytes, pad] = [Buffer.from(encoded, 'base64'), Buffer.from(otp)];
  if (bytes.length !== pad.length) throw new StartError('the OTP is not as long as the token: it is another one');
  const token = Buffer.from(bytes.map((byte, at) => byte ^ (pad[at] ?? 0))).toString('latin1');
  if (!/^[\x21-\x7e]+$/.test(token)) throw new StartError('the OTP is another one than that of this token');
  return token;
}
