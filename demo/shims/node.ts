/**
 * What the packages behind `a2ui` and `mcpApps` use of Node, for a browser: give your bundler this file for the names
 * "crypto" and "stream" (vite.config.ts: `const shims = "/src/node-shims.ts"`, then
 * `resolve: { alias: { crypto: shims, stream: shims } }`).
 */

/** `clarinet`, which parses what an A2UI agent streams, has a stream of its own that inherits from this, and is not used. */
export function Stream(): void {}

export const randomUUID = (): string => globalThis.crypto.randomUUID();

/**
 * What `@ag-ui/mcp-apps-middleware` names a server by. It is Node's MD5, so that threads of a server are understood here;
 * it protects nothing.
 */
export function createHash(algorithm: string): Hash {
  if (algorithm !== "md5") throw new Error(`There is no ${algorithm} here`);
  return new Hash();
}

class Hash {
  private text = "";

  update(text: string): this {
    this.text += text;
    return this;
  }

  digest(_encoding: "hex"): string {
    return md5(new TextEncoder().encode(this.text));
  }
}

/** https://www.rfc-editor.org/rfc/rfc1321#section-3.4 */
const SHIFTS = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
const SINES = Array.from({ length: 64 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32));

function md5(bytes: Uint8Array): string {
  const words = new DataView(new ArrayBuffer((((bytes.length + 8) >> 6) + 1) * 64));
  new Uint8Array(words.buffer).set(bytes);
  words.setUint8(bytes.length, 0x80);
  words.setUint32(words.byteLength - 8, bytes.length * 8, true);
  words.setUint32(words.byteLength - 4, Math.floor(bytes.length / 2 ** 29), true);
  const state = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476];
  for (let block = 0; block < words.byteLength; block += 64) {
    let [a, b, c, d] = state as [number, number, number, number]; // four from the start
    for (let i = 0; i < 64; i++) {
      const round = i >> 4;
      const mixed = [(b & c) | (~b & d), (d & b) | (~d & c), b ^ c ^ d, c ^ (b | ~d)][round]!;
      const word = [i, 5 * i + 1, 3 * i + 5, 7 * i][round]! % 16;
      const sum = (a + mixed + SINES[i]! + words.getUint32(block + word * 4, true)) | 0;
      const shift = SHIFTS[round * 4 + (i % 4)]!;
      [a, d, c, b] = [d, c, b, (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0];
    }
    [a, b, c, d].forEach((value, i) => (state[i] = (state[i]! + value) | 0));
  }
  const hash = new DataView(new ArrayBuffer(16));
  state.forEach((value, i) => hash.setInt32(i * 4, value, true));
  return Array.from(new Uint8Array(hash.buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
