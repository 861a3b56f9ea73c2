import { randomInt } from 'node:crypto';
import { allows, callerGroup, withinCidrs } from '@transitd/access';
import { type Barrier, parseShare, type TokenGeneration, type TokenGenerationStatus } from '@transitd/barrier';
import {
  any,
  boolean,
  constant,
  credential,
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

export interface UnsealedNode {
  readonly node: Node;
  readonly barrier: Barrier;
  readonly services: Services;
}

/** A ceremony in which key shares, or recovery shares, make a token. */
export interface TokenCeremony {
  /** Prefix of the names of its operations. */
  readonly name: string;
  /** Name of the ceremony in descriptions, such as "root token generation". */
  readonly about: string;
  readonly onSecondary?: true;
  readonly generation: (barrier: Barrier) => TokenGeneration;
  /** Creates the token once enough holders have agreed. */
  readonly create: (unsealed: UnsealedNode) => Promise<Pick<Reply, 'issued'> & { readonly token: string }>;
  /** Throws where the ceremony is not possible. */
  readonly check?: (node: Node) => void;
}

/** Length of a token of this server. */
const tokenCharacters = 26;
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const newOtp = (): string => Array.from({ length: tokenCharacters }, () => alphabet[randomInt(alphabet.length)]).join('');

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

/** Returns the status without the envelope, as clients expect. @param encoded - the masked token, once the token is created */
function statusReply({ barrier }: UnsealedNode, status: TokenGenerationStatus, { otp = '', encoded = '' } = {}): Reply {
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

const startFields = {
  otp: text(`One-time password that masks the token: ${tokenCharacters} printable characters; generated if empty`),
  pgp_key: any('Not supported; must be empty'),
};

const shareFields = {
  key: credential('Key share, in hex or base64', { required: true }),
  nonce: credential('Nonce of the attempt', { required: true }),
};

/** Cancellation needs the nonce, or a token with `sudo` on this path (decision 70). */
const cancelFields = { nonce: credential('Nonce of the attempt; if omitted, a token with `sudo` is required') };

/**
 * Returns the routes `attempt` and `update` of a ceremony below a path. They need key shares instead of a token. Attempts are kept in the
 * memory of the active node.
 */
export function ceremonyRoutes(path: string, ceremony: TokenCeremony): readonly Route[] {
  const { name, about, onSecondary, generation, create, check } = ceremony;
  const operation = <S extends FieldSchema = Record<never, never>>(
    step: string,
    description: OperationDescription<S>,
    run: (unsealed: UnsealedNode, call: TypedCall<S>, token: string | undefined) => Promise<Reply> | Reply,
  ): OpenOperation =>
    open({
      name: `${name}-${step}`,
      where: 'leader',
      ...(onSecondary && { onSecondary }),
      ...description,
      run: (node, call, token) => {
        check?.(node);
        return run(unsealedNode(node), call, token);
      },
    });

  /**
   * Anybody may read the progress, but not the nonce, because the nonce allows cancellation. The initiator gives the nonce to the
   * participants.
   */
  const status = operation('status', { about: `Read the progress of ${about}`, answers: statusAnswer }, (unsealed) =>
    statusReply(unsealed, { ...generation(unsealed.barrier).status, nonce: '' }),
  );

  const started = { about: `Start ${about}`, takes: startFields, answers: statusAnswer };
  const start = operation('start', started, async (unsealed, { values, address }) => {
    const { pgp_key: pgpKey } = values;
    if (pgpKey !== undefined && pgpKey !== null && pgpKey !== '')
      throw new RequestError(
        'invalid_request',
        'pgp_key is not supported: send an otp, or leave otp empty to have one generated',
      );
    const given = values.otp ?? '';
    if (given !== '' && !/^[\x21-\x7e]{26}$/.test(given))
      throw new RequestError('invalid_request', `OTP string is wrong length: expected ${tokenCharacters} printable characters`);
    const otp = given === '' ? newOtp() : given;
    const begun = await generation(unsealed.barrier).start(Buffer.from(otp), callerGroup(address));
    return statusReply(unsealed, begun, { otp: given === '' ? otp : '' });
  });

  const updated = {
    about: `Submit a key share for ${about}; the last required share returns the encoded token`,
    takes: shareFields,
    answers: statusAnswer,
  };
  const update = operation('update', updated, async (unsealed, { values }) => {
    const share = parseShare(values.key ?? '');
    let issued: Reply['issued'];
    const make = async (): Promise<string> => {
      const made = await create(unsealed);
      issued = made.issued;
      return made.token;
    };
    const given = { nonce: values.nonce ?? '', share };
    const step = await generation(unsealed.barrier)
      .update(given, make)
      .finally(() => share.fill(0));
    const encoded = step.complete ? step.masked.toString('base64').replace(/=+$/, '') : '';
    return { ...statusReply(unsealed, step.status, { encoded }), ...(issued && { issued }) };
  });

  const canceled = { about: `Cancel ${about}`, takes: cancelFields, answers: answers.noContent };
  const cancel = operation('cancel', canceled, async ({ barrier, services }, { values, ...call }, token) => {
    const { nonce = '' } = values;
    if (nonce !== '') await generation(barrier).cancel({ nonce });
    else if (await mayCancel(services, call, token)) await generation(barrier).cancel('privileged');
    else throw permissionDenied();
    return noContentReply;
  });

  return [
    { path: `${path}/attempt`, operations: { GET: status, POST: start, DELETE: cancel } },
    { path: `${path}/update`, operations: { POST: update } },
  ];
}

function unsealedNode(node: Node): UnsealedNode {
  const { store, services } = node;
  if (store === undefined || services === undefined) throw unavailable(node);
  return { node, barrier: store.barrier, services };
}

async function mayCancel(
  { tokens }: Services,
  { path, address }: Pick<Call, 'path' | 'address'>,
  token: string | undefined,
): Promise<boolean> {
  const principal = token === undefined ? undefined : await tokens.authenticate(token);
  const isGood = principal?.record.usesLeft === 0 && withinCidrs(principal.record.boundCidrs, address);
  return isGood && allows(principal, 'delete', path) && allows(principal, 'sudo', path);
}
