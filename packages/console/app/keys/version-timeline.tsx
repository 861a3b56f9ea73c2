import { count, moment } from '../parts/format.ts';
import { type Key, useOf, type Version, type VersionUse } from './key.ts';

const words: Readonly<Record<VersionUse, string>> = {
  encrypts: 'encrypts and decrypts',
  decrypts: 'decrypts and verifies only',
  nothing: 'neither: below the minimum',
};
const wordsFor = (version: number, key: Key): string => {
  const reason = key.disabled.get(version);
  if (reason === undefined) return words[useOf(version, key)];
  return reason === '' ? 'neither: disabled' : `neither: disabled (${reason})`;
};
const listedMax = 12;
const size = { width: 1000, height: 34 };

/** The versions by the time of their creation, in the color of their use, and the newest ones as a table. */
export function VersionTimeline({ value: key }: { readonly value: Key }) {
  const { versions } = key;
  const first = versions[0];
  const last = versions.at(-1);
  if (first === undefined || last === undefined) return <p class="muted">This key has no versions.</p>;
  const listed = versions.slice(-listedMax).toReversed();
  const deleted = key.minAvailable > 1 ? key.minAvailable - 1 : 0;
  return (
    <>
      <svg class="versions" viewBox={`0 0 ${size.width} ${size.height}`} preserveAspectRatio="none" aria-hidden="true">
        <path class="grid" d={`M0 ${size.height / 2}H${size.width}`} />
        {placesOf(versions).map(({ version, x, width }) => (
          <rect key={version} class={`use-${useOf(version, key)}`} x={x} y={6} width={width} height={size.height - 12} rx={3} />
        ))}
      </svg>
      <p class="legend small">
        {Object.entries(words).map(([use, word]) => (
          <span key={use}>
            <i class={`swatch use-${use}`} aria-hidden="true" /> {word}
          </span>
        ))}
      </p>
      <table>
        <thead>
          <tr>
            <th scope="col">Version</th>
            <th scope="col">Created</th>
            <th scope="col">Use</th>
          </tr>
        </thead>
        <tbody>
          {listed.map(({ version, createdMs }) => (
            <tr key={version}>
              <th scope="row">{version}</th>
              <td>{createdMs === undefined ? '–' : moment(createdMs)}</td>
              <td>{wordsFor(version, key)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {versions.length > listed.length && (
        <p class="muted small">{count(versions.length - listed.length)} older versions are not listed.</p>
      )}
      {deleted > 0 && <p class="muted small">{deleted === 1 ? 'Version 1 was' : `Versions 1 to ${deleted} were`} deleted.</p>}
    </>
  );
}

/** More marks than this cannot be told apart. */
const marksMax = 200;

/** Places the newest versions from left to right by their creation time. The distance between two marks is at least the width of a mark. */
function placesOf(all: readonly Version[]): readonly { readonly version: number; readonly x: number; readonly width: number }[] {
  const versions = all.slice(-marksMax);
  const width = Math.max(2, Math.min(14, size.width / versions.length - 2));
  const times = versions.flatMap(({ createdMs }) => (createdMs === undefined ? [] : [createdMs]));
  const startMs = times[0] ?? 0;
  const spanMs = Math.max(1, (times.at(-1) ?? 0) - startMs);
  const room = size.width - versions.length * (width + 2);
  return versions.map(({ version, createdMs }, index) => ({
    version,
    x: index * (width + 2) + (room * Math.max(0, (createdMs ?? startMs) - startMs)) / spanMs,
    width,
  }));
}
