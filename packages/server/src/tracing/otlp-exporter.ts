import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { type EndedSpan, exportBody, type Resource } from './otlp-json.ts';

export interface OtlpExporterOptions {
  /** URL of the collector, with its path, for example `http://127.0.0.1:4318/v1/traces`. */
  readonly endpoint: string;
  /** PEM of the authorities to trust for an https URL; those of the system when absent. */
  readonly ca?: string | undefined;
  readonly resource: Resource;
  /** Called after each export. @param error - why the spans were dropped; undefined if the collector accepted them */
  readonly exported: (spans: number, error?: Error) => void;
}

/** Maximum number of spans that wait for an export; further ones are dropped. About 2 MB. */
export const waitingMax = 4096;
/** Maximum number of spans in one export. */
export const batchMax = 512;
/** Time after which a span is exported at the latest, unless the collector is slow, in milliseconds. */
const intervalMs = 2000;
/** Deadline for one export, in milliseconds. */
const deadlineMs = 5000;

/**
 * Sends spans to a collector by OTLP over HTTP, in JSON. Requests never wait for it: spans are dropped while the collector is slow or
 * fails, and an export is not repeated.
 */
export class OtlpExporter {
  readonly #options: OtlpExporterOptions;
  #waiting: EndedSpan[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** Pending while an export is under way. Never rejects. */
  #exporting: Promise<void> | undefined;
  #closed = false;

  constructor(options: OtlpExporterOptions) {
    this.#options = options;
  }

  /** Takes a span. Drops it if too many wait. */
  add(span: EndedSpan): void {
    if (this.#closed || this.#waiting.length >= waitingMax) {
      this.#options.exported(1, new Error('too many spans wait for the collector'));
      return;
    }
    this.#waiting.push(span);
    if (this.#waiting.length >= batchMax) this.#start();
    else this.#timer ??= setTimeout(() => this.#start(), intervalMs).unref();
  }

  /** Exports the spans that wait, as far as the collector takes them in time. No span is taken afterwards. */
  async close(): Promise<void> {
    this.#closed = true;
    const endMs = performance.now() + deadlineMs;
    for (await this.#exporting; this.#waiting.length > 0 && performance.now() < endMs; await this.#exporting) this.#start();
    clearTimeout(this.#timer);
  }

  #start(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#exporting !== undefined || this.#waiting.length === 0) return;
    const batch = this.#waiting.slice(0, batchMax);
    this.#waiting = this.#waiting.slice(batchMax);
    this.#exporting = this.#send(exportBody(batch, this.#options.resource)).then(
      () => this.#ended(batch.length),
      (error: Error) => this.#ended(batch.length, error),
    );
  }

  #ended(spans: number, error?: Error): void {
    this.#exporting = undefined;
    this.#options.exported(spans, error);
    if (this.#waiting.length >= batchMax && !this.#closed) this.#start();
    else if (this.#waiting.length > 0) this.#timer ??= setTimeout(() => this.#start(), intervalMs).unref();
  }

  #send(body: string): Promise<void> {
    const { endpoint, ca } = this.#options;
    const send = endpoint.startsWith('https:') ? httpsRequest : httpRequest;
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    return new Promise((resolve, reject) => {
      const signal = AbortSignal.timeout(deadlineMs);
      const call = send(
        endpoint,
        { method: 'POST', headers, signal, agent: false, ...(ca !== undefined && { ca }) },
        (response) => {
          response.resume();
          const { statusCode = 0 } = response;
          if (statusCode >= 200 && statusCode < 300) response.once('end', resolve).once('error', reject);
          else reject(new Error(`the collector answered ${statusCode}`));
        },
      );
      call.once('error', reject);
      // An answer such as a switch of protocols closes the connection without an error. After an answer that was read, this does nothing.
      call.once('close', () => reject(new Error('the collector closed the connection')));
      call.end(body);
    });
  }
}
