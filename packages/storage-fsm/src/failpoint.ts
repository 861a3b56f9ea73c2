import { StorageFailed } from './errors.ts';

/** The points at which a test may kill the process or make an effect fail. */
const names = [
  'log.before_append',
  'log.after_append',
  'log.before_fsync',
  'log.after_fsync',
  'state.before_apply',
  'state.after_apply',
  'state.before_flush',
  'state.after_flush',
  'snapshot.before_batch',
  'snapshot.after_load',
  'snapshot.before_switch',
  'snapshot.after_switch',
  'snapshot.before_remove',
] as const;
export type FailpointName = (typeof names)[number];

/** `exit`: SIGKILL, as in a power failure. `error`: an I/O error, as if the disk had failed. */
interface Armed {
  readonly action: 'exit' | 'error';
  passesLeft: number;
}

let armed: Map<FailpointName, Armed> | undefined;

/** Does nothing unless the failpoint is armed; then it acts once, at the requested pass. */
export function failpoint(name: FailpointName): void {
  if (armed !== undefined) pass(armed, name);
}

function pass(points: Map<FailpointName, Armed>, name: FailpointName): void {
  const point = points.get(name);
  if (point === undefined || --point.passesLeft !== 0) return;
  if (point.action === 'exit') process.kill(process.pid, 'SIGKILL');
  throw new StorageFailed(`failpoint ${name}`);
}

/**
 * Arms the listed failpoints and disarms all others.
 * @param list - `<name>=<exit|error>[:<pass>]`, separated by commas, for example `log.before_append=exit,log.after_fsync=error:3`
 * @throws TypeError for any other form, so that a misspelled failpoint does not make a test pass silently
 */
export function armFailpoints(list: string | undefined): void {
  armed = list ? new Map(list.split(',').map(parse)) : undefined;
}

function parse(item: string): [FailpointName, Armed] {
  const [, given, action, nth] = /^([a-z._]+)=(exit|error)(?::([1-9]\d*))?$/.exec(item.trim()) ?? [];
  const name = names.find((known) => known === given);
  if (name === undefined || (action !== 'exit' && action !== 'error')) throw new TypeError(`unknown failpoint: ${item}`);
  return [name, { action, passesLeft: Number(nth ?? 1) }];
}
