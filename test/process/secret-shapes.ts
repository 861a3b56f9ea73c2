/** Returns the forms of a leaked secret: raw, hex, base64 at each alignment, and percent-encoded byte by byte. */
export function shapesOf(secret: Buffer): Buffer[] {
  const hex = secret.toString('hex');
  const percent = hex.replace(/../g, '%$&');
  const shapes = [secret, ...[hex, hex.toUpperCase(), percent, percent.toUpperCase()].map((text) => Buffer.from(text))];
  for (const alignment of [0, 1, 2]) {
    for (const encoding of ['base64', 'base64url'] as const) {
      const text = Buffer.concat([Buffer.alloc(alignment), secret])
        .toString(encoding)
        .replace(/=+$/, '');
      // In base64, the bytes before the secret change its first characters, and the bytes after it change its last characters.
      shapes.push(Buffer.from(text.slice(alignment === 0 ? 0 : alignment + 1, -2)));
    }
  }
  return shapes.filter((shape, at) => shapes.findIndex((other) => other.equals(shape)) === at);
}
