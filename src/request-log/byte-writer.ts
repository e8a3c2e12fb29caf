/** Writes and reads numbers and bytes one after the other. A whole number takes 7 bits of each byte (LEB128). */

const initialBytes = 4_096;
/** Of a whole number of 32 bits. */
const maxIntegerBytes = 5;

export class ByteWriter {
  #bytes = Buffer.allocUnsafeSlow(initialBytes);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** @param value a whole number of 32 bits; a negative one takes five bytes */
  integer(value: number): void {
    this.#reserve(maxIntegerBytes);
    let rest = value >>> 0;
    while (rest > 0x7f) {
      this.#bytes[this.#length++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[this.#length++] = rest;
  }

  /** A whole number of 32 bits of which small negative ones occur. */
  signed(value: number): void {
    this.integer((value << 1) ^ (value >> 31));
  }

  double(value: number): void {
    this.#reserve(8);
    this.#length = this.#bytes.writeDoubleLE(value, this.#length);
  }

  word(value: number): void {
    this.#reserve(4);
    this.#length = this.#bytes.writeInt32LE(value, this.#length);
  }

  /** The length and the bytes. */
  bytes(bytes: Uint8Array): void {
    this.integer(bytes.length);
    this.append(bytes);
  }

  text(text: string): void {
    this.bytes(Buffer.from(text));
  }

  /** A UUID in lower case: 36 characters of ASCII become 16 bytes. @returns false, and writes nothing, if it is something else */
  uuid(source: Buffer, start: number): boolean {
    this.#reserve(16);
    let to = this.#length;
    for (let at = 0; at < 36; at += 2) {
      if (at === 8 || at === 13 || at === 18 || at === 23) {
        if (source[start + at] !== hyphen) return false;
        at += 1;
      }
      const byte =
        ((hexValues[source[start + at] ?? 0] ?? -1) << 4) | (hexValues[source[start + at + 1] ?? 0] ?? -1);
      if (byte < 0) return false;
      this.#bytes[to++] = byte;
    }
    this.#length = to;
    return true;
  }

  /** Bytes without their length. */
  append(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** A copy of what has been written. */
  copy(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, this.#length));
  }

  /** Removes what was written beyond this length. */
  truncate(length: number): void {
    this.#length = length;
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.length, this.#length + more));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

/** Reads what a `ByteWriter` has written. @throws RangeError behind the end */
export class ByteReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** A whole number of at most 32 bits, not negative. */
  integer(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined || shift > 28) throw new RangeError('not a whole number');
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
  }

  signed(): number {
    const value = this.integer();
    return (value >>> 1) ^ -(value & 1);
  }

  double(): number {
    this.#at += 8;
    return this.#bytes.readDoubleLE(this.#at - 8);
  }

  word(): number {
    this.#at += 4;
    return this.#bytes.readInt32LE(this.#at - 4);
  }

  bytes(): Buffer {
    return this.#read(this.integer());
  }

  text(): string {
    return this.bytes().toString();
  }

  uuid(): string {
    const hex = this.#read(16).toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  }

  #read(length: number): Buffer {
    if (this.#at + length > this.#bytes.length) throw new RangeError('behind the end');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}

const hyphen = 0x2d;

/** The value of each hexadecimal digit in lower case; -1 for all other characters. */
const hexValues = Int8Array.from({ length: 256 }, (_, code) =>
  '0123456789abcdef'.indexOf(String.fromCharCode(code)),
);
