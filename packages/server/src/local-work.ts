import type { LocalWork } from '@transitd/cli';

/** The commands that run in this process. Each loads its code when it runs, so that all other commands start fast. */
export const localWork: LocalWork = {
  async runServer({ config, dev, ...devOptions }) {
    const [{ readConfigFile }, { prepareDev }, { runServer }] = await Promise.all([
      import('@transitd/configuration'),
      import('./dev.ts'),
      import('./run-server.ts'),
    ]);
    if (config !== undefined) return runServer(readConfigFile(config), { reread: () => readConfigFile(config) });
    const prepared = prepareDev(devOptions);
    return runServer(prepared.config, { dev: prepared.dev });
  },

  async recover(directory, options, use) {
    const { withRecovery } = await import('@transitd/node');
    await withRecovery(directory, options, use);
  },

  async migrateStorage({ from, to }, options) {
    const [{ readConfigFile }, { migrateStorage }] = await Promise.all([
      import('@transitd/configuration'),
      import('@transitd/node'),
    ]);
    return migrateStorage({ from: readConfigFile(from), to: readConfigFile(to), ...options });
  },
};
