const integerText = /^([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))$/;

/** Parses an integer as Go does: a prefix selects the base, so "0x1" is 1 and "010" is 8. Returns NaN for any other text. */
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
