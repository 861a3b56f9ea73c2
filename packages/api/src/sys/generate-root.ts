import { randomInt } from 'node:crypto';
import { allows, callerGroup, withinCidrs } from '@transitd/access';
import { type Barrier, parseShare, type RootGenerationStatus } from '@transitd/barrier';
import {
  any,
  boolean,
  constant,
  type FieldSchema,
  integer,
  noContentReply,
  object,
  permissionDenied,
  type Reply,
  RequestError,
  string,
  text,
  unavailable,
} from '@transitd/http';
import type { Node, Services } from '@transitd/node';
import * as answers from '../operation/answers.ts';
import {
  type Call,
  type OpenOperation,
  type OperationDescription,
  open,
  type Route,
  type TypedCall,
} from '../operation/operation.ts';

interface UnsealedNode {
  readonly barrier: Barrier;
  readonly services: Services;
}

/**
 * Makes an operation that needs key shares instead of a token, since it is used when no root token is left. Attempts are kept in memory.
 */
const generateRootOperation = <S extends FieldSchema = Record<never, never>>(
  name: string,
  description: OperationDescription<S>,
  run: (unsealed: UnsealedNode, call: TypedCall<S>, token: string | undefined) => Promise<Reply> | Reply,
): OpenOperation =>
  open({ name, where: 'leader', ...description, run: (node, call, token) => run(unsealedNode(node), call, token) });

function unsealedNode(node: Node): UnsealedNode {
  const { store, services } = node;
  if (store === undefined || services === undefined) throw unavailable(node);
  return { barrier: store.barrier, services };
}

/** Length of a token of this server. */
const tokenCharacters = 26;
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const newOtp = (): string => Array.from({ length: tokenCharacters }, () => alphabet[randomInt(alphabet.length)]).join('');

/** Returns the status without the envelope, as clients expect. @param encoded - the masked token, once the token is created */
function statusReply({ barrier }: UnsealedNode, status: RootGenerationStatus, { otp = '', encoded = '' } = {}): Reply {
  const body = {
    started: status.started,
    nonce: status.nonce,
    progress: status.progress,
    required: status.started ? status.required : barrier.sealStatus.t,
    complete: encoded !== '',
    encoded_token: encoded,
    encoded_root_token: encoded,
    pgp_fingerprint: '',
    otp,
    otp_length: tokenCharacters,
  };
  return { status: 200, body: `${JSON.stringify(body)}\n` };
}

const statusAnswer = answers.plain(
  object({
    started: boolean,
    nonce: { ...string, description: 'Returned only when the generation is started or a share is submitted.' },
    progress: integer,
    required: integer,
    complete: boolean,
    encoded_token: {
      ...string,
      description: 'The token XOR the OTP, in base64 without padding; empty until the last required share is submitted.',
    },
    encoded_root_token: string,
    pgp_fingerprint: constant(''),
    otp: { ...string, description: 'The generated OTP; returned only when the generation is started.' },
    otp_length: constant(tokenCharacters),
  }),
);

/**
 * Anybody may read the progress, but not the nonce, because the nonce allows cancellation. The initiator gives the nonce to the
 * participants.
 */
const status = generateRootOperation(
  'generate-root-status',
  { about: 'Read the progress of root token generation', answers: statusAnswer },
  (serviceLoader) => statusReply(serviceLoader, { ...serviceLoader.barrier.rootGeneration.status, nonce: '' }),
);

const startFields = {
  otp: text(`One-time password that masks the token: ${tokenCharacters} printable characters; generated if empty`),
  pgp_key: any('Not supported; must be empty'),
};

const started = { about: 'Start root token generation', takes: startFields, answers: statusAnswer };

const start = generateRootOperation('generate-root-start', started, async (serviceLoader, { values, address }) => {
  const { pgp_key: pgpKey } = values;
  if (pgpKey !== undefined && pgpKey !== null && pgpKey !== '')
    throw new RequestError('invalid_request', 'pgp_key is not supported: send an otp, or leave otp empty to have one generated');
  const given = values.otp ?? '';
  if (given !== '' && !/^[\x21-\x7e]{26}$/.test(given))
    throw new RequestError('invalid_request', `OTP string is wrong length: expected ${tokenCharacters} printable characters`);
  const otp = given === '' ? newOtp() : given;
  const begun = await serviceLoader.barrier.rootGeneration.start(Buffer.from(otp), callerGroup(address));
  return statusReply(serviceLoader, begun, { otp: given === '' ? otp : '' });
});

const shareFields = {
  key: text('Key share, in hex or base64', { required: true }),
  nonce: text('Nonce of the attempt', { required: true }),
};

const updated = {
  about: 'Submit a key share; the last required share returns the encoded token',
  takes: shareFields,
  answers: statusAnswer,
};

const update = generateRootOperation('generate-root-update', updated, async (serviceLoader, { values }) => {
  const share = parseShare(values.key ?? '');
  const { barrier, services } = serviceLoader;
  let issued: Reply['issued'];
  const make = async (): Promise<string> => {
    const { token, record } = await services.registry.createRoot();
    issued = { token, accessor: record.accessor };
    return token;
  };
  const step = await barrier.rootGeneration.update({ nonce: values.nonce ?? '', share }, make).finally(() => share.fill(0));
  const encoded = step.complete ? step.masked.toString('base64').replace(/=+$/, '') : '';
  return { ...statusReply(serviceLoader, step.status, { encoded }), ...(issued && { issued }) };
});

/** Cancellation needs the nonce, or a token with `sudo` on this path (decision 70). */
const cancelFields = { nonce: text('Nonce of the attempt; if omitted, a token with `sudo` is required') };

const cancelled = { about: 'Cancel root token generation', takes: cancelFields, answers: answers.noContent };

const cancel = generateRootOperation(
  'generate-root-cancel',
  cancelled,
  async ({ barrier, services }, { values, ...call }, token) => {
    const { nonce = '' } = values;
    if (nonce !== '') await barrier.rootGeneration.cancel({ nonce });
    else if (await mayCancel(services, call, token)) await barrier.rootGeneration.cancel('privileged');
    else throw permissionDenied();
    return noContentReply;
  },
);

async function mayCancel(
  { tokens }: Services,
  { path, address }: Pick<Call, 'path' | 'address'>,
  token: string | undefined,
): Promise<boolean> {
  const principal = token === undefined ? undefined : await tokens.authenticate(token);
  const isGood = principal?.record.usesLeft === 0 && withinCidrs(principal.record.boundCidrs, address);
  return isGood && allows(principal, 'delete', path) && allows(principal, 'sudo', path);
}

/** Routes that generate a root token from key shares or recovery shares. */
export const generateRootRoutes: readonly Route[] = [
  { path: 'sys/generate-root/attempt', operations: { GET: status, POST: start, DELETE: cancel } },
  { path: 'sys/generate-root/update', operations: { POST: update } },
];
