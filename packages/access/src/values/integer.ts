/** Base by prefix as in Go, so that "0x1" is 1 and "010" is 8. */
const integerText = /^([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))$/;

/** The whole number that a text stands for in a request, with a prefix for its base as in Go; NaN when it is none. */
export function integerOf(text: string): number {
  const match = integerText.exec(text);
  if (match === null) return Number.NaN;
  const [, sign, hex, binary, octal, decimal] = match;
  const magnitude =
    hex !== undefined
      ? Number(`0x${hex}`)
      : binary !== undefined
        ? Number(`0b${binary}`)
        : octal !== undefined
          ? Number(`0o${octal}`)
          : Number(decimal);
  return sign === '-' ? -magnitude : magnitude;
}
