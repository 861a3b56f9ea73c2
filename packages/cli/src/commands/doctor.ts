import { exitCode } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { namesServer } from '../session/environment.ts';
import type { SessionOptions } from '../session/session.ts';
import { asksServer } from '../terminal/options.ts';

/** `doctor`: what is wrong with a configuration, a machine and a running node, and what to do about it. */
export function doctorCommand(program: Command, { local }: Runner): void {
  asksServer(program.command('doctor'))
    .description('look for what is wrong: exit 1 when something is that keeps a node from its work')
    .option('--config <file>', 'of a node; the running one is then looked at only when an address is given')
    .action(
      local(async ({ config, ...options }: SessionOptions & { config?: string }) => {
        const { checkMachine } = await import('../doctor/machine.ts');
        const findings = [...checkMachine()];
        if (config !== undefined) {
          const { checkConfiguration } = await import('../doctor/configuration.ts');
          findings.push(...(await checkConfiguration(config, Date.now())));
        }
        if (config === undefined || namesServer(options, process.env)) {
          const [{ openSession }, { checkService }] = await Promise.all([
            import('../session/session.ts'),
            import('../doctor/service.ts'),
          ]);
          const { client, addresses, token } = openSession(options);
          findings.push(...(await checkService(client, addresses[0] ?? '', token !== undefined)));
        }
        const { Output } = await import('../terminal/output.ts');
        const rows = findings.map(({ state, check, found, todo }) => [
          state,
          check,
          todo === undefined ? found : `${found}; ${todo}`,
        ]);
        new Output(options.format ?? 'table').table(['', 'Check', 'Found'], rows, findings);
        return findings.some(({ state }) => state === 'fail') ? exitCode.start : exitCode.ok;
      }),
    );
}
