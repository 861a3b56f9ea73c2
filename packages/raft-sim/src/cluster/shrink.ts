import type { Action, SimConfig } from './config/config.ts';

/** Returns whether this smaller run still fails in the same way. */
export type StillFails = (config: SimConfig) => boolean | Promise<boolean>;

const quietNetwork = { drop: 0, duplicate: 0, heavyTail: 0, replay: 0, corrupt: 0, reorder: false, delayMsMax: 1, codec: false };
const quietDisk = { syncMsMax: 1, slow: 0, torn: false, slotRot: 0 };

/**
 * Makes a failing run small: fewer events, actions, clients, nodes and faults, as long as the run still fails (delta debugging; Zeller,
 * Hildebrandt, 2002). Every attempt is a whole run, so this takes hundreds of times as long as one run.
 */
export async function shrink(failing: SimConfig, stillFails: StillFails): Promise<SimConfig> {
  let config = failing;
  const attempt = async (smaller: SimConfig): Promise<boolean> => {
    if (!(await stillFails(smaller))) return false;
    config = smaller;
    return true;
  };
  for (let before = ''; before !== JSON.stringify(config); ) {
    before = JSON.stringify(config);
    for (
      let events = config.events;
      events > 10 && (await attempt({ ...config, events: Math.floor(events * 0.7) }));
      events = config.events
    ) {}
    const { schedule } = config;
    await attempt({ ...config, schedule: [] });
    for (const kind of new Set(config.schedule.map((action) => action.kind))) {
      await attempt({ ...config, schedule: config.schedule.filter((action) => action.kind !== kind) });
    }
    if (config.schedule.length > 0 && config.schedule.length <= schedule.length) {
      config = { ...config, schedule: await fewest(config.schedule, (some) => stillFails({ ...config, schedule: some })) };
    }
    for (const fault of Object.keys(quietNetwork) as (keyof typeof quietNetwork)[]) {
      await attempt({ ...config, network: { ...config.network, [fault]: quietNetwork[fault] } });
    }
    for (const fault of Object.keys(quietDisk) as (keyof typeof quietDisk)[]) {
      await attempt({ ...config, disk: { ...config.disk, [fault]: quietDisk[fault] } });
    }
    if (config.clockSkew) await attempt({ ...config, clockSkew: false });
    while (config.clients > 1 && (await attempt({ ...config, clients: config.clients - 1 }))) {}
    while (config.keys > 1 && (await attempt({ ...config, keys: config.keys - 1 }))) {}
    while (config.nodes > 1 && (await attempt({ ...config, nodes: config.nodes - 1 }))) {}
  }
  return config;
}

/** Removes ever smaller pieces of the schedule, until every remaining action is needed. */
async function fewest(
  schedule: readonly Action[],
  stillFails: (some: readonly Action[]) => boolean | Promise<boolean>,
): Promise<readonly Action[]> {
  let kept = schedule;
  for (let size = Math.ceil(kept.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < kept.length; ) {
      const some = [...kept.slice(0, from), ...kept.slice(from + size)];
      if (await stillFails(some)) kept = some;
      else from += size;
    }
  }
  return kept;
}
