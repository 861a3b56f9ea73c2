import { randomInt } from 'node:crypto';
import { allows, pathDenial } from '@transitd/access';
import { type Barrier, parseShare, type TokenGeneration, type TokenGenerationStatus } from '@transitd/barrier';
import {
  any,
  boolean,
  constant,
  credential,
  dataReply,
  type FieldSchema,
  integer,
  object,
  permissionDenied,
  type Reply,
  RequestError,
  string,
  text,
  unavailable,
} from '@transitd/http';
import type { Node, Services } from '@transitd/node';
import { callerGroup } from '@transitd/process';
import * as answers from '../operation/answers.ts';
import {
  type Call,
  type GuardedOperation,
  guarded,
  type OpenOperation,
  open,
  type Route,
  type TypedCall,
} from '../operation/operation.ts';
import { asker } from './internal.ts';

export interface UnsealedNode {
  readonly node: Node;
  readonly barrier: Barrier;
  readonly services: Services;
}

/** A ceremony in which key shares, or recovery shares, make a token. */
export interface TokenCeremony {
  /** Prefix of the names of its operations. */
  readonly name: string;
  /** Path of the routes `attempt` and `update`, which need no token. */
  readonly path: string;
  /** Path of the same routes for callers with `sudo`, as clients of OpenBao use them. */
  readonly guardedPath?: string;
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

const statusSchema = object({
  started: boolean,
  nonce: { ...string, description: 'Without a token, returned only when the generation is started or a share is submitted.' },
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
});

/** @param encoded - the masked token, once the token is created */
function statusJson({ barrier }: UnsealedNode, status: TokenGenerationStatus, { otp = '', encoded = '' } = {}): object {
  return {
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

/** A step that answers with the status. */
interface Step<S extends FieldSchema> {
  readonly about: string;
  readonly takes?: S;
  run(unsealed: UnsealedNode, call: TypedCall<S>): Promise<StepResult> | StepResult;
}

interface StepResult extends Pick<Reply, 'issued'> {
  readonly status: object;
}

/**
 * Returns the steps of a ceremony, for its routes with and without a token.
 * @param showsNonce - whether the status contains the nonce. The nonce allows cancellation, so without a token nobody may read it: the
 * initiator gives it to the participants
 */
function stepsOf({ about, generation, create }: TokenCeremony, { showsNonce }: { readonly showsNonce: boolean }) {
  const status: Step<Record<never, never>> = {
    about: `Read the progress of ${about}`,
    run: (unsealed) => {
      const { status } = generation(unsealed.barrier);
      return { status: statusJson(unsealed, showsNonce ? status : { ...status, nonce: '' }) };
    },
  };

  const start: Step<typeof startFields> = {
    about: `Start ${about}`,
    takes: startFields,
    run: async (unsealed, { values, address }) => {
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
      return { status: statusJson(unsealed, begun, { otp: given === '' ? otp : '' }) };
    },
  };

  const update: Step<typeof shareFields> = {
    about: `Submit a key share for ${about}; the last required share returns the encoded token`,
    takes: shareFields,
    run: async (unsealed, { values }) => {
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
      return { status: statusJson(unsealed, step.status, { encoded }), ...(issued && { issued }) };
    },
  };

  return { status, start, update };
}

/** Returns the routes of a ceremony. Attempts are kept in the memory of the active node. */
export const ceremonyRoutes = (ceremony: TokenCeremony): readonly Route[] => [
  ...openRoutes(ceremony),
  ...(ceremony.guardedPath === undefined ? [] : guardedRoutes(ceremony.guardedPath, ceremony)),
];

/** Returns the routes that need key shares instead of a token. Their answers have no envelope, as clients expect. */
function openRoutes(ceremony: TokenCeremony): readonly Route[] {
  const { name, path, guardedPath, about, onSecondary, generation, check } = ceremony;
  const common = { where: 'leader', ...(onSecondary && { onSecondary }) } as const;
  const unsealed = (node: Node): UnsealedNode => {
    check?.(node);
    return unsealedNode(node);
  };
  const operation = <S extends FieldSchema>(step: string, { run, ...description }: Step<S>): OpenOperation =>
    open({
      ...{ name: `${name}-${step}`, ...common, ...description, answers: answers.plain(statusSchema) },
      run: async (node, call) => {
        const { status, issued } = await run(unsealed(node), call);
        return { status: 200, json: status, ...(issued && { issued }) };
      },
    });

  const cancel = open({
    ...{ name: `${name}-cancel`, ...common, about: `Cancel ${about}`, takes: cancelFields, answers: answers.written },
    run: async (node, { values, ...call }, token) => {
      const { barrier, services } = unsealed(node);
      const { nonce = '' } = values;
      if (nonce !== '') await generation(barrier).cancel({ nonce });
      else if (await mayCancel(services, call, token, guardedPath)) await generation(barrier).cancel('privileged');
      else throw permissionDenied();
    },
  });

  const { status, start, update } = stepsOf(ceremony, { showsNonce: false });
  return [
    {
      path: `${path}/attempt`,
      operations: { GET: operation('status', status), POST: operation('start', start), DELETE: cancel },
    },
    { path: `${path}/update`, operations: { POST: operation('update', update) } },
  ];
}

/** Returns the routes for callers with `sudo`. Their answers are in the envelope. */
function guardedRoutes(path: string, ceremony: TokenCeremony): readonly Route[] {
  const { name, about, generation } = ceremony;
  const common = { where: 'leader', sudo: true } as const;
  const sameAs = (step: 'attempt' | 'update') => () => [`${ceremony.path}/${step}`];
  const operation = <S extends FieldSchema>(
    step: 'status' | 'start' | 'update',
    capability: 'read' | 'update',
    { run, ...description }: Step<S>,
  ): GuardedOperation =>
    guarded({
      ...{ name: `${name}-${step}`, ...common, capability, ...description, sameAs: sameAs(step === 'update' ? step : 'attempt') },
      answers: answers.data(statusSchema),
      run: async ({ node }, call) => {
        const { status, issued } = await run(unsealedNode(node), call);
        return { ...dataReply(status), ...(issued && { issued }) };
      },
    });

  const cancel = guarded({
    ...{ name: `${name}-cancel`, ...common, capability: 'delete', sameAs: sameAs('attempt') },
    ...{ about: `Cancel ${about}`, answers: answers.written },
    run: ({ node }) => generation(unsealedNode(node).barrier).cancel('privileged'),
  });

  const { status, start, update } = stepsOf(ceremony, { showsNonce: true });
  return [
    {
      path: `${path}/attempt`,
      operations: {
        GET: operation('status', 'read', status),
        POST: operation('start', 'update', start),
        DELETE: cancel,
      },
    },
    { path: `${path}/update`, operations: { POST: operation('update', 'update', update) } },
  ];
}

function unsealedNode(node: Node): UnsealedNode {
  const { member, services } = node;
  if (member === undefined || services === undefined) throw unavailable(node);
  return { node, barrier: member.barrier, services };
}

async function mayCancel(
  services: Services,
  call: Pick<Call, 'path' | 'address'>,
  token: string | undefined,
  guardedPath: string | undefined,
): Promise<boolean> {
  const principal = await asker(services, call, token);
  if (principal === undefined || (guardedPath !== undefined && pathDenial(principal, `${guardedPath}/attempt`) !== undefined))
    return false;
  return allows(principal, 'delete', call.path) && allows(principal, 'sudo', call.path);
}
