import { randomInt } from 'node:crypto';
import { allows, withinCidrs } from '@transitd/access';
import { type Barrier, parseShare, type RootGenerationStatus } from '@transitd/barrier';
import { noContent } from '../http/envelope.ts';
import { permissionDenied, RequestError } from '../http/error-answer.ts';
import { fields } from '../http/fields.ts';
import type { Reply } from '../http/reply.ts';
import { unavailable } from '../http/unavailable.ts';
import type { Node } from '../node/node.ts';
import type { Service } from '../node/service.ts';
import type { Call, OpenOperation, Route } from './operation.ts';

interface Serving {
  readonly barrier: Barrier;
  readonly service: Service;
}

/** Who has lost the last root token has none to show: the shares are what is needed. An attempt is in the active node's memory. */
const operation = (
  name: string,
  run: (serving: Serving, call: Call, token: string | undefined) => Promise<Reply> | Reply,
): OpenOperation => ({
  name,
  access: 'open',
  where: 'leader',
  run: (node, call, token) => run(servingOf(node), call, token),
});

function servingOf(node: Node): Serving {
  const { member, service } = node;
  if (member === undefined || service === undefined) throw unavailable(node);
  return { barrier: member.barrier, service };
}

/** Of the tokens that this server makes. */
const tokenCharacters = 26;
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const newOtp = (): string => Array.from({ length: tokenCharacters }, () => alphabet[randomInt(alphabet.length)]).join('');

/** Without the envelope, as its clients know it. @param encoded - the token, once it is made */
function statusReply({ barrier }: Serving, status: RootGenerationStatus, { otp = '', encoded = '' } = {}): Reply {
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

/** Anybody may ask how far it is. By the nonce it could be ended: those who take part have it from who began. */
const status = operation('generate-root-status', (serving) =>
  statusReply(serving, { ...serving.barrier.rootGeneration.status, nonce: '' }),
);

const start = operation('generate-root-start', async (serving, { body }) => {
  const { values } = fields({ otp: 'string', pgp_key: 'string' }, body);
  if (values.pgp_key !== undefined && values.pgp_key !== '')
    throw new RequestError('invalid_request', 'pgp_key is not supported: give an otp, or take the one that is made');
  const given = values.otp ?? '';
  if (given !== '' && !/^[\x21-\x7e]{26}$/.test(given))
    throw new RequestError('invalid_request', `OTP string is wrong length: it is ${tokenCharacters} printable characters`);
  const otp = given === '' ? newOtp() : given;
  const begun = await serving.barrier.rootGeneration.start(Buffer.from(otp));
  return statusReply(serving, begun, { otp: given === '' ? otp : '' });
});

const update = operation('generate-root-update', async (serving, { body }) => {
  const { values } = fields({ key: 'string', nonce: 'string' }, body);
  const share = parseShare(values.key ?? '');
  const { barrier, service } = serving;
  const make = async (): Promise<string> => (await service.registry.createRoot()).token;
  const step = await barrier.rootGeneration.update({ nonce: values.nonce ?? '', share }, make).finally(() => share.fill(0));
  const encoded = step.complete ? step.masked.toString('base64').replace(/=+$/, '') : '';
  return statusReply(serving, step.status, { encoded });
});

/** Decision 48: by its nonce, or by a token with the right `sudo` here. */
const cancel = operation('generate-root-cancel', async ({ barrier, service }, call, token) => {
  const { values } = fields({ nonce: 'string' }, call.body);
  const { nonce = '' } = values;
  if (nonce !== '') await barrier.rootGeneration.cancel({ nonce });
  else if (await mayCancel(service, call, token)) await barrier.rootGeneration.cancel('privileged');
  else throw permissionDenied();
  return noContent;
});

async function mayCancel({ tokens }: Service, { path, address }: Call, token: string | undefined): Promise<boolean> {
  const principal = token === undefined ? undefined : await tokens.authenticate(token);
  const isGood = principal?.record.usesLeft === 0 && withinCidrs(principal.record.boundCidrs, address);
  return isGood && allows(principal, 'delete', path) && allows(principal, 'sudo', path);
}

/** A root token by enough holders of the shares, or recovery shares: for when none is left. */
export const generateRootRoutes: readonly Route[] = [
  { path: 'sys/generate-root/attempt', operations: { GET: status, POST: start, DELETE: cancel } },
  { path: 'sys/generate-root/update', operations: { POST: update } },
];
