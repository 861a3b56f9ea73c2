import type { RekeyStatus, RekeyStep } from '@transitd/client';
import { StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { refusePlainSecret } from '../terminal/input.ts';
import { serverOptions, wholeNumber } from '../terminal/options.ts';
import { shareFrom } from '../terminal/share.ts';
import type { Rows } from '../terminal/table.ts';

interface RekeyOptions {
  readonly init?: true;
  readonly status?: true;
  readonly cancel?: true;
  readonly verify?: true;
  readonly nonce?: string;
  readonly keyShares?: number;
  readonly keyThreshold?: number;
}

/** `operator rekey`: replaces the shares and the root key, authorized by a threshold of the current shares. */
export function rekeyCommand(operator: Command, { serverAction }: Runner): void {
  serverOptions(operator.command('rekey'))
    .description('replace the key shares: start with --init, then each holder submits one share')
    .argument('[share]', '- for standard input or @file, in hex or base64; prompted for if omitted')
    .option('--init', 'start a rekey')
    .option('--key-shares <count>', 'number of new shares (default: 5)', wholeNumber)
    .option('--key-threshold <count>', 'number of new shares required (default: 3)', wholeNumber)
    .option('--verify', 'with --init: require verification of the new shares; with a share: verify that new share')
    .option('--nonce <nonce>', 'nonce of the rekey (default: the one in progress)')
    .option('--status', 'show the progress of the rekey')
    .option('--cancel', 'cancel the rekey')
    .action(serverAction(rekey));
}

async function rekey({ client, output, sources }: Session, argument: string | undefined, options: RekeyOptions): Promise<void> {
  const { init, status, cancel, verify, nonce } = options;
  if (
    [init, status, cancel].filter((chosen) => chosen === true).length > 1 ||
    (argument !== undefined && (init || status || cancel))
  )
    throw new StartError('use only one of --init, --status, --cancel and a share');
  if (cancel === true) return output.done(await client.sys.cancelRekey(), 'Rekey canceled, if one was in progress.');
  if (status === true) return showStatus(output, (await client.sys.rekeyStatus()).data);
  if (init === true) {
    const shares = options.keyShares ?? 5;
    const answer = await client.sys.startRekey({
      secret_shares: shares,
      secret_threshold: options.keyThreshold ?? Math.min(3, shares),
      require_verification: verify === true,
    });
    output.warnings(answer);
    return showStatus(output, answer.data);
  }
  if (argument !== undefined) refusePlainSecret(argument, 'a share');
  const currentNonce = nonce ?? (await client.sys.rekeyStatus()).data.nonce;
  if (currentNonce === '') throw new StartError('no rekey is in progress: start one with --init');
  const share = { key: await shareFrom(sources, argument), nonce: currentNonce };
  const answer = await (verify === true ? client.sys.verifyRekey(share) : client.sys.rekey(share));
  output.warnings(answer);
  if (output.format === 'json') return output.json(answer);
  showStep(output, answer.data);
}

const statusRows = (status: Partial<RekeyStatus>): Rows => [
  ['Started', status.started ?? false],
  ['Nonce', status.nonce ?? ''],
  ['New Shares', status.n],
  ['New Threshold', status.t],
  ['Progress', `${status.progress}/${status.required}`],
  ['Verification Required', status.verification_required ?? false],
];

const showStatus = (output: Session['output'], status: RekeyStatus): void => output.rows(statusRows(status), status);

function showStep(output: Session['output'], step: RekeyStep): void {
  if (step.complete !== true) {
    output.rows(statusRows(step), step);
    return;
  }
  for (const [index, key] of (step.keys_base64 ?? []).entries()) output.line(`Key ${index + 1}: ${key}`);
  if (step.keys_base64 === undefined) output.line('The new shares are now in effect.');
  else if (step.verification_nonce === undefined)
    output.line('\nThe new shares are now in effect, and the old shares are invalid. They are printed only once.');
  else {
    output.line('\nThe old shares stay in effect until a threshold of the new shares is verified:\n');
    output.line(`  transitd operator rekey --verify --nonce ${step.verification_nonce}`);
  }
}
