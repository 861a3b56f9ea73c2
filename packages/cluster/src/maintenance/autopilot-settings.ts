import { JsonRecord, type Store, StoreError } from '@transitd/storage-fsm';
import { z } from 'zod';
import { ClusterError } from '../refusals/cluster-error.ts';

export const defaultSettings: AutopilotSettings = {
  cleanupDeadServers: false,
  deadServerLastContactThreshold: 24 * 3600,
  lastContactThreshold: 10,
  maxTrailingLogs: 1000,
  minQuorum: 0,
  serverStabilizationTime: 10,
};

const count = z.int().min(0);
/** Fields that only a later release knows are left out. */
const fields = z.object({
  cleanupDeadServers: z.boolean(),
  deadServerLastContactThreshold: count,
  lastContactThreshold: count,
  maxTrailingLogs: count,
  minQuorum: count,
  serverStabilizationTime: count,
});

/** When a member counts as healthy, and when the active node removes a dead one. Times in whole seconds. */
export type AutopilotSettings = Readonly<z.output<typeof fields>>;

const record = new JsonRecord('core/autopilot', fields);
/** An attempt fails if another change comes first. */
const attemptsMax = 5;

/** @throws ClusterError `invalid_request` */
function checkSettings(settings: AutopilotSettings): void {
  const { cleanupDeadServers, deadServerLastContactThreshold, lastContactThreshold, maxTrailingLogs, minQuorum } = settings;
  if (deadServerLastContactThreshold < 60) throw refusal('dead_server_last_contact_threshold should not be less than 1m');
  if (cleanupDeadServers && minQuorum < 3)
    throw refusal('min_quorum must be set when cleanup_dead_servers is set and it should at least be 3');
  if (lastContactThreshold < 1) throw refusal('last_contact_threshold should not be less than 1s');
  if (maxTrailingLogs < 0) throw refusal('max_trailing_logs must not be negative');
  if (minQuorum < 0) throw refusal('min_quorum must not be negative');
}

const refusal = (message: string): ClusterError => new ClusterError('invalid_request', message);

/** Returns the stored settings, or the defaults. @throws Error for an unknown format; StoreError */
export async function readSettings(store: Pick<Store, 'get'>): Promise<AutopilotSettings> {
  return (await record.read(store))?.value ?? defaultSettings;
}

/** Stores the given settings; the others stay as they are. @throws ClusterError `invalid_request`, StoreError */
export async function changeSettings(store: Store, changes: Partial<AutopilotSettings>): Promise<void> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const { value, revision } = (await record.read(store)) ?? { value: defaultSettings, revision: 0 };
    const settings = { ...value, ...changes };
    checkSettings(settings);
    const conditions = [{ path: record.path, revision }];
    const { outcome } = await store.commit({ conditions, writes: [record.written(settings)] });
    if (outcome === 'committed') return;
  }
  throw new StoreError('busy', 'the settings of autopilot change too often: try again');
}
