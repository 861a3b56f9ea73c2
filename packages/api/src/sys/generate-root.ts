import { credential, dataReply, object, RequestError, string } from '@transitd/http';
import * as answers from '../operation/answers.ts';
import { open, type Route } from '../operation/operation.ts';
import { ceremonyRoutes } from './token-ceremony.ts';

const ceremony = ceremonyRoutes({
  name: 'generate-root',
  path: 'sys/generate-root',
  guardedPath: 'sys/generate-root-token',
  about: 'root token generation',
  generation: (barrier) => barrier.rootGeneration,
  create: async ({ services }) => {
    const { token, record } = await services.registry.createRoot();
    return { token, issued: { token, accessor: record.accessor } };
  },
});

/** Removes the OTP from an encoded token. It uses nothing but the request, so it needs no token. */
const decode = open({
  name: 'decode-token',
  about: 'Decode the token that a generation returned',
  takes: {
    encoded_token: credential('The encoded token', { required: true }),
    otp: credential('The OTP of the attempt', { required: true }),
  },
  answers: answers.data(object({ token: string })),
  wraps: true,
  run: (_, { values }) => {
    const { encoded_token: encoded = '', otp = '' } = values;
    const [masked, mask] = [Buffer.from(encoded, 'base64'), Buffer.from(otp)];
    if (masked.length === 0 || masked.length !== mask.length)
      throw new RequestError('invalid_request', 'encoded_token and otp must be given, and have the same length once decoded');
    const token = Buffer.from(masked.map((byte, at) => byte ^ (mask[at] ?? 0))).toString('latin1');
    if (!/^[\x21-\x7e]+$/.test(token)) throw new RequestError('invalid_request', 'encoded_token does not belong to this otp');
    return dataReply({ token });
  },
});

/** Routes that generate a root token from key shares or recovery shares, for use when no root token is left. */
export const generateRootRoutes: readonly Route[] = [...ceremony, { path: 'sys/decode-token', operations: { POST: decode } }];
