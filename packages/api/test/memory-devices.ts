import type { EntryType } from '@transitd/audit';
import { expect } from 'chai';

/** Audit devices in memory, whose sinks fail on demand. */
export class MemoryDevices {
  readonly configs = ['main', 'second'].map((name) => ({ type: 'stdout' as const, name }));
  readonly names = ['main', 'second'];
  readonly lines: string[] = [];
  buildFailures = 0;
  failing: EntryType | 'all' | undefined;
  /** Called before an entry of this kind is written. */
  before: (type: EntryType) => unknown = () => undefined;

  async write(type: EntryType, entryFor: (sink: string) => string): Promise<void> {
    await this.before(type);
    if (this.failing === 'all' || this.failing === type) throw new AggregateError([], 'all sinks fail');
    this.lines.push(entryFor('main'));
    entryFor('second');
  }

  buildFailed(): void {
    this.buildFailures += 1;
  }

  // biome-ignore lint/suspicious/noExplicitAny: the tests read entries of any shape
  get entries(): any[] {
    return this.lines.map((line) => JSON.parse(line));
  }

  /** Returns the newest pair of entries. */
  get pair() {
    const [asked, answered] = this.entries.slice(-2);
    expect([asked.type, answered.type, answered.request.id]).to.deep.equal(['request', 'response', asked.request.id]);
    return { asked, answered };
  }
}
