/**
 * Whether 32 bytes are a usable Ed25519 public key: a point on the curve, written the one canonical way, and not one of the few of
 * small order, under which anyone can forge signatures. Slow arithmetic on purpose kept plain: it runs once, when a key is pasted.
 * Source: RFC 8032, 5.1.
 */

const P = 2n ** 255n - 19n;
const D = mod(-121665n * inverse(121666n));
const ROOT_OF_MINUS_ONE = power(2n, (P - 1n) / 4n);

interface Point {
  x: bigint;
  y: bigint;
}

export function isUsableEd25519Point(bytes: Uint8Array): boolean {
  const point = readPoint(bytes);
  return point !== null && !hasSmallOrder(point);
}

function readPoint(bytes: Uint8Array): Point | null {
  if (bytes.length !== 32) return null;
  const number = BigInt(`0x${Buffer.from(bytes).reverse().toString("hex")}`);
  const sign = number >> 255n;
  const y = number & (2n ** 255n - 1n);
  if (y >= P) return null;
  const root = squareRoot(mod((y * y - 1n) * inverse(D * y * y + 1n)));
  if (root === null || (root === 0n && sign === 1n)) return null;
  return { x: (root & 1n) === sign ? root : P - root, y };
}

/** The cofactor is 8: a point whose eightfold is the neutral point (0, 1) has small order. */
function hasSmallOrder(point: Point): boolean {
  const eightfold = double(double(double(point)));
  return eightfold.x === 0n && eightfold.y === 1n;
}

function double({ x, y }: Point): Point {
  const xxyy = mod(D * x * x * y * y);
  return { x: mod(2n * x * y * inverse(1n + xxyy)), y: mod((y * y + x * x) * inverse(1n - xxyy)) };
}

function squareRoot(square: bigint): bigint | null {
  let root = power(square, (P + 3n) / 8n);
  if (mod(root * root) !== square) root = mod(root * ROOT_OF_MINUS_ONE);
  return mod(root * root) === square ? root : null;
}

function inverse(value: bigint): bigint {
  return power(mod(value), P - 2n);
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  let square = mod(base);
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = mod(result * square);
    square = mod(square * square);
  }
  return result;
}

function mod(value: bigint): bigint {
  const rest = value % P;
  return rest < 0n ? rest + P : rest;
}
