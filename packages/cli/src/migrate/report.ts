import type { End } from './end.ts';
import type { Method } from './method.ts';
import { nameOf } from './method.ts';
import type { Outcome } from './move.ts';
import type { KeyMove, Plan } from './plan.ts';
import type { SeenKey } from './source-key.ts';

/** Titles of {@link planRows}. */
export const planTitles = ['', 'Name', 'Type', 'Versions', 'Method', 'Remarks'] as const;

/** Returns a row for each mount, key and policy of a plan. */
export const planRows = ({ mounts, keys, policies }: Plan): readonly (readonly string[])[] => [
  ...mounts.map(({ path, target }) => ['mount', path, 'transit', '', target === undefined ? 'create' : 'exists', '']),
  ...keys.map(({ mount, key, method, present }) => [
    'key',
    `${mount}/${key.name}`,
    key.type,
    String(key.latestVersion),
    present === 'equal' ? 'none: it is there' : present === 'other' ? 'none' : method.kind,
    present === 'other'
      ? 'another key of this name is at the target, and will not be replaced'
      : remarksOf(method, key).join('; '),
  ]),
  ...(policies ?? []).map(({ name, state }) => [
    'policy',
    name,
    '',
    '',
    state === 'missing' ? 'write' : state === 'equal' ? 'none: it is there' : 'none',
    state === 'differs' ? 'a policy of this name with another text is at the target, and will not be replaced' : '',
  ]),
  ...(policies === undefined ? [['policy', '(all)', '', '', 'none', 'the token of the source may not list policies']] : []),
];

const remarksOf = (method: Method, key: SeenKey): readonly string[] => [
  ...('losses' in method ? method.losses : [method.why]),
  ...(rotatesAtBoth({ method, key }) ? ['both services will rotate it automatically: see the first step of the cut-over'] : []),
];

/** Whether a key would be rotated at both ends, so that neither could read the new ciphertexts of the other. */
const rotatesAtBoth = ({ method, key }: Pick<KeyMove, 'method' | 'key'>): boolean =>
  'losses' in method && key.autoRotatePeriodS > 0;

/** Whether everything of the plan can move or has moved. */
export const isComplete = ({ keys, policies }: Plan): boolean =>
  keys.every(
    ({ method, present }) =>
      present === 'equal' || (present !== 'other' && (method.kind === 'backup' || method.kind === 'import')),
  ) && policies?.every(({ state }) => state !== 'differs') === true;

/** Titles of {@link outcomeRows}. */
export const outcomeTitles = ['', 'Name', 'State', 'Method', 'Samples', 'Remarks'] as const;

export const outcomeRows = (outcomes: readonly Outcome[]): readonly (readonly string[])[] =>
  outcomes.map(({ kind, name, state, method, samples, remarks }) => [
    kind,
    name,
    state,
    method ?? '',
    samples === undefined ? '' : String(samples),
    remarks.join('; '),
  ]);

/** Returns the steps of the cut-over, in their order. */
export function cutOver(source: End, target: End, plan: Plan): readonly string[] {
  const rewraps = plan.keys.filter(
    ({ method, present }) => method.kind === 'rewrap' && present !== 'equal' && present !== 'other',
  );
  const rotating = plan.keys.filter(rotatesAtBoth).map(({ mount, key }) => `${mount}/${key.name}`);
  return [
    ...(rotating.length > 0
      ? [
          `Set auto_rotate_period to 0 at the source for ${rotating.join(', ')} before you move, and set it at the target when nothing reads from the source any longer. Otherwise each end rotates on its own, and neither reads the new ciphertexts of the other.`,
        ]
      : []),
    `Stop rotations and changes of keys at ${nameOf(source)}. Run this command again until it reports no difference.`,
    target.own
      ? 'Let applications that decrypt and verify use the target. Ciphertexts of the source are readable there.'
      : 'Let applications that decrypt and verify use the target. It reads only the prefix vault: replace others by it.',
    target.own
      ? 'Let applications that encrypt and sign use the target. With ciphertext_prefix vault, the source still reads what they write.'
      : 'Let applications that encrypt and sign use the target.',
    'Run this command with --dry-run once more: no key may have a newer version at the source.',
    'Only then rotate keys at the target. From here on, the source cannot read new ciphertexts.',
    ...rewraps.map(
      ({ mount, key }) =>
        `${mount}/${key.name} stays at the source: create it at the target, decrypt its data at the source, and encrypt it at the target.`,
    ),
    'Keep the source, sealed, until no backup with its ciphertexts is needed; then revoke its tokens and destroy it.',
  ];
}
