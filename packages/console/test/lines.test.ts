import { expect } from 'chai';
import { linesOf } from '../app/api/lines.ts';
import { ApiError } from '../app/api/request.ts';

const bytes = new TextEncoder();

describe('the lines of a stream', () => {
  const linesIn = async (...chunks: readonly Uint8Array<ArrayBuffer>[]): Promise<readonly string[]> => {
    const lines: string[] = [];
    await linesOf(ReadableStream.from(chunks), (line) => lines.push(line));
    return lines;
  };

  it('are whole, wherever the chunks are cut', async () => {
    const text = bytes.encode('{"ä":1}\n\n{"b":"→"}\n');
    for (let at = 0; at <= text.length; at++)
      expect(await linesIn(text.slice(0, at), text.slice(at))).to.deep.equal(['{"ä":1}', '{"b":"→"}']);
  });

  it('do not include an end that was cut off', async () => {
    expect(await linesIn(bytes.encode('{"a":1}\n{"b"'))).to.deep.equal(['{"a":1}']);
    await linesOf(null, () => expect.fail('a line of nothing'));
  });

  it('end with a refusal if the stream breaks', async () => {
    const broken = new ReadableStream({ start: (controller) => controller.error(new TypeError('network error')) });
    const failure = await linesOf(broken, () => undefined).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(ApiError).with.property('status', 0);
  });
});
