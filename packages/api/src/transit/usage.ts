import { dataReply, integer, list, map, string, time } from '@transitd/http';
import type { CurrentUsage } from '@transitd/node';
import { operationsMax, useKinds, type VersionUse } from '@transitd/transit-engine';
import { data } from '../operation/answers.ts';
import { type Context, operationsOn, type Route } from '../operation/operation.ts';
import { shown } from '../operation/shown.ts';
import { namesKey } from './keys.ts';
import { engineOf, keyName } from './transit-operation.ts';

const timeText = (ms: number): string => new Date(ms).toISOString();

const shownUse = shown<VersionUse>({
  ...Object.fromEntries(useKinds.map((kind) => [kind, [integer, (use: VersionUse) => use[kind]] as const])),
  first_used_time: [time, ({ firstMs }) => timeText(firstMs)],
  last_used_time: [time, ({ lastMs }) => timeText(lastMs)],
});

const shownUsage = shown<CurrentUsage>({
  name: [string, ({ key }) => key.name],
  'counting_since?': [
    { ...time, description: 'All later uses are counted; absent while some node does not count' },
    ({ sinceMs }) => sinceMs && timeText(sinceMs),
  ],
  versions: [
    { ...map(shownUse.schema), description: 'By version; a version without uses is absent' },
    ({ usage }) => Object.fromEntries(Array.from(usage.versions, ([version, use]) => [version, shownUse.json(use)])),
  ],
  'max_operations?': [
    { ...integer, description: 'Encryptions and signatures that one version may make: the setting, or the default' },
    ({ key }) => operationsMax(key.record),
  ],
  unanswered_nodes: [
    { ...list(string), description: 'Nodes that did not answer: their uses since their last report are missing' },
    ({ unanswered }) => unanswered,
  ],
});

const warningsOf = ({ sinceMs, unanswered, near }: CurrentUsage): readonly string[] => [
  ...(near === undefined ? [] : [`version ${near.version} has made ${near.made} of ${near.max} operations: rotate the key`]),
  ...(unanswered.length === 0
    ? []
    : [`the uses on ${unanswered.join(', ')} since the last record, at most a few minutes, are missing: no answer`]),
  ...(sinceMs === undefined ? ['counting has not begun: some node does not answer, or has a release that does not count'] : []),
];

/** Makes an operation that asks all nodes. */
const usageOperation = operationsOn(({ node, services }: Context, call) => ({
  engine: engineOf(services, call),
  usage: node.requireMember().usage,
}));

const read = usageOperation(
  'keys-usage',
  'read',
  {
    about: 'Read how often each version of a key was used, and when first and last',
    takes: { name: keyName },
    answers: data(shownUsage.schema),
    where: 'leader',
  },
  async ({ engine, usage }, { values: { name } }) => {
    const current = await usage.of(engine, name);
    return dataReply(shownUsage.json(current), warningsOf(current));
  },
);

/** Routes of the uses of keys, below a mount. */
export const transitUsageRoutes: readonly Route[] = [{ path: 'keys/:name/usage', accepts: namesKey, operations: { GET: read } }];
