import type { Member } from '../node/member.ts';
import type { NodeProcess } from '../process/process.ts';
import type { World } from './world.ts';

/** Thrown out of a turn during which the process ended: the rest of that turn never happens. */
export class ProcessEnded extends Error {}

/**
 * Lets time pass inside a turn of a node: where its program calls a port or has just read its clock, and while it applies an entry.
 * The rest of the cluster keeps running, so a decision that the node makes afterwards by an earlier reading is late.
 */
export class Stalls {
  readonly #cluster: World;
  #isStalling = false;

  constructor(cluster: World) {
    this.#cluster = cluster;
  }

  /** Called at each call of a port. @throws ProcessEnded */
  called(member: Member, process: NodeProcess): void {
    const { stall } = member;
    if (stall === undefined) return;
    member.stall = stall.calls === 0 ? undefined : { ...stall, calls: stall.calls - 1 };
    if (stall.calls > 0 || !this.#mayStand(member, process)) return;
    if (stall.stopsClock) member.clock.stop(stall.durationMs);
    this.#cluster.coverage.met('stalled inside a turn');
    this.#stand(member, process, stall.durationMs);
  }

  /** Called when the node has applied an entry. @throws ProcessEnded */
  applied(member: Member, process: NodeProcess): void {
    const { untilMs, entryMs } = member.slowApply;
    if (this.#cluster.clock.now() >= untilMs || !this.#mayStand(member, process)) return;
    this.#cluster.coverage.met('entry applied slowly');
    this.#stand(member, process, entryMs);
  }

  /** Only one running process at a time stands, so that no turn is entered a second time before it has ended. */
  #mayStand(member: Member, process: NodeProcess): boolean {
    return !this.#isStalling && member.incarnation?.process === process;
  }

  #stand(member: Member, process: NodeProcess, durationMs: number): void {
    const { clock, safety, trace } = this.#cluster;
    trace.note(clock.now(), 'stall', member.id, durationMs);
    const status = member.incarnation?.host.consensus();
    // Others may soon know from its messages that this node leads. Entries of a follower may not have reached its log yet.
    if (status?.role === 'leader') safety.observed(member.observed, status);
    this.#isStalling = true;
    // Its own next tasks run after this turn.
    process.pause(durationMs + 1);
    let isOver = false;
    clock.after(durationMs, () => {
      isOver = true;
    });
    while (!isOver) this.#cluster.step();
    this.#isStalling = false;
    if (process.isAlive) return;
    this.#cluster.coverage.met('ended inside a turn');
    throw new ProcessEnded('the process ended inside this turn');
  }
}
