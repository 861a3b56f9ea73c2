import { expect } from 'chai';
import { progressLine, progressOn } from '../../src/terminal/progress.ts';

function terminal(isTTY: boolean) {
  const written: string[] = [];
  return { stream: { isTTY, columns: 60, write: (text: string | Uint8Array) => written.push(String(text)) > 0 }, written };
}

describe('the progress of a long command', () => {
  it('is a bar with a percentage, or an amount if the end is not known', () => {
    expect(progressLine(1, 2, 'orders')).to.equal('[############............]  50 % orders');
    expect(progressLine(7, 7, 'a\nb\u001b')).to.equal('[########################] 100 % a b\\u{1b}');
    expect(progressLine(12, 0, 'MiB')).to.equal('12 MiB');
  });

  it('is shown only on a terminal, at most ten times a second, in one line that is removed at the end', () => {
    const { stream, written } = terminal(true);
    let nowMs = 0;
    const progress = progressOn(stream, () => nowMs);
    progress.show(0, 3, 'one');
    progress.show(1, 3, 'too soon');
    nowMs += 150;
    progress.show(2, 3, 'x'.repeat(100));
    progress.show(3, 3, 'the last is always shown');
    progress.end();
    expect(written).to.have.length(4);
    expect(written.join('')).to.include('one').and.not.include('too soon').and.not.include('\n');
    expect(written[1]).to.have.length('\r\u001b[K'.length + 59);
    expect(written.at(-1)).to.equal('\r\u001b[K');

    const file = terminal(false);
    const silent = progressOn(file.stream);
    silent.show(0, 1, 'x');
    silent.end();
    expect(file.written).to.deep.equal([]);
  });
});
