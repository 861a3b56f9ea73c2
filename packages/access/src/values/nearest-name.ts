// cspell:ignore nmae

/** Longest name that is compared. Longer ones are no misspelling of a name here. */
const charsMax = 64;

/**
 * Returns the candidate that a misspelled name most likely means: at most a third of its characters, rounded up, are inserted, deleted,
 * replaced or swapped with their neighbor. Undefined if no candidate is that close.
 */
export function nearestName(name: string, candidates: Iterable<string>): string | undefined {
  if (name.length > charsMax) return undefined;
  let nearest: string | undefined;
  let distanceMin = Math.ceil(name.length / 3) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < distanceMin) [nearest, distanceMin] = [candidate, distance];
  }
  return nearest;
}

/** Returns `; did you mean "x"?`, or nothing without a near candidate. */
export function didYouMean(name: string, candidates: Iterable<string>): string {
  const nearest = nearestName(name, candidates);
  return nearest === undefined ? '' : `; did you mean "${nearest}"?`;
}

/** Returns `: "nmae"; did you mean "name"?`, or nothing without a near candidate: then the name might be anything, also a secret. */
export function misspelled(name: string, candidates: Iterable<string>): string {
  const suggestion = didYouMean(name, candidates);
  return suggestion === '' ? '' : `: "${name}"${suggestion}`;
}

/** The optimal string alignment distance: Levenshtein's, where a swap of neighbors counts as one edit. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + Number(a[i - 1] !== b[j - 1]);
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (before[j - 2] ?? i) + 1 : i + j;
      next.push(Math.min(replaced, swapped, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    [before, row] = [row, next];
  }
  return row[b.length] ?? 0;
}
