import { request as httpsRequest } from 'node:https';
import { type Attributes, createNoopMeter, type Meter, type MeterProvider } from '@opentelemetry/api';
import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import { JsonTraceSerializer } from '@opentelemetry/otlp-transformer';
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter, type SpanProcessor } from '@opentelemetry/sdk-trace';
import { nodeHttp } from '@transitd/process';

export interface OtlpExporterOptions {
  /** URL of the collector, with its path, for example `http://127.0.0.1:4318/v1/traces`. */
  readonly endpoint: string;
  /** PEM of the authorities to trust for an https URL; those of the system when absent. */
  readonly ca?: string | undefined;
  /** Called after each export. @param error - why the spans were dropped; undefined if the collector accepted them */
  readonly exported: (spans: number, error?: Error) => void;
}

/** Maximum number of spans that wait for an export; further ones are dropped. */
export const waitingMax = 4096;
/** Maximum number of spans in one export. */
export const batchMax = 512;
/** Time after which a span is exported at the latest, unless the collector is slow, in milliseconds. */
const intervalMs = 2000;
/** Deadline for one export, in milliseconds. */
const deadlineMs = 5000;

/**
 * Returns a queue of ended spans, which sends them to a collector by OTLP over HTTP. Requests never wait for it: spans are dropped while
 * the collector is slow or fails. `shutdown` exports the spans that wait, for at most five seconds, and never rejects.
 */
export const spanQueue = (options: OtlpExporterOptions): SpanProcessor =>
  new BatchSpanProcessor({
    exporter: new OtlpExporter(options),
    maxQueueSize: waitingMax,
    maxExportBatchSize: batchMax,
    scheduledDelayMillis: intervalMs,
    // The exporter has a deadline of its own. After a deadline here, the next export would begin beside the one that hangs.
    exportTimeoutMillis: 2 ** 31 - 1,
    selfObsMeterProvider: meterOfDrops((spans) => options.exported(spans, new Error('too many spans wait for the collector'))),
  });

/** Returns the meter of a queue, the only place where it reports the spans for which it has no room. */
function meterOfDrops(dropped: (spans: number) => void): MeterProvider {
  const add = (spans: number, attributes?: Attributes): void => {
    if (attributes?.['error.type'] === 'queue_full') dropped(spans);
  };
  const meter: Meter = Object.create(createNoopMeter(), { createCounter: { value: () => ({ add }) } });
  return { getMeter: () => meter };
}

/**
 * Sends spans in JSON. The exporter of OpenTelemetry is not used: it repeats a failed export up to five times, reads `OTEL_*` variables,
 * and keeps the whole answer of the collector.
 */
class OtlpExporter implements SpanExporter {
  readonly #options: OtlpExporterOptions;
  readonly #exporting = new Set<Promise<void>>();

  constructor(options: OtlpExporterOptions) {
    this.#options = options;
  }

  /** Reports success to the queue whatever happens: after a failure, the queue would start further exports beside the next one. */
  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    const { exported } = this.#options;
    const exporting = this.#send(spans).then(
      () => exported(spans.length),
      (error: Error) => exported(spans.length, error),
    );
    this.#exporting.add(exporting);
    void exporting.then(() => {
      this.#exporting.delete(exporting);
      done({ code: ExportResultCode.SUCCESS });
    });
  }

  /** Resolves when all exports have ended. */
  async shutdown(): Promise<void> {
    await Promise.all(this.#exporting);
  }

  async #send(spans: ReadableSpan[]): Promise<void> {
    const { endpoint, ca } = this.#options;
    const body = JsonTraceSerializer.serializeRequest(spans) ?? new Uint8Array();
    const send = endpoint.startsWith('https:') ? httpsRequest : nodeHttp().request;
    const headers = { 'content-type': 'application/json', 'content-length': body.length };
    const { promise, resolve, reject } = Promise.withResolvers<void>();
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
    await promise;
  }
}
