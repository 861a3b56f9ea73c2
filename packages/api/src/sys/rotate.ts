import { type Barrier, parseShare, type RekeyStatus } from '@transitd/barrier';
import {
  bool,
  boolean,
  constant,
  credential,
  dataReply,
  duration,
  type FieldSchema,
  int,
  integer,
  list,
  noContentReply,
  number,
  object,
  type Reply,
  RequestError,
  string,
  time,
  topLevelDataReply,
  writtenReply,
} from '@transitd/http';
import * as answers from '../operation/answers.ts';
import { type GuardedOperation, guarded, type OperationDescription, type Route, type TypedCall } from '../operation/operation.ts';

const barrierOperation = <S extends FieldSchema = Record<never, never>>(
  name: string,
  capability: 'read' | 'update' | 'delete',
  description: OperationDescription<S>,
  run: (barrier: Barrier, call: TypedCall<S>) => Promise<Reply> | Reply,
): GuardedOperation =>
  guarded({
    name,
    capability,
    sudo: capability !== 'read',
    ...description,
    run: ({ node }, call) => run(node.requireMember().barrier, call),
  });

const keyStatus = barrierOperation(
  'key-status',
  'read',
  {
    about: 'Read the status of the encryption key',
    answers: answers.topLevelData(object({ term: integer, install_time: time, encryptions: integer })),
  },
  (barrier) => {
    const { term, installTime, encryptions } = barrier.rotation.keyStatus();
    return topLevelDataReply({ term, install_time: installTime.toISOString(), encryptions });
  },
);

const rotate = barrierOperation(
  'rotate',
  'update',
  { about: 'Rotate the encryption key', answers: answers.written },
  async (barrier, { warnings }) => {
    await barrier.rotation.rotate();
    return writtenReply(warnings);
  },
);

const readRotation = barrierOperation(
  'rotate-config-read',
  'read',
  {
    about: 'Read the settings of automatic key rotation',
    answers: answers.topLevelData(object({ enabled: boolean, max_operations: integer, interval: number })),
  },
  async (barrier) => {
    const { enabled, maxOperations, intervalMs } = await barrier.rotation.config();
    return topLevelDataReply({ enabled, max_operations: maxOperations, interval: intervalMs / 1000 });
  },
);

const rotationFields = {
  enabled: bool('Rotate the encryption key automatically'),
  max_operations: int('Rotate after this number of encryptions', { min: 0 }),
  interval: duration('Rotate after this time; 0 for never'),
};

const writeRotation = barrierOperation(
  'rotate-config-write',
  'update',
  {
    about: 'Update the settings of automatic key rotation; omitted fields keep their values',
    takes: rotationFields,
    answers: answers.written,
  },
  async (barrier, { values, warnings }) => {
    const present = await barrier.rotation.config();
    await barrier.rotation.setConfig({
      enabled: values.enabled ?? present.enabled,
      maxOperations: values.max_operations ?? present.maxOperations,
      intervalMs: values.interval === undefined ? present.intervalMs : values.interval * 1000,
    });
    return writtenReply(warnings);
  },
);

const rekeyStatusData = ({ rekey, sealStatus }: Barrier): object => {
  const { started, nonce, t, n, progress, verificationRequired } = rekey.status;
  const required = started ? rekey.status.required : sealStatus.t;
  return { started, nonce, t, n, progress, required, verification_required: verificationRequired };
};

const statusMembers = {
  started: boolean,
  nonce: string,
  t: integer,
  n: integer,
  progress: integer,
  required: integer,
  verification_required: boolean,
};
const statusSchema = object(statusMembers);

const rekeyStatus = barrierOperation(
  'rekey-status',
  'read',
  { about: 'Read the progress of the root key rotation', answers: answers.data(statusSchema) },
  (barrier) => dataReply(rekeyStatusData(barrier)),
);

const startFields = {
  secret_shares: int('Number of new key shares', { required: true, min: 1, max: 255 }),
  secret_threshold: int('Number of new key shares required', { required: true, min: 1, max: 255 }),
  require_verification: bool('Put the new shares into effect only after they were submitted once for verification', {
    default: false,
  }),
};

const rekeyStart = barrierOperation(
  'rekey-start',
  'update',
  { about: 'Start a rotation of the root key and its shares', takes: startFields, answers: answers.data(statusSchema) },
  async (barrier, { values, warnings }) => {
    await barrier.rekey.start({
      shares: values.secret_shares ?? 0,
      threshold: values.secret_threshold ?? 0,
      requireVerification: values.require_verification ?? false,
    });
    return dataReply(rekeyStatusData(barrier), warnings);
  },
);

/** Cancels the rotation. It requires `sudo`, so the nonce is not needed. */
const rekeyCancel = barrierOperation(
  'rekey-cancel',
  'delete',
  { about: 'Cancel the root key rotation', answers: answers.written },
  async (barrier) => {
    await barrier.rekey.cancel('privileged');
    return noContentReply;
  },
);

const shareFields = {
  key: credential('Key share, in hex or base64', { required: true }),
  nonce: credential('Nonce of the rotation', { required: true }),
};

const shareIn = ({ nonce = '', key = '' }: TypedCall<typeof shareFields>['values']): { nonce: string; share: Buffer } => ({
  nonce,
  share: parseShare(key),
});

const newShares = object(
  {
    complete: constant(true),
    nonce: string,
    keys: list(string),
    keys_base64: list(string),
    verification_required: boolean,
  },
  { verification_nonce: string },
);

const rekeyUpdate = barrierOperation(
  'rekey-update',
  'update',
  {
    about: 'Submit a current key share; the last required share returns the new shares',
    takes: shareFields,
    answers: answers.data({ anyOf: [statusSchema, newShares] }),
  },
  async (barrier, { values, warnings }) => {
    const given = shareIn(values);
    const step = await barrier.rekey.update(given).finally(() => given.share.fill(0));
    if (!step.complete) return dataReply(rekeyStatusData(barrier), warnings);
    const data = {
      complete: true,
      nonce: given.nonce,
      keys: step.shares.map((share) => share.toString('hex')),
      keys_base64: step.shares.map((share) => share.toString('base64')),
      verification_required: step.verificationNonce !== undefined,
      ...(step.verificationNonce !== undefined && { verification_nonce: step.verificationNonce }),
    };
    const more = step.inForce === 'unknown' ? ['whether the new shares are in force is unknown: keep both sets'] : [];
    return dataReply(data, [...warnings, ...more]);
  },
);

const rekeyVerify = barrierOperation(
  'rekey-verify',
  'update',
  {
    about: 'Submit a new key share for verification',
    takes: shareFields,
    answers: answers.data(object({ ...statusMembers, complete: boolean })),
  },
  async (barrier, { values, warnings }) => {
    const given = shareIn(values);
    const { complete } = await barrier.rekey.verify(given).finally(() => given.share.fill(0));
    return dataReply({ ...rekeyStatusData(barrier), complete, nonce: given.nonce }, warnings);
  },
);

const verificationMembers = { started: boolean, nonce: string, t: integer, n: integer, progress: integer };
const verificationAnswer = answers.data(object(verificationMembers));

const verificationReply = ({ verifying, nonce, t, n, progress }: RekeyStatus, warnings: readonly string[]): Reply =>
  dataReply(
    verifying ? { started: true, nonce, t, n, progress } : { started: false, nonce: '', t: 0, n: 0, progress: 0 },
    warnings,
  );

const verificationStatus = barrierOperation(
  'rekey-verification-status',
  'read',
  { about: 'Read the progress of the verification of new key shares', answers: verificationAnswer },
  ({ rekey }, { warnings }) => verificationReply(rekey.status, warnings),
);

const verificationCancel = barrierOperation(
  'rekey-verification-cancel',
  'delete',
  {
    about: 'Discard the shares submitted for verification; the rotation continues, and the verification has a new nonce',
    answers: verificationAnswer,
  },
  async ({ rekey }, { warnings }) => verificationReply(await rekey.restartVerification(), warnings),
);

/** Returns the operation for the paths of recovery shares. A seal whose shares unseal has none. */
const ofRecovery = (operation: GuardedOperation): GuardedOperation => ({
  ...operation,
  run: (context, call) => {
    if (context.node.requireMember().barrier.sealStatus.recoverySeal) return operation.run(context, call);
    throw new RequestError('invalid_request', 'recovery rekeying not supported: the seal has key shares, so use sys/rotate/root');
  },
});

/** The attempt is in the memory of the active node, so only that node can report it. */
const ofAttempt = (operation: GuardedOperation): GuardedOperation => ({ ...operation, where: 'leader' });

/** The rotation of the root key and its shares, below a path of its own. */
const rekeyRoutes = (path: string, as: (operation: GuardedOperation) => GuardedOperation): readonly Route[] => [
  { path: `${path}/init`, operations: { GET: as(ofAttempt(rekeyStatus)), POST: as(rekeyStart), DELETE: as(rekeyCancel) } },
  { path: `${path}/update`, operations: { POST: as(rekeyUpdate) } },
  {
    path: `${path}/verify`,
    operations: { GET: as(ofAttempt(verificationStatus)), POST: as(rekeyVerify), DELETE: as(verificationCancel) },
  },
];

/** Routes of the barrier's encryption key and of root key rotation. */
export const rotateRoutes: readonly Route[] = [
  { path: 'sys/key-status', operations: { GET: keyStatus } },
  { path: 'sys/rotate', operations: { POST: rotate } },
  { path: 'sys/rotate/keyring', operations: { POST: rotate } },
  { path: 'sys/rotate/config', operations: { GET: readRotation, POST: writeRotation } },
  ...rekeyRoutes('sys/rotate/root', (operation) => operation),
  ...rekeyRoutes('sys/rotate/recovery', ofRecovery),
  ...rekeyRoutes('sys/rekey-recovery-key', ofRecovery),
];
