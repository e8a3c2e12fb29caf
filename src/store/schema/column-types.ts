/** The names of the types that differ between the dialects: of bytes, and of whole numbers of 64 bits, such as times in milliseconds. */
export interface ColumnTypes {
  readonly bytes: string;
  readonly time: string;
}
