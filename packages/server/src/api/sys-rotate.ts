import { type Barrier, parseShare } from '@transitd/barrier';
import { dataReply, noContent, twiceReply, writtenReply } from '../http/envelope.ts';
import { fields } from '../http/fields.ts';
import type { Reply } from '../http/reply.ts';
import type { Node } from '../node/node.ts';
import type { Call, GuardedOperation, Route } from './operation.ts';

function operation(
  name: string,
  capability: 'read' | 'update' | 'delete',
  run: (barrier: Barrier, call: Call) => Promise<Reply> | Reply,
): GuardedOperation {
  return { name, access: 'token', capability, sudo: capability !== 'read', run: ({ node }, call) => run(barrierOf(node), call) };
}

function barrierOf({ member }: Node): Barrier {
  if (member === undefined) throw new Error('a node serves without a barrier');
  return member.barrier;
}

const keyStatus = operation('key-status', 'read', (barrier) => {
  const { term, installTime, encryptions } = barrier.keyStatus();
  return twiceReply({ term, install_time: installTime.toISOString(), encryptions });
});

const rotate = operation('rotate', 'update', async (barrier, { body }) => {
  const { warnings } = fields({}, body);
  await barrier.rotate();
  return writtenReply(warnings);
});

const readRotation = operation('rotate-config-read', 'read', async (barrier) => {
  const { enabled, maxOperations, intervalMs } = await barrier.rotationConfig();
  return twiceReply({ enabled, max_operations: maxOperations, interval: intervalMs / 1000 });
});

const writeRotation = operation('rotate-config-write', 'update', async (barrier, { body }) => {
  const { values, warnings } = fields({ enabled: 'bool', max_operations: 'int', interval: 'duration' }, body);
  const present = await barrier.rotationConfig();
  await barrier.setRotationConfig({
    enabled: values.enabled ?? present.enabled,
    maxOperations: values.max_operations ?? present.maxOperations,
    intervalMs: values.interval === undefined ? present.intervalMs : values.interval * 1000,
  });
  return writtenReply(warnings);
});

const rekeyStatusData = (barrier: Barrier): object => {
  const { started, nonce, t, n, progress, required, verificationRequired } = barrier.rekey.status;
  return { started, nonce, t, n, progress, required, verification_required: verificationRequired };
};

const rekeyStatus = operation('rekey-status', 'read', (barrier) => dataReply(JSON.stringify(rekeyStatusData(barrier))));

const rekeyStart = operation('rekey-start', 'update', async (barrier, { body }) => {
  const { values, warnings } = fields({ secret_shares: 'int', secret_threshold: 'int', require_verification: 'bool' }, body);
  await barrier.rekey.start({
    shares: values.secret_shares ?? 0,
    threshold: values.secret_threshold ?? 0,
    requireVerification: values.require_verification ?? false,
  });
  return dataReply(JSON.stringify(rekeyStatusData(barrier)), warnings);
});

/** Whoever may ask this has the right `sudo`; the nonce is not needed then. */
const rekeyCancel = operation('rekey-cancel', 'delete', async (barrier) => {
  await barrier.rekey.cancel('privileged');
  return noContent;
});

function shareOf({ body }: Call): { given: { nonce: string; share: Buffer }; warnings: readonly string[] } {
  const { values, warnings } = fields({ key: 'string', nonce: 'string' }, body);
  return { given: { nonce: values.nonce ?? '', share: parseShare(values.key ?? '') }, warnings };
}

const rekeyUpdate = operation('rekey-update', 'update', async (barrier, call) => {
  const { given, warnings } = shareOf(call);
  const step = await barrier.rekey.update(given).finally(() => given.share.fill(0));
  if (!step.complete) return dataReply(JSON.stringify(rekeyStatusData(barrier)), warnings);
  const data = {
    complete: true,
    nonce: given.nonce,
    keys: step.shares.map((share) => share.toString('hex')),
    keys_base64: step.shares.map((share) => share.toString('base64')),
    verification_required: step.verificationNonce !== undefined,
    ...(step.verificationNonce !== undefined && { verification_nonce: step.verificationNonce }),
  };
  const more = step.inForce === 'unknown' ? ['whether the new shares are in force is unknown: keep both sets'] : [];
  return dataReply(JSON.stringify(data), [...warnings, ...more]);
});

const rekeyVerify = operation('rekey-verify', 'update', async (barrier, call) => {
  const { given, warnings } = shareOf(call);
  const { complete } = await barrier.rekey.verify(given).finally(() => given.share.fill(0));
  return dataReply(JSON.stringify({ ...rekeyStatusData(barrier), complete, nonce: given.nonce }), warnings);
});

/** The barrier's keys: their state, new terms, and exchanging the shares and the root key. */
export const rotateRoutes: readonly Route[] = [
  { path: 'sys/key-status', operations: { GET: keyStatus } },
  { path: 'sys/rotate', operations: { POST: rotate } },
  { path: 'sys/rotate/keyring', operations: { POST: rotate } },
  { path: 'sys/rotate/config', operations: { GET: readRotation, POST: writeRotation } },
  { path: 'sys/rotate/root/init', operations: { GET: rekeyStatus, POST: rekeyStart, DELETE: rekeyCancel } },
  { path: 'sys/rotate/root/update', operations: { POST: rekeyUpdate } },
  { path: 'sys/rotate/root/verify', operations: { POST: rekeyVerify } },
];
