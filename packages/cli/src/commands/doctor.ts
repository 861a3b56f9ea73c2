import { exitCode } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { formatOf, hasAddress } from '../session/environment.ts';
import type { SessionOptions } from '../session/session.ts';
import { serverOptions } from '../terminal/options.ts';

/** `doctor`: checks the machine, a configuration and a running node, and suggests fixes. */
export function doctorCommand(program: Command, { localAction }: Runner): void {
  serverOptions(program.command('doctor'))
    .description('check the machine, a configuration file and a running node; exits 1 if a check fails')
    .option('--config <file>', 'configuration file to check; a running node is then checked only if an address is set')
    .action(
      localAction(async ({ config, ...options }: SessionOptions & { config?: string }) => {
        const { checkMachine } = await import('../doctor/machine.ts');
        const findings = [...checkMachine()];
        if (config !== undefined) {
          const { checkConfiguration } = await import('../doctor/configuration.ts');
          findings.push(...(await checkConfiguration(config, Date.now())));
        }
        if (config === undefined || hasAddress(options, process.env)) {
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
        new Output(formatOf(options.format, process.env)).table(['', 'Check', 'Found'], rows, findings);
        return findings.some(({ state }) => state === 'fail') ? exitCode.start : exitCode.ok;
      }),
    );
}
