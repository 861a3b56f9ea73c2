import { type Barrier, parseShare, type RekeyStatus } from '@transitd/barrier';
import {
  bool,
  boolean,
  constant,
  credential,
  dataReply,
  duration,
  int,
  integer,
  list,
  number,
  object,
  type Reply,
  RequestError,
  string,
  time,
  topLevelDataReply,
} from '@transitd/http';
import * as answers from '../operation/answers.ts';
import { changesIn, memberSchemas, membersIn } from '../operation/kept-fields.ts';
import { type Context, type GuardedOperation, operationsOn, type Route, type TypedCall } from '../operation/operation.ts';
import { shown } from '../operation/shown.ts';

const barrierOf = ({ node }: Context): Barrier => node.requireMember().barrier;
const barrierRead = operationsOn(barrierOf);
const barrierChange = operationsOn(barrierOf, { sudo: true });

const keyStatus = barrierRead(
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

const rotate = barrierChange(
  'rotate',
  'update',
  { about: 'Rotate the encryption key', answers: answers.written, sameAs: () => ['sys/rotate', 'sys/rotate/keyring'] },
  (barrier) => barrier.rotation.rotate(),
);

const rotationFields = {
  enabled: bool('Rotate the encryption key automatically'),
  max_operations: int('Rotate after this number of encryptions', { min: 0 }),
  interval: duration('Rotate after this time; 0 for never', { property: 'intervalMs' }),
};

const readRotation = barrierRead(
  'rotate-config-read',
  'read',
  {
    about: 'Read the settings of automatic key rotation',
    answers: answers.topLevelData(object({ ...memberSchemas(rotationFields), interval: number })),
  },
  async (barrier) => topLevelDataReply(membersIn(rotationFields, await barrier.rotation.config())),
);

const writeRotation = barrierChange(
  'rotate-config-write',
  'update',
  {
    about: 'Update the settings of automatic key rotation; omitted fields keep their values',
    takes: rotationFields,
    answers: answers.written,
  },
  async (barrier, { values }) =>
    barrier.rotation.setConfig({ ...(await barrier.rotation.config()), ...changesIn(rotationFields, values) }),
);

const shownStatus = shown<Barrier>({
  started: [boolean, ({ rekey }) => rekey.status.started],
  nonce: [string, ({ rekey }) => rekey.status.nonce],
  t: [integer, ({ rekey }) => rekey.status.t],
  n: [integer, ({ rekey }) => rekey.status.n],
  progress: [integer, ({ rekey }) => rekey.status.progress],
  required: [integer, ({ rekey, sealStatus }) => (rekey.status.started ? rekey.status.required : sealStatus.t)],
  verification_required: [boolean, ({ rekey }) => rekey.status.verificationRequired],
});

const rekeyStatus = barrierRead(
  'rekey-status',
  'read',
  { about: 'Read the progress of the root key rotation', answers: answers.data(shownStatus.schema) },
  (barrier) => dataReply(shownStatus.json(barrier)),
);

const startFields = {
  secret_shares: int('Number of new key shares', { required: true, min: 1, max: 255, property: 'shares' }),
  secret_threshold: int('Number of new key shares required', { required: true, min: 1, max: 255, property: 'threshold' }),
  require_verification: bool('Put the new shares into effect only after they were submitted once for verification', {
    default: false,
  }),
};

const rekeyStart = barrierChange(
  'rekey-start',
  'update',
  { about: 'Start a rotation of the root key and its shares', takes: startFields, answers: answers.data(shownStatus.schema) },
  async (barrier, { values }) => {
    const none = { shares: 0, threshold: 0, requireVerification: false };
    await barrier.rekey.start({ ...none, ...changesIn(startFields, values) });
    return dataReply(shownStatus.json(barrier));
  },
);

/** Cancels the rotation. It requires `sudo`, so the nonce is not needed. */
const rekeyCancel = barrierChange(
  'rekey-cancel',
  'delete',
  { about: 'Cancel the root key rotation', answers: answers.written },
  (barrier) => barrier.rekey.cancel('privileged'),
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

const rekeyUpdate = barrierChange(
  'rekey-update',
  'update',
  {
    about: 'Submit a current key share; the last required share returns the new shares',
    takes: shareFields,
    answers: answers.data({ anyOf: [shownStatus.schema, newShares] }),
  },
  async (barrier, { values }) => {
    const given = shareIn(values);
    const step = await barrier.rekey.update(given).finally(() => given.share.fill(0));
    if (!step.complete) return dataReply(shownStatus.json(barrier));
    const data = {
      complete: true,
      nonce: given.nonce,
      keys: step.shares.map((share) => share.toString('hex')),
      keys_base64: step.shares.map((share) => share.toString('base64')),
      verification_required: step.verificationNonce !== undefined,
      ...(step.verificationNonce !== undefined && { verification_nonce: step.verificationNonce }),
    };
    return dataReply(data, step.inForce === 'unknown' ? ['whether the new shares are in force is unknown: keep both sets'] : []);
  },
);

const rekeyVerify = barrierChange(
  'rekey-verify',
  'update',
  {
    about: 'Submit a new key share for verification',
    takes: shareFields,
    answers: answers.data(object({ ...shownStatus.schema.properties, complete: boolean })),
  },
  async (barrier, { values }) => {
    const given = shareIn(values);
    const { complete } = await barrier.rekey.verify(given).finally(() => given.share.fill(0));
    return dataReply({ ...shownStatus.json(barrier), complete, nonce: given.nonce });
  },
);

const verificationMembers = { started: boolean, nonce: string, t: integer, n: integer, progress: integer };
const verificationAnswer = answers.data(object(verificationMembers));

const verificationReply = ({ verifying, nonce, t, n, progress }: RekeyStatus): Reply =>
  dataReply(verifying ? { started: true, nonce, t, n, progress } : { started: false, nonce: '', t: 0, n: 0, progress: 0 });

const verificationStatus = barrierRead(
  'rekey-verification-status',
  'read',
  { about: 'Read the progress of the verification of new key shares', answers: verificationAnswer },
  ({ rekey }) => verificationReply(rekey.status),
);

const verificationCancel = barrierChange(
  'rekey-verification-cancel',
  'delete',
  {
    about: 'Discard the shares submitted for verification; the rotation continues, and the verification has a new nonce',
    answers: verificationAnswer,
  },
  async ({ rekey }) => verificationReply(await rekey.restartVerification()),
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

const rekeyPaths = { root: 'sys/rotate/root', recovery: 'sys/rotate/recovery', olderRecovery: 'sys/rekey-recovery-key' } as const;

/** The rotation of the root key and its shares. There is one attempt at a time, which every path leads to. */
const rekeyRoutes = (path: string, as: (operation: GuardedOperation) => GuardedOperation): readonly Route[] => {
  const at = (step: string, operations: Route['operations']): Route => {
    const sameAs = (): readonly string[] => Object.values(rekeyPaths).map((each) => `${each}/${step}`);
    const withTwins = Object.entries(operations).map(([verb, operation]) => [verb, { ...operation, sameAs }]);
    return { path: `${path}/${step}`, operations: Object.fromEntries(withTwins) };
  };
  return [
    at('init', { GET: as(ofAttempt(rekeyStatus)), POST: as(rekeyStart), DELETE: as(rekeyCancel) }),
    at('update', { POST: as(rekeyUpdate) }),
    at('verify', { GET: as(ofAttempt(verificationStatus)), POST: as(rekeyVerify), DELETE: as(verificationCancel) }),
  ];
};

/** Routes of the barrier's encryption key and of root key rotation. */
export const rotateRoutes: readonly Route[] = [
  { path: 'sys/key-status', operations: { GET: keyStatus } },
  { path: 'sys/rotate', operations: { POST: rotate } },
  { path: 'sys/rotate/keyring', operations: { POST: rotate } },
  { path: 'sys/rotate/config', operations: { GET: readRotation, POST: writeRotation } },
  ...rekeyRoutes(rekeyPaths.root, (operation) => operation),
  ...rekeyRoutes(rekeyPaths.recovery, ofRecovery),
  ...rekeyRoutes(rekeyPaths.olderRecovery, ofRecovery),
];
