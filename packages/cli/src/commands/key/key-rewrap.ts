import { type DataOptions, RefusedError, type TransitCalls } from '@transitd/client';
import { exitCode, StartError } from '@transitd/process';
import type { RewrapItem, Rewrapped } from '../../files/rewrap-lines.ts';
import type { Session } from '../../session/session.ts';

export interface BulkOptions {
  readonly file: string;
  readonly out?: string;
  readonly resume?: true;
  readonly keyVersion?: number;
  readonly mount: string;
}

/** How many lines that failed are named. */
const namedMax = 10;

/**
 * `key rewrap --file`: rewraps JSON lines in batches.
 * @returns the exit code: 2 if lines failed
 */
export async function rewrapFile({ client, output }: Session, name: string, options: BulkOptions): Promise<number> {
  if (options.out === undefined) throw new StartError('--file requires --out with the file to create');
  const [{ rewrapLines }, { progressOn }] = await Promise.all([
    import('../../files/rewrap-lines.ts'),
    import('../../terminal/progress.ts'),
  ]);
  const progress = progressOn();
  const keys = client.transit(options.mount);
  const version = options.keyVersion === undefined ? {} : { key_version: options.keyVersion };
  let named = 0;
  const summary = await rewrapLines({
    input: options.file,
    output: options.out,
    resume: options.resume === true,
    rewrap: (items) => rewrapBatch(keys, name, items, version),
    progress: (done, of, lines) => progress.show(done, of, `${lines} lines`),
    failed: (line, reason) => {
      named += 1;
      if (named <= namedMax) output.notice(`line ${line}: ${reason}`);
    },
  }).finally(progress.end);
  if (named > namedMax) output.notice(`… and ${named - namedMax} more`);
  output.rows([['output', options.out], ...Object.entries(summary)]);
  return summary.failed === 0 ? exitCode.ok : exitCode.denied;
}

async function rewrapBatch(
  keys: TransitCalls,
  name: string,
  items: readonly RewrapItem[],
  version: Pick<DataOptions, 'key_version'>,
): Promise<readonly Rewrapped[]> {
  try {
    return resultsIn(
      await keys.batch(
        'rewrap',
        name,
        items.map((item) => ({ ...item, ...version })),
      ),
    );
  } catch (error) {
    // A batch of which items failed is a refusal that contains all results.
    const results = error instanceof RefusedError && error.status === 400 ? resultsIn(error.body) : [];
    if (results.length === items.length) return results;
    throw error;
  }
}

function resultsIn(answer: unknown): readonly Rewrapped[] {
  const results = (answer as { data?: { batch_results?: readonly Readonly<Record<string, unknown>>[] } } | undefined)?.data
    ?.batch_results;
  return (results ?? []).map(({ ciphertext, error }) =>
    typeof ciphertext === 'string' ? { ciphertext } : { error: typeof error === 'string' ? error : 'no result' },
  );
}
