import { noAnswer } from './request.ts';

/** Calls `onLine` for each line of a stream that is not empty; resolves at its end. @throws ApiError if the stream breaks */
export async function linesOf(body: ReadableStream<Uint8Array> | null, onLine: (line: string) => void): Promise<void> {
  const reader = body?.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { value } = (await reader?.read().catch(noAnswer)) ?? {};
    if (value === undefined) return;
    const lines = `${rest}${decoder.decode(value, { stream: true })}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') onLine(line);
  }
}
