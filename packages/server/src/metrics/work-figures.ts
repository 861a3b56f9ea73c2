import type { WorkFigures } from '@transitd/node';
import type { Registry } from 'prom-client';

/** Returns the work of a node from the metrics that count it. */
export async function workFigures(registry: Registry, prefix: string): Promise<WorkFigures> {
  const rows = async (name: string) => (await registry.getSingleMetric(`${prefix}_${name}`)?.get())?.values ?? [];
  const [durations, responses, applied] = await Promise.all([
    rows('core_handle_request'),
    rows('http_responses'),
    rows('raft_apply'),
  ]);
  const ofClass = (name: string): number => responses.find(({ labels }) => labels['class'] === name)?.value ?? 0;
  // prom-client gives the rows of a histogram without `le` for its sum and its count.
  const buckets = durations.flatMap(({ labels, value }) => {
    const ms = Number(labels['le']);
    return Number.isFinite(ms) ? [[ms, value] as const] : [];
  });
  const all = durations.find(({ labels }) => labels['le'] === '+Inf');
  return {
    requests: all?.value ?? 0,
    refused: ofClass('4xx'),
    failed: ofClass('5xx'),
    writes: applied[0]?.value ?? 0,
    durations: buckets,
  };
}
