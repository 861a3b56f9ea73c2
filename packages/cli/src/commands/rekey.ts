import type { RekeyStatus, RekeyStep } from '@transitd/client';
import { StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { checkNotExposed } from '../terminal/input.ts';
import { asksServer, wholeNumber } from '../terminal/options.ts';
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

/** `operator rekey`: new shares and a new root key, by enough holders of the present shares. */
export function rekeyCommand(operator: Command, { asking }: Runner): void {
  asksServer(operator.command('rekey'))
    .description('exchange the shares: begin with --init, then each holder gives a share')
    .argument('[share]', '- for standard input or @file, hex or base64; asked for, unseen, unless given')
    .option('--init', 'begin an exchange')
    .option('--key-shares <count>', 'number of the new shares, 5 unless given', wholeNumber)
    .option('--key-threshold <count>', 'how many of them will be needed, 3 unless given', wholeNumber)
    .option('--verify', 'with --init: the new shares count when enough of them were given back; else: give one back')
    .option('--nonce <nonce>', 'of the exchange that the share is meant for; the one under way unless given')
    .option('--status', 'show how far it is')
    .option('--cancel', 'end it without a change')
    .action(asking(rekey));
}

async function rekey({ client, output, sources }: Session, given: string | undefined, options: RekeyOptions): Promise<void> {
  const { init, status, cancel, verify, nonce } = options;
  if (
    [init, status, cancel].filter((chosen) => chosen === true).length > 1 ||
    (given !== undefined && (init || status || cancel))
  )
    throw new StartError('give one of --init, --status, --cancel and a share');
  if (cancel === true)
    return output.done(await client.sys.cancelRekey(), 'The exchange of the shares is ended, if there was one.');
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
  if (given !== undefined) checkNotExposed(given, 'a share');
  const underWay = nonce ?? (await client.sys.rekeyStatus()).data.nonce;
  if (underWay === '') throw new StartError('no exchange of the shares is under way: begin one with --init');
  const share = { key: await shareFrom(sources, given), nonce: underWay };
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
  if (step.keys_base64 === undefined) output.line('The new shares are in force.');
  else if (step.verification_nonce === undefined)
    output.line('\nThese shares are in force from now on, and shown this once; the old ones open nothing any more.');
  else
    output.line(
      `\nThe old shares stay in force until enough of these were given back:\n\n  transitd operator rekey --verify --nonce ${step.verification_nonce}`,
    );
}
